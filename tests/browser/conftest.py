"""A browser, a short real run of the demo's kind, and a server on a fresh copy of it for each test.

Without Chromium and its driver the tests are skipped, loudly; with LABELSIEVE_BROWSER=required that is an error.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labelsieve.config.resolve import resolve
from runs.tiny import whole

REQUIRED = os.environ.get("LABELSIEVE_BROWSER") == "required"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
DRIVER = shutil.which("chromedriver") or shutil.which("chromium.chromedriver")


def missing() -> str:
    """What is not here, or "" ."""
    try:
        import fastapi  # noqa: F401
        import selenium  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        return str(error)
    return (
        ""
        if CHROMIUM and DRIVER
        else "no chromium or no chromedriver was found (Debian: apt-get install chromium chromium-driver)"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here, gone = Path(__file__).parent, missing()
    if gone and not REQUIRED:
        for item in items:
            if here in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=f"NO BROWSER: {gone}"))


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's data, noise and method; fewer samples and epochs."""
    options = {
        "data.noise": "sym:0.4",
        "data.limit": 500,
        "training.epochs": 4,
        "training.warmup": 2,
        "device": "cpu",
        "engine.threads": 1,
    }
    path = tmp_path_factory.mktemp("demo") / "cpc"
    whole(path, resolve("digits", options=options))
    return path


@pytest.fixture
def run(demo_run: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(demo_run, tmp_path / "run"))


@pytest.fixture
def serve() -> Iterator[Callable[..., object]]:
    from browser.server import Server

    started: list[Server] = []

    def start(path: Path, reviewer: str = "anna") -> Server:
        started.append(Server(path, reviewer).start())
        return started[-1]

    yield start
    for server in started:
        server.stop()


def new_driver(profile: Path) -> object:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    assert not missing(), missing()
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(DRIVER)))


@pytest.fixture(scope="session")
def drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], object]]:
    """Browsers that know nothing of each other; started when first asked for."""
    started: dict[int, object] = {}

    def of(number: int) -> object:
        if number not in started:
            started[number] = new_driver(tmp_path_factory.mktemp(f"profile{number}"))
        return started[number]

    yield of
    for driver in started.values():
        driver.quit()  # type: ignore[attr-defined]


@pytest.fixture
def tab(drivers: Callable[[int], object]) -> Iterator[Callable[..., object]]:
    """A tab of browser `number`, of a common size; afterwards the browser must have had nothing to complain about."""
    from browser.page import Page

    used: dict[int, Page] = {}

    def opened(address: str, number: int = 0) -> Page:
        if number not in used:
            page = used[number] = Page(drivers(number))  # type: ignore[arg-type]
            page.driver.get_log("browser")
        used[number].size(1360, 860)
        return used[number].open(address)

    yield opened
    for page in used.values():
        errors = page.errors()
        page.offline(False)
        page.script("localStorage.clear(); sessionStorage.clear(); localStorage.setItem = () => {}")
        page.driver.get("about:blank")
        assert not errors


@pytest.fixture
def server(running: Any) -> Any:
    """The module's own server `running`, on which nothing is decided yet."""
    (running.path / "decisions.jsonl").unlink(missing_ok=True)
    return running


@pytest.fixture
def page(server: Any, tab: Callable[..., object]) -> object:
    return tab(server.address)
