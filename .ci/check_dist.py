"""Tries dist/ as a user would get it: installs the wheel in a fresh environment and trains with it, outside of the checkout.

`python .ci/check_dist.py` takes the other packages from the environment it runs in, so it needs no network.
"""

import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

DIST = Path(__file__).parents[1] / "dist"
CODE = "import labelsieve, sys; print(labelsieve.__file__); assert labelsieve.__file__.startswith(sys.prefix)"


def main() -> None:
    (wheel,), (source,) = sorted(DIST.glob("*.whl")), sorted(DIST.glob("*.tar.gz"))
    check_contents(wheel, source)
    with tempfile.TemporaryDirectory() as place:
        home = Path(place).resolve()
        venv.create(home / "env", with_pip=True)
        python = home / "env" / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
        run = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]
        subprocess.run([*run, str(wheel)], check=True, cwd=home)
        ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
        site = subprocess.run([str(python), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()
        lent = [path for path in sys.path if path.endswith("site-packages")] or [sysconfig.get_path("purelib")]
        (Path(site) / "lent.pth").write_text("\n".join(lent), encoding="utf-8")
        subprocess.run([str(python), "-c", CODE], check=True, cwd=home)
        verb = [str(python.with_name("labelsieve" + python.suffix))]
        subprocess.run([*verb, "--version"], check=True, cwd=home)
        words = ["train", "digits", "--noise", "sym:0.2", "--limit", "200", "--epochs", "3", "--device", "cpu", "--out", "run"]
        subprocess.run([*verb, *words, "--set", "training.warmup=1"], check=True, cwd=home, stdout=subprocess.DEVNULL)
        subprocess.run([*verb, "report", "run"], check=True, cwd=home)
        for name in ("issues.csv", "model.safetensors", "report.html"):
            assert (home / "run" / name).stat().st_size, name
    print(f"{wheel.name} and {source.name} are fine")


def check_contents(wheel: Path, source: Path) -> None:
    """What users install holds the page's files and no tests or studies; the source distribution holds the tests, too."""
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if not name.startswith("labelsieve")], names
    assert {"labelsieve/py.typed", "labelsieve/review/static/main.js"} <= {*names}, names
    with tarfile.open(source) as packed:
        held = {name.partition("/")[2] for name in packed.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "src/labelsieve/version.py"} <= held, held


if __name__ == "__main__":
    main()
