"""The browser that `review` opens: what it is called with can be seen by everybody, and so lets nobody in a second time."""

import os
import socket
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from labelsieve.cli.main import main
from labelsieve.review import guard, serving
from labelsieve.review.guard import Invitation, owner_of
from labelsieve.review.opening import open_review
from review.conftest import PORT, TOKEN, bare


@pytest.fixture
def invited() -> Invitation:
    return Invitation(PORT)


@pytest.fixture
def visitor(run: Path, invited: Invitation) -> Callable[[], TestClient]:
    return lambda: bare(open_review(run), invitation=invited)


def test_the_first_visitor_gets_the_cookie_and_no_other(visitor: Callable[[], TestClient], invited: Invitation) -> None:
    first, second = visitor(), visitor()
    assert first.get("/", params={"once": "x" * 43}).status_code == 401
    assert first.get("/api/start", params={"once": invited.code}).status_code == 401  # only the page's address takes it
    answer = first.get("/", params={"once": invited.code})
    assert answer.status_code == 200 and f"={TOKEN};" in answer.headers["set-cookie"]
    assert first.get("/api/start").status_code == 200
    assert second.get("/", params={"once": invited.code}).status_code == 401
    assert first.get("/", params={"once": invited.code}).status_code == 200  # a reload: it has the cookie


def test_another_user_of_the_machine_is_not_let_in_and_does_not_use_it_up(
    visitor: Callable[[], TestClient], invited: Invitation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "owner_of", lambda peer, port: os.getuid() + 1)
    assert visitor().get("/", params={"once": invited.code}).status_code == 401
    monkeypatch.setattr(guard, "owner_of", lambda peer, port: os.getuid())
    assert visitor().get("/", params={"once": invited.code}).status_code == 200


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux says who is behind a connection")
def test_the_system_says_who_is_behind_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as peer:
        assert owner_of(peer.getsockname()[1], server.getsockname()[1]) == os.getuid()
        assert owner_of(peer.getsockname()[1], 1) is None


def test_a_system_that_does_not_say_is_taken_at_its_word(tmp_path: Path) -> None:
    assert owner_of(1, 2, (tmp_path / "none",)) is None


def test_the_browser_is_not_called_with_the_token(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(serving, "serve", lambda *given: given[-1]())  # ready
    monkeypatch.setattr("labelsieve.review.guard.run_token", lambda path: TOKEN)
    monkeypatch.setattr(sys, "argv", ["labelsieve", "review", str(run), "--port", "0"])
    with pytest.raises(SystemExit):
        main()
    assert len(opened) == 1 and "/?once=" in opened[0] and TOKEN not in opened[0]
