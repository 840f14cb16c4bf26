"""MkDocs hooks: pages outside docs/ join the site, and links that are right in the repository are right there, too."""

import os.path
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "RESULTS.md", "PAPER.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")
PAGES += ("studies/README.md", "studies/LOG.md", "studies/queue.md")
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?\)|(src=\")([^\"]+)(\")")


def on_files(files: Files, config: Any) -> Files:
    for name in PAGES:
        files.append(File.generated(config, place_of(ROOT / name), content=(ROOT / name).read_text(encoding="utf-8")))
    for name in {target for page in pages() for target in linked(page)}:  # tables, the licence, notebooks: as they are
        if not name.is_relative_to(ROOT / "docs") and name.is_file() and name.suffix != ".md":
            files.append(File.generated(config, place_of(name), content=name.read_bytes()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    home = source_of(page.file.src_uri)

    def moved(found: re.Match[str]) -> str:
        link = found[2] or found[5]
        if "://" in link:
            return found[0]
        target = Path(os.path.normpath(home.parent / link))
        if target.is_dir():
            target = target / "README.md" if (target / "README.md").exists() else target.parent / "README.md"
        place = posixpath.relpath(place_of(target), posixpath.dirname(page.file.src_uri) or ".")
        return f"{found[1]}{place}{found[3] or ''})" if found[2] else found[0]

    return LINK.sub(moved, markdown)


def pages() -> list[Path]:
    return [*(ROOT / name for name in PAGES), *(ROOT / "docs").rglob("*.md")]


def linked(page: Path) -> list[Path]:
    """Files that a page links to."""
    found = (match[2] for match in LINK.finditer(page.read_text(encoding="utf-8")) if match[2] and "://" not in match[2])
    return [Path(os.path.normpath(page.parent / link)) for link in found]


def place_of(path: Path) -> str:
    """Where a file of the repository lies in the site."""
    if path == ROOT / "README.md":
        return "index.md"
    return path.relative_to(ROOT / "docs" if path.is_relative_to(ROOT / "docs") else ROOT).as_posix()


def source_of(place: str) -> Path:
    if place == "index.md":
        return ROOT / "README.md"
    return ROOT / place if place in PAGES else ROOT / "docs" / place
