"""The map of all samples, and samples that are odd themselves, in a real browser."""

import csv
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.action_chains import ActionChains

from browser.page import ESCAPE, Page
from browser.server import Server
from labelsieve.texts import as_csv

OPEN = "return document.getElementById('map').open"
# Of a copy: Chromium complains of a canvas that is read back again and again, and the page never reads its own.
INK = """
const c = document.getElementById('ground');
if (!c.width || !c.height) return false;
const pen = new OffscreenCanvas(c.width, c.height).getContext('2d', { willReadFrequently: true });
pen.drawImage(c, 0, 0);
return pen.getImageData(0, 0, c.width, c.height).data.some((v, i) => i % 4 === 3 && v > 0);
"""


@pytest.fixture(scope="module")
def running(demo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demo's run, two samples of which are made a copy of each other, and one blurred."""
    place = tmp_path_factory.mktemp("map")
    run = Path(shutil.copytree(demo_run, place / "run"))
    (run / "issues.parquet").unlink(missing_ok=True)
    with (run / "issues.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    first, other = rows[-1], next(row for row in rows[::-1] if row["given_label"] != rows[-1]["given_label"])
    first |= {"sample_issue": "near copy", "copy_of": other["id"]}
    other |= {"sample_issue": "near copy", "copy_of": first["id"]}
    rows[0]["sample_issue"] = "blurred"
    (run / "issues.csv").write_text(as_csv(list(rows[0]), [list(row.values()) for row in rows]), encoding="utf-8", newline="")
    server = Server(run, state=place).start()
    yield server
    server.stop()


def opened(page: Page) -> Page:
    page.press("m")
    page.until(lambda: page.script(OPEN) and page.script(INK), "dots on the map")
    return page


def test_a_line_around_dots_lists_them(page: Page) -> None:
    everything = page.total()
    opened(page)
    field = page.by_id("drawn")
    side = field.size["width"]
    chain = ActionChains(page.driver).move_to_element_with_offset(field, -side // 2 + 4, -side // 2 + 4).click_and_hold()
    for step in ((side // 2, 0), (0, side - 8), (-side // 2, 0), (0, -side + 30)):
        chain = chain.move_by_offset(*step)
    chain.release().perform()
    page.until(lambda: not page.script(OPEN) and page.text("area"), "the list of the area")
    page.until(lambda: 0 < page.total() < 500 and page.total() != everything, "its samples")
    page.click(page.by_id("area"))
    page.until(lambda: page.total() == everything, "all issues again")


def test_a_dot_is_shown_and_listed_when_it_is_pressed(page: Page) -> None:
    opened(page)
    place = page.script("""
      return import('/static/api.js').then((api) => api.map()).then((b) => {
        const n = new DataView(b).getUint32(0, true);
        const at = new Uint16Array(b.slice(4 + 4 * n, 4 + 8 * n));
        return [at[2 * (n - 1)] / 65535, at[2 * (n - 1) + 1] / 65535];
      });
    """)
    field = page.by_id("drawn")
    side = field.size["width"]
    there = [round((value - 0.5) * side) for value in place]
    ActionChains(page.driver).move_to_element_with_offset(field, *there).perform()
    page.until(lambda: page.script("return !document.getElementById('tip').hidden"), "the picture beside the dot")
    name = page.script("return document.querySelector('#tip small').textContent")
    ActionChains(page.driver).click().perform()
    page.until(lambda: not page.script(OPEN) and page.ids() == [name], "that sample alone")


def test_the_map_closes_and_keys_go_to_the_list_again(page: Page) -> None:
    opened(page)
    page.press_at_once(ESCAPE)
    page.until(lambda: not page.script(OPEN), "the map closed")
    page.press("k")
    page.saved()
    assert page.states()[0] == "keep"


def test_one_of_two_copies_stays(page: Page, server: Server) -> None:
    page.choose("own", "near copy")
    page.until(lambda: page.total() == 2 and len(page.ids()) == 2, "both copies")
    page.until(lambda: page.script("return document.querySelectorAll('.twice button').length") == 2, "both side by side")
    drawn = "return [...document.querySelectorAll('.twice img')].every((one) => one.complete && one.naturalHeight)"
    page.until(lambda: page.script(drawn), "their pictures drawn, after which no button moves")
    first, other = page.focus().split(" ")[0], page.script("return document.querySelector('.twice .id').textContent")
    page.click_in(".twice button")
    page.saved()
    assert [(one["id"], one["action"]) for one in server.await_log(2)] == [(first, "keep"), (other, "drop")]
    page.press("z")
    page.saved()
    assert [one["action"] for one in server.await_log(4)[2:]] == ["clear", "clear"]
    assert page.script("return document.querySelector('.odd b').textContent") == "near copy"
