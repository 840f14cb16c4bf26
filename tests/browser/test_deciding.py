"""Deciding by keys and by mouse, in the grid and alone; undoing, selecting, choosing, filtering, reloading."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from browser.page import BACKSPACE, CONTROL, DOWN, END, ENTER, ESCAPE, HOME, PAGE_DOWN, RIGHT, SHIFT, Page
from browser.server import Server
from review.made import made_run

Tab = Callable[..., Page]


@pytest.fixture(scope="module")
def running(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all: starting it takes longer than a test."""
    place = tmp_path_factory.mktemp("deciding")
    server = Server(Path(shutil.copytree(demo_run, place / "run")), state=place).start()
    yield server
    server.stop()


def actions(server: Server) -> list[tuple[str, str]]:
    return [(one["id"], one["action"]) for one in server.log()]


def test_keys_decide_and_are_saved(page: Page, server: Server) -> None:
    ids = page.ids()
    assert page.focus() == ids[0] and "token" not in page.driver.current_url
    page.press("a", "k", "3", "d", "u", ENTER)
    assert page.focus() == ids[6]
    page.saved()
    assert page.states()[:7] == ["accept", "keep", "relabel", "drop", "unsure", "accept", "open"]
    assert actions(server) == list(zip(ids, ["accept", "keep", "relabel", "drop", "unsure", "accept"]))
    assert {one["who"] for one in server.log()} == {"anna"}
    page.until(lambda: page.text("progress").startswith("6 of "), "progress")
    assert "wrong left" in page.text("left")


def test_undo_and_redo_have_no_end(page: Page, server: Server) -> None:
    page.press(*"akdu" * 10)
    page.press(*"z" * 40)
    page.saved()
    server.await_log(80)
    assert set(page.states()) == {"open"} and page.by_id("do-undo").get_attribute("disabled")
    page.press(*"y" * 40)
    page.saved()
    server.await_log(120)
    assert page.by_id("do-redo").get_attribute("disabled")
    last = {one["id"]: one["action"] for one in server.log()}
    assert sorted(last.values()) == sorted(["accept", "keep", "drop", "unsure"] * 10)
    page.chord(CONTROL, "z")
    page.saved()
    assert server.await_log(121)[-1]["action"] == "clear"


def test_a_decision_over_another_is_undone_to_the_other(page: Page, server: Server) -> None:
    page.press("k", HOME, "d")
    page.saved()
    page.press("z")
    page.saved()
    page.until(lambda: page.states()[0] == "keep", "what was there before")
    assert [one["action"] for one in server.await_log(3)] == ["keep", "drop", "keep"]
    page.press(HOME, BACKSPACE)
    page.saved()
    page.until(lambda: page.states()[0] == "open", "none at all")
    assert server.await_log(4)[-1]["action"] == "clear"


def rate(page: Page) -> float:
    """As the page has it, by its own clock; 0 where it gives none."""
    return float(page.script("return import('/static/decide.js').then((found) => found.rate() ?? 0)"))


def test_the_rate_is_of_decisions_that_stand(page: Page) -> None:
    """In the first ten seconds it is counted as if ten had passed."""
    page.press(*"aka")
    page.saved()
    page.until(lambda: " a minute" in page.text("progress"), "the rate")
    before = rate(page)
    assert 0 < before <= 18
    page.press(HOME, "d", HOME, "a")  # a change of mind is no further label
    assert 0 < rate(page) <= before
    page.press(*"zz")
    page.press(HOME, BACKSPACE)
    page.until(lambda: 0 < rate(page) <= 12, "two decisions")
    page.press(*"zzz")  # the clearing, and two of the three
    page.saved()
    assert rate(page) == 0 and "a minute" not in page.text("progress")
    page.press("y", "y")
    assert rate(page) > 0
    page.saved()  # the next test begins without these


def test_arrows_and_shift_select_and_one_undo_takes_all_back(page: Page, server: Server) -> None:
    ids = page.ids()
    page.press(RIGHT)
    page.chord(SHIFT, RIGHT, RIGHT, RIGHT)
    assert page.selected() == 4
    page.press("a")
    page.saved()
    assert [one["id"] for one in server.await_log(4)] == ids[1:5]
    assert page.selected() == 0 and page.focus() == ids[5]
    page.press("z")
    page.saved()
    assert [one["action"] for one in server.await_log(8)[4:]] == ["clear"] * 4 and set(page.states()) == {"open"}


