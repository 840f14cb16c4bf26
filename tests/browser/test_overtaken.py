"""Answers that come late, twice, in another order or from somebody else: what the page shows is what stands in the log."""

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browser.page import END, HOME, LEFT, RIGHT, SHIFT, Page
from browser.server import Server
from labelsieve.decisions.decision import Decision
from labelsieve.decisions.log import DecisionLog
from review.made import CLASSES, made_run

Serve = Callable[..., Server]
Tab = Callable[..., Page]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("overtaken")
    server = Server(made_run(place / "run", count=400), state=place).start()
    yield server
    server.stop()


def keeps(server: Server, who: str, *rows: int, replaces: int | None = None) -> None:
    """Another process writes to the same log."""
    when = "2026-11-15T10:00:00Z"
    said = [Decision(f"{who}-{row:08d}", f"s{row:03d}", "keep", CLASSES[row % 5], who, when, None, replaces) for row in rows]
    DecisionLog(server.path).append(said)


def test_news_that_were_overtaken_do_not_undo_a_decision(page: Page, server: Server) -> None:
    """An answer made before a decision was saved, and read after it."""
    page.hold("/api/changes", '"state":"drop"')
    page.press("d")
    page.until_held()
    page.press("z")
    server.await_log(2)
    page.saved()
    seen = page.script(
        "const seen = []; window.watched = seen; const card = document.querySelector('.card');"
        "new MutationObserver(() => seen.push(card.dataset.state)).observe(card, {attributes: true}); window.release();"
        "return card.dataset.state"
    )
    assert seen == "open"
    page.press(RIGHT, "k")
    page.saved()
    page.until(lambda: page.text("progress").startswith("1 of "), "a later look at the server")
    assert "drop" not in page.script("return window.watched") and page.states()[:2] == ["open", "keep"]


def test_rows_that_were_overtaken_by_news_hear_of_them_again(page: Page, server: Server, tab: Tab) -> None:
    """A page of rows that another person decides on while it is on its way."""
    per_page = len(page.ids())
    page.hold("/api/rows")
    page.press("r")
    page.until_held()
    other = tab(server.address, 1)
    name = other.focus()
    other.press("d")
    other.saved()
    page.until(lambda: page.text("progress").startswith("1 of "), "news of the other's decision")
    page.let_go()
    page.until(lambda: len(page.ids()) == per_page and page.ids()[0] == name, "the list, let go")
    page.until(lambda: page.states()[0] == "drop", "what the other decided")


def test_news_that_overtake_the_answer_to_ones_own_decision_are_heard_again(page: Page, server: Server) -> None:
    """Another saw it in the log and decided otherwise, all before the page knew that its own was saved."""
    page.hold("/api/decisions")
    page.press("d")
    page.until_held()
    keeps(server, "ben", 0, 5, replaces=1)
    page.until(lambda: page.states()[5] == "keep", "news of the other's decisions")
    page.let_go()
    page.saved()
    page.until(lambda: page.states()[0] == "keep", "what stands")


def test_an_older_look_does_not_set_progress_back(page: Page) -> None:
    """A page that comes to the front looks at once, though another look may be on its way."""
    page.hold("/api/changes", '"progress"')
    page.press("d")
    page.until_held()
    page.press("k")
    page.saved()
    page.script("document.dispatchEvent(new Event('visibilitychange'))")
    page.until(lambda: page.text("progress").startswith("2 of "), "the newer look")
    page.let_go()
    assert page.text("progress").startswith("2 of ")


def test_next_open_does_not_move_one_who_went_on(page: Page) -> None:
    page.hold("/api/next")
    page.press("o")
    page.until_held()
    page.press(END)
    page.until(lambda: page.focus() == "s199", "the last label")
    page.let_go()
    assert page.focus() == "s199"


def test_next_open_passes_over_what_is_decided_and_not_saved_yet(page: Page) -> None:
    page.hold("/api/decisions")
    page.press("a", "a", RIGHT, "k", HOME)
    page.until_held()
    page.press("o")
    page.until(lambda: page.focus() == "s002", "the next open one")
    page.press("o")
    page.until(lambda: page.focus() == "s004", "the one after it")
    page.let_go()
    page.saved()


