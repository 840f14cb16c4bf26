"""What can be measured of looks: contrast in light and dark, names for screen readers, phone width, first paint."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browser.page import Page
from browser.server import Server
from review.made import made_run

Serve = Callable[..., Server]
Tab = Callable[..., Page]

# For each visible element that holds text itself: its words, its contrast on what lies behind it, its size.
CONTRASTS = """
const lum = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
  .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
const rgba = text => { const n = text.match(/[\\d.]+/g).map(Number); return n.length === 3 ? [...n, 1] : n; };
const behind = e => {
  for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 1) return c; }
  return [255, 255, 255, 1]; };
const found = [];
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || e.closest(':disabled, option, .tickmark')) continue;
  if (!e.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
  let shade = 1;
  for (let p = e; p; p = p.parentElement) shade *= Number(getComputedStyle(p).opacity);
  const back = behind(e), ink = rgba(getComputedStyle(e).color).map((v, i) => i < 3 ? shade * v + (1 - shade) * back[i] : v);
  const [a, b] = [lum(ink), lum(back)].sort((x, y) => y - x);
  found.push([e.textContent.trim().slice(0, 30), (a + .05) / (b + .05)]);
}
return found;
"""

NAMELESS = """
return [...document.querySelectorAll('button, input, select, [role=option], [role=listbox], dialog, img')]
  .filter(e => e.checkVisibility() && !e.textContent.trim() && !e.labels?.length)
  .filter(e => !e.getAttribute('aria-label') && !e.hasAttribute('alt'))
  .map(e => e.outerHTML.slice(0, 120));
"""

SMALL = """
return [...document.querySelectorAll('button, select, input')].filter(e => e.checkVisibility() && e.type !== 'checkbox')
  .map(e => [e.textContent.slice(0, 20) || e.id, e.getBoundingClientRect()]).filter(([, r]) => r.height < 24 || r.width < 24)
  .map(([name]) => name);