def test_rows_and_pages_by_keys(page: Page) -> None:
    first = page.ids()
    columns = int(page.script("return getComputedStyle(document.getElementById('list')).gridTemplateColumns.split(' ').length"))
    page.press(DOWN)
    assert page.focus() == first[columns]
    page.press(PAGE_DOWN)
    page.until(lambda: page.ids() and page.ids()[0] != first[0], "the next page")
    assert not set(page.ids()) & set(first) and page.text("page").startswith("2 / ")
    page.press(END)
    page.until(lambda: page.text("page").split(" / ")[0] == page.text("page").split(" / ")[1], "the last page")
    page.press(HOME)
    page.until(lambda: page.ids() == first, "the first page")


def test_a_whole_page_at_once(page: Page, server: Server) -> None:
    ids = page.ids()
    page.press("s")
    assert page.selected() == len(ids)
    page.press("a")
    page.saved()
    assert {one["id"] for one in server.await_log(len(ids))} == set(ids)
    page.until(lambda: page.text("page").startswith("2 / "), "the next page")


def test_mouse(page: Page, server: Server) -> None:
    cards, ids = page.cards(), page.ids()
    page.click(cards[2])
    assert page.focus() == ids[2]
    page.click(page.button("Accept"))
    page.saved()
    assert actions(server) == [(ids[2], "accept")]
    page.click(cards[4])
    page.click(cards[6], held=SHIFT)
    page.click(cards[8], held=CONTROL)
    assert page.selected() == 4
    page.click(page.button("Keep"))
    page.saved()
    assert [one["id"] for one in server.await_log(5)[1:]] == [ids[n] for n in (4, 5, 6, 8)]
    page.click(page.button("Undo"))
    page.click(page.button("Undo"))
    page.saved()
    assert set(page.states()) == {"open"}
    page.click(page.button("Drop"))
    page.saved()
    assert server.await_log(11)[-1]["action"] == "drop"


def test_a_class_is_found_by_typing(page: Page, server: Server) -> None:
    page.press("c", "7", ENTER)
    page.saved()
    entry = server.await_log(1)[0]
    assert (entry["action"], entry["label"]) == ("relabel", "7")
    page.press("c", "x", "y", "z")
    assert "no class" in page.script("return document.getElementById('chooser').textContent")
    page.press(ESCAPE, "c", DOWN, ENTER)
    page.saved()
    assert server.await_log(2)[1]["action"] == "relabel"


def test_a_picture_like_this_one_is_listed_when_pressed(page: Page) -> None:
    before = page.ids()
    alike = "document.querySelectorAll('.alike li')"
    page.until(lambda: page.script(f"return {alike}.length") == 6, "the samples like this one")
    page.until(lambda: page.script(f"return {alike}[0].querySelector('img') !== null"), "its picture")
    wanted = page.script(f"return {alike}[0].querySelector('img').alt")
    page.script(f"{alike}[0].querySelector('button').click()")
    page.until(lambda: wanted in page.ids() and page.ids() != before, "the list of it")
    page.script("document.getElementById('clear').click()")
    page.until(lambda: page.ids() == before, "the whole list")


def test_the_single_view_by_keys_alone(page: Page, server: Server) -> None:
    ids = page.ids()
    page.press("g")
    page.until(lambda: page.script("return document.querySelector('#detail .reason')?.textContent.length > 10"), "the reason")
    page.until(
        lambda: page.script("const i = document.querySelector('.large img'); return i && i.naturalWidth === 8"), "the picture"
    )
    page.until(lambda: page.script("return document.querySelectorAll('.near img').length >= 6"), "the neighbours")
    assert page.script("return document.querySelector('.spark path') !== null")
    page.press("a", RIGHT, "k", "1")
    page.saved()
    assert [one["id"] for one in server.await_log(3)] == [ids[0], ids[2], ids[3]]
    page.press("z", "z", "z", "g")
    page.saved()
    page.until(lambda: page.ids() == ids and set(page.states()) == {"open"}, "the grid")


def test_filters_by_state_class_pair_and_text(page: Page) -> None:
    whole = page.total()
    page.press("a", "a", "k")
    page.saved()
    page.choose("state", "accept")
    page.until(lambda: page.total() == 2, "two accepted")
    page.choose("state", "any")
    page.choose("given", "3")
    given = "return [...new Set([...document.querySelectorAll('.card:not([hidden]) .given')].map(e => e.textContent))]"
    page.until(lambda: page.script(given) == ["3"] and 2 < page.total() < whole, "threes only")
    page.click(page.by_id("clear"))
    page.until(lambda: page.total() == whole - 3, "the open ones")
    pair = page.script("return document.getElementById('pair').options[1].value")
    count = int(page.script("return document.getElementById('pair').options[1].textContent").split("(")[1].rstrip(")"))
    page.choose("state", "any")
    page.choose("pair", pair)
    page.until(lambda: page.total() == count, "the pair")
    page.click(page.by_id("clear"))
    page.until(lambda: page.total() == whole - 3, "the open ones again")
    wanted = page.ids()[0]
    page.press("/", *wanted, ENTER)
    # A busy machine may look for the first letters only, and they may be enough.
    typed = "return import('/static/store.js').then(({ store }) => [store.filter.text, store.rows.size])"
    page.until(lambda: page.script(typed) == [wanted, 1] and page.ids() == [wanted], "the id")
    page.press("a")  # the focus is back on the list
    page.saved()
    assert page.states() == ["accept"]