def test_a_selection_that_is_loading_overtakes_nothing_and_moves_nobody(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    """What is pressed before its rows are here is neither decided before it nor lost among it; one who went on stays there."""
    server = serve(made_run(tmp_path / "run", count=4000))
    page = tab(server.address)
    page.chord(SHIFT, END)
    page.until(lambda: page.text("total").startswith("2,000 selected"), "the selection")
    page.hold("limit=500")
    page.press("u")
    page.until_held()
    page.press("d", HOME, "z", RIGHT, RIGHT)
    page.let_go()
    log = server.await_log(2000)
    page.saved()
    assert {one["action"] for one in log} == {"unsure"} and len(server.log()) == 2000
    assert page.focus() == "s002"


def named(page: Page, name: str) -> None:
    page.script("localStorage.setItem('labelsieve:who', arguments[0] + '\\nanna')", name)
    page.driver.refresh()
    page.until(lambda: page.text("who") == name and page.cards(), "the page again")
    page.until(lambda: page.script("return document.querySelector('#detail .reason')?.textContent.length > 10"), "the reason")


def test_what_stood_when_a_decision_was_refused_does_not_replace_what_was_decided_since(page: Page, server: Server) -> None:
    named(page, "=1+cmd")
    page.hold("/api/row?id=s000")
    page.press("a")
    page.until_held()
    page.click(page.by_id("who"))
    page.script("document.querySelector('#naming input').value = 'anna'")
    page.click(page.button("Save"))
    page.press(HOME, "d")
    server.await_log(1)
    page.saved()
    page.until(lambda: page.text("progress").startswith("1 of "), "a look at the server")
    page.let_go()
    assert page.states()[0] == "drop"
    page.errors()  # the refusal above is in the browser's log


def test_a_refusal_after_which_the_server_is_gone_does_not_hide_what_stands(page: Page, server: Server) -> None:
    keeps(server, "ben", 0)
    page.choose("state", "any")
    page.until(lambda: page.states()[0] == "keep", "what ben decided")
    named(page, "=1+cmd")
    page.script(
        "const real = window.fetch; window.fetch = (path, ...rest) => String(path).startsWith('/api/row?')"
        " ? Promise.reject(new TypeError('gone')) : real(path, ...rest);"
    )
    page.press("a")
    page.until(lambda: "did not take a decision" in page.text("banner"), "the refusal")
    page.until(lambda: page.states()[0] == "keep", "what stands")
    page.errors()


def test_undoing_takes_back_what_was_saved_many_steps_later_under_another_name(page: Page, server: Server) -> None:
    """Sixty decisions are made before the page hears that the first is saved; taking back another's names what was seen."""
    page.hold("/api/decisions")
    page.press(*"k" * 60)
    page.until_held()
    page.let_go()
    server.await_log(60)
    page.saved()
    page.click(page.by_id("who"))
    page.script("document.querySelector('#naming input').value = 'ben'")
    page.click(page.button("Save"))
    page.press(*"z" * 60)
    server.await_log(120)
    page.saved()
    assert not [name for name, state in DecisionLog(server.path).states().items() if state.current is not None]


def test_a_page_that_grew_while_it_was_loading_is_loaded_whole(page: Page) -> None:
    code = """
    const done = arguments[0];
    Promise.all([import('/static/store.js'), import('/static/list.js')]).then(([{ store }, { go, show }]) => {
      store.perPage = 12;
      go(96);
      store.perPage = 24;
      show().then(() => done([...store.rows.keys()].filter((place) => place >= 96 && place < 120).length));
    });
    """
    assert page.driver.execute_async_script(code) == 24


NOT_SAVED = """
const real = window.fetch;
window.asked = [];
window.fetch = async (path, ...rest) => {
  if (String(path).startsWith('/api/decisions')) return Response.json({ error: 'no space' }, { status: 507 });
  const answer = await real(path, ...rest);
  window.asked.push(String(path));
  return answer;
};
"""


def test_what_is_not_saved_yet_stays_decided_in_a_fresh_list(page: Page) -> None:
    page.script(NOT_SAVED)
    page.press("d", "k", HOME)
    page.press("r")
    page.until(lambda: any("/api/rows" in path for path in page.script("return window.asked")), "the fresh list")
    page.loaded()
    assert page.states()[:3] == ["drop", "keep", "open"] and page.text("saved") == "2 not saved yet"


def test_a_decision_that_waits_does_not_ask_for_details_over_and_over(page: Page, server: Server) -> None:
    keeps(server, "ben", 0)
    DecisionLog(server.path).append([Decision("carl-0001", "s000", "drop", None, "carl", "2026-11-15T10:00:00Z")])
    past = "return document.querySelector('#detail .past')?.textContent ?? ''"
    page.until(lambda: page.states()[0] == "conflict" and "carl" in page.script(past), "the conflict, in its detail, too")
    page.script(NOT_SAVED)
    page.press("k", LEFT)
    looks = "return window.asked.filter((path) => path.startsWith('/api/changes')).length"
    before = page.script(looks)
    page.until(lambda: page.script(looks) >= before + 2, "two looks at the server")
    assert page.script("return window.asked.filter((path) => path === '/api/row?id=s000').length") <= 1


def test_a_list_that_was_asked_for_in_vain_comes_with_the_server(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    server = serve(made_run(tmp_path / "run"))
    page = tab(server.address)
    page.size(390, 600)  # as many cards with the banner as without it, so that nothing else asks for them
    page.until(lambda: page.script("return document.documentElement.clientWidth") == 390, "a narrow page")
    server.kill()
    page.press("r")
    page.until(lambda: "server is gone" in page.text("banner"), "the banner")
    server.start()
    page.until(lambda: page.script("return import('/static/store.js').then(({ store }) => store.rows.size)"), "the list")
    page.press("d")
    page.saved()
    assert [(one["id"], one["action"]) for one in server.await_log(1)] == [("s000", "drop")]


def test_a_strange_server_in_the_same_place_takes_nothing_away(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    """Between a kill and a restart another program may get the port; what it answers is no refusal."""
    server = serve(made_run(tmp_path / "run"))
    page = tab(server.address)
    server.kill()
    posts = []

    class Strange(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def do_POST(self) -> None:
            posts.append(self.path)
            self.send_error(404)

        def log_message(self, *words: object) -> None:
            pass

    strange = ThreadingHTTPServer(("127.0.0.1", server.port), Strange)
    thread = threading.Thread(target=strange.serve_forever)
    thread.start()
    try:
        page.press("a", "d")
        page.until(lambda: len(posts) >= 2, "decisions sent to it")
    finally:
        strange.shutdown()
        strange.server_close()
        thread.join()
    server.start()
    page.saved()
    assert [one["action"] for one in server.await_log(2)] == ["accept", "drop"]
    page.until(lambda: not page.text("banner"), "no banner")
    page.errors()  # the strange answers are in the browser's log


def test_a_page_of_another_log_begins_anew_though_that_has_more_decisions(page: Page, server: Server, tmp_path: Path) -> None:
    page.press("d")
    page.saved()
    page.choose("state", "any")
    page.until(lambda: page.states()[0] == "drop", "the list with what was decided")
    page.until(lambda: page.text("progress").startswith("1 of "), "a look at the server")
    kept = Server(tmp_path)
    keeps(kept, "ben", 3, 4)
    (tmp_path / "decisions.jsonl").replace(server.path / "decisions.jsonl")
    page.until(lambda: page.states()[:5] == ["open", "open", "open", "keep", "keep"], "what stands in the other log")


def test_a_key_while_the_list_is_on_its_way_decides_nothing_and_says_so(page: Page, server: Server) -> None:
    page.hold("given=", every=True)  # a list that is laid out anew meanwhile asks once more
    page.choose("given", CLASSES[1])
    page.until_held()
    page.press_at_once("d")
    page.until(lambda: page.announced("the list is still loading"), "a word on the key")
    page.let_go()
    page.until(lambda: page.ids()[:2] == ["s001", "s006"], "the list")
    page.press("d")
    server.await_log(1)
    page.saved()
    page.until(lambda: page.states()[:2] == ["drop", "open"], "one decision")
