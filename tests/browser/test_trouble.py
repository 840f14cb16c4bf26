"""A server that is killed, two people at once, a conflict, names that hold HTML, vectors; and on to the next round."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from browser.page import HOME, Page
from browser.server import Server
from review.made import made_run

Serve = Callable[..., Server]
Tab = Callable[..., Page]


def test_a_server_that_is_killed_and_comes_back_gets_all_decisions_once(serve: Serve, tab: Tab, run: Path) -> None:
    server = serve(run)
    page = tab(server.address)
    ids = page.ids()
    page.press("a", "k")
    page.saved()
    server.kill()
    page.press("d", "u", "a", "z", "a")  # while nobody listens
    page.until(lambda: "server is gone" in page.text("banner"), "the banner")
    assert page.text("saved") == "5 not saved yet" and "kept in this browser" in page.text("banner")
    assert len(server.log()) == 2
    server.start()
    page.saved()
    page.until(lambda: not page.text("banner"), "no banner")
    log = server.await_log(7)
    assert [(one["id"], one["action"]) for one in log] == [
        *zip(ids, ["accept", "keep", "drop", "unsure", "accept"]),
        (ids[4], "clear"),
        (ids[4], "accept"),
    ]
    assert len({one["key"] for one in log}) == 7


def test_a_kill_in_the_midst_of_deciding_loses_nothing_that_was_called_saved(serve: Serve, tab: Tab, run: Path) -> None:
    server = serve(run)
    page = tab(server.address)
    for _ in range(3):
        page.press(*"akda")
        server.kill()
        server.start()
    page.saved()
    log = server.await_log(12)
    assert len({one["key"] for one in log}) == 12 and len({one["id"] for one in log}) == 12


def test_what_a_closed_tab_could_not_send_is_sent_by_the_next(serve: Serve, tab: Tab, run: Path) -> None:
    server = serve(run)
    page = tab(server.address)
    server.kill()
    page.press("a", "k")
    page.until(lambda: page.text("saved") == "2 not saved yet", "two waiting")
    page.driver.get("about:blank")
    server.start()
    page.open(server.address)
    page.saved()
    assert [one["action"] for one in server.await_log(2)] == ["accept", "keep"]


def test_what_a_closed_tab_left_stays_where_the_browser_keeps_no_more(serve: Serve, tab: Tab, run: Path) -> None:
    page = tab(serve(run).address)
    code = """
    const done = arguments[0];
    import('/static/outbox.js').then(({ Outbox }) => {
      const put = Storage.prototype.setItem, left = 'labelsieve:other:out:1';
      localStorage.setItem(left, '[{"key": "abcdefgh", "id": "7"}]');
      Storage.prototype.setItem = () => { throw new Error('full'); };
      const box = new Outbox('other');
      Storage.prototype.setItem = put;
      done([box.waiting.length, box.stored, localStorage.getItem(left) !== null]);
    });
    """
    assert page.driver.execute_async_script(code) == [1, False, True]


LOOKS = """
const real = window.fetch;
window.looks = 0;
window.fetch = (path, ...rest) => { window.looks += String(path).startsWith('/api/changes'); return real(path, ...rest); };
"""


def accepted(page: Page, place: int) -> bool:
    return page.states()[place] == "accept"


def test_two_people_see_each_other_at_the_next_look_at_the_server(serve: Serve, tab: Tab, run: Path) -> None:
    """Each at a server of their own on the same run folder. A look comes every second."""
    one, two = serve(run, "anna"), serve(run, "ben")
    anna, ben = tab(one.address, 0), tab(two.address, 1)
    ids = anna.ids()
    assert ben.ids()[: len(ids)] == ids
    ben.script(LOOKS)
    for place in range(3):
        anna.press("a")
        anna.saved()
        # One look may have been on its way while anna's was saved; the next knows it, and is read before the one after it begins.
        third = ben.script("return window.looks") + 3
        ben.until(lambda place=place, third=third: accepted(ben, place) or ben.script("return window.looks") >= third, "looks")
        assert accepted(ben, place)
    ben.press(HOME, "k")  # seen and decided otherwise: no conflict
    ben.saved()
    anna.until(lambda: anna.states()[0] == "keep", "what ben decided")
    assert [(entry["who"], entry["action"]) for entry in one.log()] == [("anna", "accept")] * 3 + [("ben", "keep")]


def test_a_conflict_is_shown_to_both_and_settled_by_one(serve: Serve, tab: Tab, run: Path) -> None:
    server = serve(run, "anna")
    anna, ben = tab(server.address, 0), tab(server.address, 1)
    ben.click(ben.by_id("who"))
    ben.script("document.querySelector('#naming input').value = 'ben'")
    ben.click(ben.button("Save"))
    ben.offline(True)
    ben.press("k")
    anna.press("a")
    anna.saved()
    ben.offline(False)
    ben.saved()
    for page in (anna, ben):
        page.until(lambda page=page: page.states()[0] == "conflict", "the conflict")
    anna.choose("state", "conflict")
    anna.until(lambda: anna.total() == 1, "one in conflict")
    anna.until(lambda: "ben says kept" in anna.text("detail") and "anna says accepted" in anna.text("detail"), "both opinions")
    anna.click_in(".conflict button", 1)
    anna.saved()
    ben.until(lambda: ben.states()[0] == "keep", "peace")
    assert server.await_log(3)[-1] | {"who": "anna", "action": "keep", "replaces": 2} == server.log()[-1]


def test_names_with_html_are_text(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    evil = (
        '<img src=x onerror="window.hit=1">',
        "<script>window.hit=1</script>",
        "&amp;",
        "a\u202eb",
        "'\"><svg onload=window.hit=1>",
    )
    server = serve(made_run(tmp_path / "evil", classes=evil), 'x"><b>anna')
    page = tab(server.address)
    page.press("c")
    shown = page.script("return document.getElementById('chooser').textContent")
    assert all(name in shown for name in evil)
    page.press("\ue00c", "a", "2", "g")
    page.saved()
    page.still()
    assert page.script("return window.hit") is None
    assert page.script("return document.querySelectorAll('main script, main b img, main svg[onload], header b b').length") == 0
    assert evil[0] in page.script("return document.body.textContent") and page.text("who") == 'x"><b>anna'


def test_vectors_show_their_neighbours_by_id(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    page = tab(serve(made_run(tmp_path / "vectors")).address)
    page.until(
        lambda: page.script("return [...document.querySelectorAll('.near li')].map(e => e.textContent)") == ["s039", "s039"],
        "ids",
    )
    assert page.script("return document.querySelectorAll('main img[src]').length") == 0
    page.press("a", "g")
    page.saved()


def command(*words: Any) -> str:
    ran = subprocess.run([sys.executable, "-m", "labelsieve", *map(str, words)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_from_the_page_to_corrected_labels_and_to_the_next_round(serve: Serve, tab: Tab, run: Path, tmp_path: Path) -> None:
    server = serve(run)
    page = tab(server.address)
    ids = page.ids()
    page.press("a", "a", "k", "d", "5")
    page.saved()
    said = {one["id"]: one for one in server.await_log(5)}
    command("apply", run, "--decisions", "--out", tmp_path / "corrected.csv")
    labels = dict(line.split(",") for line in (tmp_path / "corrected.csv").read_text().splitlines()[1:])
    assert labels[ids[0]] == said[ids[0]]["label"] and labels[ids[4]] == said[ids[4]]["label"] and ids[3] not in labels
    command("train", "--decisions", run, "--out", tmp_path / "second", "--epochs", "3", "--set", "training.warmup=2")
    server.stop()
    again = serve(tmp_path / "second", "anna")
    page = tab(again.address)
    page.choose("state", "any")
    shown = page.until(lambda: page.total(), "the second round")
    page.choose("text", ids[0])
    page.until(lambda: page.total() == 0, "what is settled is no issue")
    assert shown > 0
