"""A made run, its app behind the guard, and a client that has the token."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
from starlette.testclient import TestClient

from labelsieve.review.opening import Review, open_review
from labelsieve.review.server import review_app
from review.made import made_run

TOKEN, PORT = "t" * 43, 8765


@dataclass
class Page:
    """What a browser would send: the cookie, and the headers of a request from the page itself."""

    client: TestClient
    review: Review
    keys: int = 0

    def get(self, path: str, **query: Any) -> Any:
        return self.client.get(path, params=query)

    def decide(self, *decisions: dict[str, Any]) -> Any:
        return self.client.post("/api/decisions", json={"decisions": list(decisions)})

    def said(self, id: str, action: str = "accept", who: str = "anna", **facts: Any) -> dict[str, Any]:
        self.keys += 1
        return {"key": f"key-{self.keys:08d}", "id": id, "action": action, "who": who} | facts


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return made_run(tmp_path / "run")


def bare(review: Review, **facts: Any) -> TestClient:
    """A client without the token."""
    app = review_app(review, TOKEN, PORT, "anna", **facts)
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", raise_server_exceptions=False)


@pytest.fixture
def page_of() -> Callable[[Path], Page]:
    def opened(path: Path) -> Page:
        review = open_review(path)
        client = bare(review)
        assert client.get("/", params={"token": TOKEN}).status_code == 200
        return Page(client, review)

    return opened


@pytest.fixture
def page(run: Path, page_of: Callable[[Path], Page]) -> Page:
    return page_of(run)