"""


@pytest.fixture(scope="module")
def lookable(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    import shutil

    place = tmp_path_factory.mktemp("looks")
    server = Server(Path(shutil.copytree(demo_run, place / "run"))).start()
    yield server
    server.stop()


@pytest.mark.parametrize("dark", [False, True])
def test_every_text_has_enough_contrast(lookable: Server, tab: Tab, dark: bool) -> None:
    page = tab(lookable.address)
    page.size(1360, 860, dark=dark)
    page.press("a", "k", "d", "u", "3", " ")
    page.saved()
    for mode in ("grid", "single"):
        page.still()
        found = page.script(CONTRASTS)
        assert len(found) > 30 and not [one for one in found if one[1] < 4.5], mode
        page.press("g")
    page.press(*"zzzzz")
    page.saved()


def test_everything_has_a_name_for_those_who_do_not_see_it(lookable: Server, tab: Tab) -> None:
    page = tab(lookable.address)
    page.until(lambda: page.script("return document.querySelectorAll('.near img').length"), "pictures")
    assert page.script(NAMELESS) == [] and page.script("return document.documentElement.lang") == "en"
    active = page.script("return document.getElementById('list').getAttribute('aria-activedescendant')")
    words = page.script("return document.getElementById(arguments[0]).getAttribute('aria-label')", active)
    assert "given" in words and "suggested" in words and "open" in words
    page.press("a")
    page.until(lambda: page.announced("accepted"), "the announcement")
    page.press("z")
    page.saved()
    page.press("g")
    assert page.script(NAMELESS) == []
    page.press("g")


@pytest.mark.parametrize("width", [360, 390, 768])
def test_phone_and_tablet_width(lookable: Server, tab: Tab, width: int) -> None:
    page = tab(lookable.address)
    page.size(width, 780)
    page.driver.refresh()
    page.until(page.cards, "cards")
    for mode in ("grid", "single"):
        assert page.script("return document.documentElement.scrollWidth") <= width, mode
        assert page.script("return document.querySelector('.actions').getBoundingClientRect().bottom") <= 781
        assert page.script(SMALL) == []
        page.click(page.button("Grid / single"))
        page.still()
    page.click(page.button("Filter") if width < 900 else page.by_id("text"))
    assert page.by_id("state").is_displayed()


@pytest.mark.parametrize("width", [920, 1100, 1200, 1360, 1920])
def test_nothing_sticks_out_of_a_desktop_window(lookable: Server, tab: Tab, width: int) -> None:
    page = tab(lookable.address)
    page.size(width, 860)
    page.press("s")
    page.still()
    code = "return [...document.querySelectorAll('header *, .filters *, .actions *')].filter(e => e.checkVisibility() && "
    assert page.script(code + "e.getBoundingClientRect().right > innerWidth + 1).map(e => e.id || e.textContent)") == []
    assert page.script("return document.querySelector('.filters').getBoundingClientRect().height") < 60


def test_the_single_view_tells_those_who_do_not_see_it_where_it_is(lookable: Server, tab: Tab) -> None:
    page = tab(lookable.address)
    ids = page.ids()
    page.press("g")
    page.until(lambda: page.announced(f"{ids[0]}: given "), "the first label")
    assert page.script("return document.activeElement.id") == "detail"
    page.press("\ue014")
    page.until(lambda: page.announced(f"{ids[1]}: given "), "the second label")
    page.press("u")
    page.until(lambda: page.announced(f"not sure; {ids[2]}: given "), "the decision and what comes next")
    page.press("z", "g")
    page.saved()


def test_a_page_that_is_turned_is_told_to_those_who_do_not_see_it(lookable: Server, tab: Tab) -> None:
    page = tab(lookable.address)
    first = page.focus()
    page.press("\ue00f")
    page.until(lambda: page.focus() != first and page.announced(f"{page.focus()}: given "), "the first of the page")


def test_names_from_right_to_left_stay_on_their_side_of_the_arrow(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    page = tab(serve(made_run(tmp_path / "run", classes=("\u0642\u0637\u0629", "\u05db\u05dc\u05d1"))).address)
    page.until(lambda: page.script("return document.querySelectorAll('#detail h2 span').length") == 2, "the label in focus")
    left = "return document.querySelector(arguments[0]).getBoundingClientRect().left"
    assert page.script(left, "#detail h2 .given") < page.script(left, "#detail h2 .suggested")
    pair = page.script("return document.querySelectorAll('#pair option')[1].textContent")
    assert pair.startswith("\u2068\u0642\u0637\u0629\u2069 → \u2068")


def test_long_names_leave_room_for_the_shares_and_vectors_for_their_facts(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    page = tab(serve(made_run(tmp_path / "run", classes=("a_long_name_" * 12, "of many words " * 12, "short"))).address)
    tall = "return [...document.querySelectorAll('.likeliest small')].map(e => e.getBoundingClientRect().height)"
    assert page.until(lambda: page.script(tall), "shares") and max(page.script(tall)) < 24
    page.size(390, 780)
    page.press("g")
    free = "return document.querySelector('.actions').getBoundingClientRect().top - arguments[0].getBoundingClientRect().bottom"
    page.until(lambda: page.script("return document.querySelector('.about')"), "the facts")
    assert page.script(free, page.script("return document.querySelector('.about')")) < 20
    assert page.script("return document.documentElement.scrollWidth") <= 390


def test_the_smallest_chances_are_worded_alike(lookable: Server, tab: Tab) -> None:
    """0.003 % arrives as 0, and stood as "0.0 %" beside "<0.1 %" of larger ones."""
    said = "return import('/static/dom.js').then(({ percent }) => arguments[0].map(percent))"
    shares = [0, 0.0001, 0.0009, 0.001, 0.0149, 0.1, 0.5, 0.996, 1]
    worded = ["<0.1 %", "<0.1 %", "<0.1 %", "0.1 %", "1.5 %", "10 %", "50 %", "99.6 %", "100.0 %"]
    assert tab(lookable.address).script(said, shares) == worded


def test_filters_whose_names_are_hidden_for_want_of_room_say_what_they_are(lookable: Server, tab: Tab) -> None:
    page = tab(lookable.address)
    page.size(1024, 768)
    words = page.script("return ['given', 'suggested', 'text'].map(id => document.getElementById(id).placeholder)")
    assert "given" in words[0] and "suggested" in words[1] and len(set(words)) == 3


@pytest.mark.slow
def test_the_first_paint_at_a_hundred_thousand_issues_comes_within_a_second(serve: Serve, tab: Tab, tmp_path: Path) -> None:
    page = tab(serve(made_run(tmp_path / "large", count=200_000)).address)
    seen = page.until(
        lambda: page.script(
            "const at = name => performance.getEntriesByName(name)[0]?.startTime;"
            "return at('list') && [at('first-contentful-paint'), at('list')]"
        ),
        "the list",
    )
    assert page.total() == 100_000 and seen[0] < 1000 and seen[1] < 1500, seen
