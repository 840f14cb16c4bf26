"""The report on paper: what is folded on a screen is printed whole."""

import subprocess
from pathlib import Path

from browser.conftest import CHROMIUM
from labelsieve.report.markup import element
from labelsieve.report.page import Section, page, table


def pages(folder: Path, body: str) -> int:
    (folder / "page.html").write_text(page("A page", "", [Section("Part", body)]))
    assert CHROMIUM is not None
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    subprocess.run(
        [*words, f"--print-to-pdf={folder / 'page.pdf'}", (folder / "page.html").as_uri()], check=True, capture_output=True
    )
    return (folder / "page.pdf").read_bytes().count(b"/Type /Page\n")


def test_folds_are_open_on_paper(tmp_path: Path) -> None:
    rows = table(("a", "b"), [(str(number), "x") for number in range(200)])
    folded = element("details", element("summary", "200 rows"), rows)
    assert pages(tmp_path, folded) == pages(tmp_path, rows) > 3