def test_a_reload_loses_nothing_and_undo_goes_on(page: Page, server: Server) -> None:
    ids = page.ids()
    page.press("a", "k", "d")
    page.saved()
    page.driver.refresh()
    page.until(lambda: page.ids() and page.ids()[0] == ids[3], "the list from the first open label on")
    page.press("z", "z")
    page.saved()
    assert [(one["id"], one["action"]) for one in server.await_log(5)[3:]] == [(ids[2], "clear"), (ids[1], "clear")]
    page.press("r")
    page.until(lambda: page.ids()[:2] == [ids[1], ids[2]], "a fresh list")


def test_next_open_and_help(page: Page) -> None:
    ids = page.ids()
    page.press("a", "a", HOME, "o")
    page.until(lambda: page.focus() == ids[2], "the next open one")
    page.saved()
    page.press("?")
    words = page.script("return document.getElementById('keys').open && document.getElementById('keys').textContent")
    for word in (
        "accept the suggestion",
        "keep the given label",
        "type to find",
        "drop",
        "not sure",
        "undo",
        "redo",
        "select several",
    ):
        assert word in words
    page.press(ESCAPE)
    assert not page.script("return document.getElementById('keys').open")


def test_a_selection_beyond_the_pages_shown_is_decided_whole(serve: Callable[..., Server], tab: Tab, tmp_path: Path) -> None:
    server = serve(made_run(tmp_path / "run", count=12_000))
    page = tab(server.address)
    page.chord(SHIFT, END)
    page.until(lambda: page.text("total") == "5,000 selected of 6,000 labels", "the selection, which has a bound")
    page.press(ESCAPE, HOME, *[RIGHT] * 3)
    for _ in range(30):
        page.chord(SHIFT, DOWN)
    chosen = int(page.text("total").split()[0].replace(",", ""))
    page.chord(SHIFT, END)
    page.press(HOME)
    page.chord(SHIFT, END)
    page.press("u")
    log = server.await_log(5000)
    assert chosen > 30 and [one["id"] for one in log] == [f"s{n:03d}" for n in range(5000)]
    page.saved()
    page.press("z")
    assert len({one["id"] for one in server.await_log(10_000) if one["action"] == "clear"}) == 5000


def test_keys_go_on_after_a_click_in_the_single_view(page: Page, server: Server) -> None:
    """Enter accepts; it does not press the button that was clicked before once more."""
    page.click(page.button("Grid / single"))
    page.click(page.button("Keep"))
    page.press(ENTER)
    page.click(page.button("Choose"))
    page.press(ENTER)
    page.press(ENTER)
    page.saved()
    assert [action for _, action in actions(server)] == ["keep", "accept", "relabel", "accept"]
    page.click(page.button("Grid / single"))
    assert page.script("return document.activeElement.id") == "list"


def test_a_decision_that_the_server_refuses_does_not_stay_on_the_page(page: Page, server: Server) -> None:
    page.script("localStorage.setItem('labelsieve:who', '=1+cmd\\nanna')")  # of an earlier visit
    page.driver.refresh()
    page.until(lambda: page.text("who") == "=1+cmd" and page.cards(), "the page again")
    page.press("a")
    page.until(lambda: "did not take a decision" in page.text("banner") and page.states()[0] == "open", "the refusal")
    assert page.by_id("do-undo").get_attribute("disabled") and not server.log()
    page.click(page.by_id("who"))
    for name, fits in (("=2", False), ("zero\u200bwidth", False), ("anna", True)):
        page.script("document.querySelector('#naming input').value = arguments[0]", name)
        page.click(page.button("Save"))
        assert page.script("return document.getElementById('naming').open") is not fits, name
    page.press(HOME, "a")
    page.saved()
    assert not page.text("banner") and [one["who"] for one in server.await_log(1)] == ["anna"]
    page.errors()  # the refusals above are in the browser's log


def test_help_begins_at_its_beginning_and_slash_unfolds_the_filters_on_a_phone(page: Page) -> None:
    page.size(390, 600)
    page.press("?")
    assert page.script("return document.getElementById('keys').scrollTop") == 0
    page.press(ESCAPE, "/")
    assert page.by_id("more").get_attribute("aria-expanded") == "true" and page.by_id("text").is_displayed()
