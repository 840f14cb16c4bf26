"""Is this checkout ready to be released as TAG? `python .ci/ready_to_release.py v1.2.3` ends with 1 and says what is missing."""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def missing(tag: str, root: Path = ROOT) -> list[str]:
    """What has to be done before, in sentences."""
    version = re.search(r'__version__ = "(.+)"', (root / "src/labelsieve/version.py").read_text(encoding="utf-8"))
    named = version[1] if version else ""
    found = []
    if tag != f"v{named}":
        found.append(f"the tag is {tag}, src/labelsieve/version.py says {named}: make them agree")
    if f"version: {named}\n" not in (root / "CITATION.cff").read_text(encoding="utf-8"):
        found.append(f"CITATION.cff names another version than {named}")
    if f"## {named}," not in (root / "CHANGELOG.md").read_text(encoding="utf-8"):
        found.append(f'CHANGELOG.md has no heading "## {named}, DATE"')
    urls = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]
    if any("example.org" in url for url in urls.values()):
        found.append("[project.urls] in pyproject.toml still has the placeholder example.org: write the repository's address")
    return found


if __name__ == "__main__":
    told = missing(sys.argv[1])
    print("\n".join(told) or "ready")
    sys.exit(1 if told else 0)
