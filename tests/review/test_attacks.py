"""Attacks on the server: strangers, other sites, forged names, paths, floods, and a run folder made to do harm."""

import io
import json
import pickle
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from labelsieve.errors import ToolError
from labelsieve.review import guard as tokens
from labelsieve.review.guard import BODY
from labelsieve.review.opening import open_review
from labelsieve.review.serving import address, is_loopback, names_for
from review.conftest import PORT, TOKEN, Page, bare
from review.made import made_run

PATHS = ("/", "/api/start", "/api/rows", "/api/row?id=s000", "/api/picture?id=s000", "/api/changes", "/static/main.js")
HOME = f"127.0.0.1:{PORT}"


@pytest.fixture
def stranger(run: Path) -> TestClient:
    return bare(open_review(run))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("cookie", [None, "", "x" * 43, TOKEN + "x", TOKEN[:-1]])
def test_without_the_token_nothing_is_told(stranger: TestClient, path: str, cookie: str | None) -> None:
    headers = {} if cookie is None else {"cookie": f"labelsieve-{PORT}={cookie}"}
    answer = stranger.get(path, headers=headers)
    assert answer.status_code == 401 and "set-cookie" not in answer.headers and "s000" not in answer.text


def test_without_the_token_nothing_is_written(stranger: TestClient, run: Path) -> None:
    body = {"decisions": [{"key": "k" * 8, "id": "s000", "action": "drop", "who": "eve"}]}
    assert stranger.post("/api/decisions", json=body).status_code == 401
    assert stranger.post(f"/api/decisions?token={TOKEN}", json=body).status_code == 401  # only the page's address takes it
    assert not (run / "decisions.jsonl").exists()


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_cannot_use(stranger: TestClient) -> None:
    answer = stranger.get("/", params={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert answer.status_code == 200 and cookie.startswith(f"labelsieve-{PORT}={TOKEN};")
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie and "Domain" not in cookie
    assert TOKEN not in answer.text and stranger.get("/api/start").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1.evil.example", "", "[::1].evil", "192.168.1.7"]
)
def test_a_forged_host_is_refused_even_with_the_cookie(page: Page, host: str) -> None:
    """DNS rebinding: the browser believes evil.example is this machine, and sends along what it has."""
    for path in PATHS:
        assert page.client.get(path, headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", [HOME, "localhost:9000", "localhost", f"[::1]:{PORT}", f"LOCALHOST:{PORT}"])
def test_the_names_of_this_machine_are_taken_on_any_port(page: Page, host: str) -> None:
    """A tunnel changes the port."""
    assert page.client.get("/api/start", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", f"http://localhost:{PORT + 1}", f"http://{HOME}.evil.example", "file://"]
)
def test_a_foreign_origin_is_refused(page: Page, run: Path, origin: str) -> None:
    """CSRF: another page in the same browser posts a decision."""
    body = {"decisions": [page.said("s000")]}
    assert page.client.post("/api/decisions", json=body, headers={"origin": origin}).status_code == 403
    assert page.client.get("/api/start", headers={"origin": origin}).status_code == 403
    assert not (run / "decisions.jsonl").exists()
    assert page.client.post("/api/decisions", json=body, headers={"origin": f"http://{HOME}"}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_another_site_starts_are_refused(page: Page, site: str) -> None:
    for path in PATHS[1:]:
        assert page.client.get(path, headers={"sec-fetch-site": site}).status_code == 403
    assert page.client.post("/api/decisions", json={}, headers={"sec-fetch-site": site}).status_code == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_forms_of_other_pages_are_refused(page: Page, run: Path, kind: str) -> None:
    """What a form or a simple request can send without asking first."""
    body = json.dumps({"decisions": [page.said("s000")]})
    answer = page.client.post("/api/decisions", content=body, headers={"content-type": kind})
    assert answer.status_code == 415 and not (run / "decisions.jsonl").exists()


@pytest.mark.parametrize("path", [*PATHS, "/nowhere"])
def test_every_answer_carries_the_policy(page: Page, path: str) -> None:
    headers = page.client.get(path).headers
    policy = {part.split()[0]: part.split()[1:] for part in headers["content-security-policy"].split(";")}
    assert policy["default-src"] == ["'none'"] and policy["script-src"] == ["'self'"] and policy["style-src"] == ["'self'"]
    assert policy["frame-ancestors"] == ["'none'"] and policy["base-uri"] == ["'none'"] and policy["form-action"] == ["'none'"]
    assert "unsafe" not in headers["content-security-policy"] and "http" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin" and "server" not in headers


def test_refusals_carry_the_policy_too(stranger: TestClient) -> None:
    assert "default-src 'none'" in stranger.get("/").headers["content-security-policy"]


WALKS = (
    "../config.yaml",
    "..%2fconfig.yaml",
    "%2e%2e/config.yaml",
    "....//config.yaml",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "..\\config.yaml",
)


@pytest.mark.parametrize("walk", WALKS)
def test_no_path_leads_out_of_the_static_files(page: Page, walk: str) -> None:
    for path in (f"/static/{walk}", f"/{walk}", f"/api/picture/{walk}"):
        answer = page.client.get(path)
        assert answer.status_code == 404 and "root:" not in answer.text and "source:" not in answer.text


@pytest.mark.parametrize(
    "path", ["/static", "/static/", "/api", "/api/", "/docs", "/redoc", "/openapi.json", "/static/__init__.py"]
)
def test_no_folder_is_listed_and_no_docs_are_served(page: Page, path: str) -> None:
    assert page.client.get(path).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(page: Page, method: str) -> None:
    assert page.client.request(method, "/api/decisions").status_code in (404, 405)


def test_a_body_that_is_too_large_is_refused(page: Page) -> None:
    headers = {"content-type": "application/json"}
    assert page.client.post("/api/decisions", content=b" " * (BODY + 1), headers=headers).status_code == 413


def test_a_body_that_never_ends_is_cut_off(page: Page) -> None:
    """No length is announced; the server counts what comes."""
    sent = 0

    def flood() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(200):
            sent += 1
            yield b" " * 65536

    answer = page.client.post("/api/decisions", content=flood(), headers={"content-type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"decisions":[]}', b'{"decisions":{}}', b"[" * 100_000, b"\xff\xfe", b'{"decisions":null}']
)
def test_bodies_that_are_no_decisions_are_refused_in_words(page: Page, body: bytes) -> None:
    answer = page.client.post("/api/decisions", content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422) and "Traceback" not in answer.text


def test_too_many_decisions_at_once_are_refused(page: Page, run: Path) -> None:
    assert page.decide(*(page.said("s000", who="a") for _ in range(5001))).status_code == 422
    assert not (run / "decisions.jsonl").exists()


def test_names_with_html_come_as_json_text(page: Page) -> None:
    """The page makes text nodes of them; the browser test looks at that."""
    answer = page.get("/api/start")
    assert answer.headers["content-type"] == "application/json" and "<b>cow</b>" in answer.json()["classes"]


def test_the_static_page_names_no_outside_address_and_runs_no_inline_code() -> None:
    import re
    from importlib.resources import files

    for file in (files("labelsieve.review") / "static").iterdir():
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http:" not in text and "https:" not in text and "//cdn" not in text, file.name
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), file.name
        if file.name.endswith(".html"):
            assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=|javascript:", text)


# --- pictures


@pytest.fixture
def album(tmp_path: Path) -> Path:
    """A run over picture files, with a secret beside them."""
    data = tmp_path / "data"
    names = ("cat", "dog")
    for row in range(4):
        folder = data / names[row % 2]
        folder.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (300, 200), (60 * row, 0, 0)).save(folder / f"{row}.png")
    Image.new("RGB", (9, 9)).save(tmp_path / "secret.png")
    run = made_run(tmp_path / "run", count=4, classes=names, source=f"pictures:{data}", parquet=False)
    text = (run / "issues.csv").read_text()
    for row in range(4):
        text = text.replace(f"s{row:03d}", f"{names[row % 2]}/{row}.png")
    (run / "issues.csv").write_text(text)
    for name in ("scores.npz", "neighbours.npz"):
        (run / name).unlink()
    return run


def test_pictures_of_the_run_are_served_by_id(album: Path, page_of: Callable[[Path], Page]) -> None:
    page = page_of(album)
    assert page.get("/api/picture", id="cat/0.png").status_code == 503  # not opened yet: nobody waits
    page.review.pictures.open()
    small = page.get("/api/picture", id="cat/0.png")
    assert small.headers["content-type"] == "image/jpeg" and Image.open(io.BytesIO(small.content)).size == (224, 149)
    large = page.get("/api/picture", id="dog/1.png", size="large")
    assert Image.open(io.BytesIO(large.content)).size == (300, 200)
    assert page.get("/api/changes").json()["shown"] == {"ready": True, "remark": ""}


@pytest.mark.parametrize(
    "name", ["../secret.png", "/etc/passwd", "cat/../../secret.png", "cat/9.png", "", "secret.png", "cat/0.png\0"]
)
def test_only_ids_of_the_run_are_pictures(album: Path, page_of: Callable[[Path], Page], name: str) -> None:
    page = page_of(album)
    page.review.pictures.open()
    answer = page.get("/api/picture", id=name)
    assert answer.status_code == 404 and not answer.headers["content-type"].startswith("image")


def test_a_picture_that_became_a_link_out_of_the_data_is_not_served(album: Path, page_of: Callable[[Path], Page]) -> None:
    page = page_of(album)
    page.review.pictures.open()
    inside = album.parent / "data" / "cat" / "0.png"
    inside.unlink()
    inside.symlink_to(album.parent / "secret.png")
    answer = page.get("/api/picture", id="cat/0.png")
    assert answer.status_code == 404 and "leads out" in answer.json()["error"]


def test_a_picture_that_is_none_or_a_bomb_is_said_to_be_so(album: Path, page_of: Callable[[Path], Page]) -> None:
    page = page_of(album)
    page.review.pictures.open()
    (album.parent / "data" / "cat" / "0.png").write_bytes(b"<script>alert(1)</script>")
    answer = page.get("/api/picture", id="cat/0.png")
    assert answer.status_code == 404 and "script" not in answer.text
    Image.new("1", (9500, 9500)).save(album.parent / "data" / "dog" / "1.png")
    assert "bomb" in page.get("/api/picture", id="dog/1.png").json()["error"]


def test_data_that_changed_are_not_shown_for_the_old_ones(album: Path, page_of: Callable[[Path], Page]) -> None:
    (album.parent / "data" / "cat" / "0.png").rename(album.parent / "data" / "dog" / "0.png")
    page = page_of(album)
    page.review.pictures.open()
    assert page.get("/api/picture", id="cat/2.png").status_code == 404
    assert "changed since the run" in page.get("/api/changes").json()["shown"]["remark"]


# --- a run folder made to do harm


class Bomb:
    def __reduce__(self) -> Any:
        return (exec, ("import os; os.environ['LABELSIEVE_HIT'] = '1'",))


def pickled_npz(path: Path, **arrays: Any) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for name, value in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.array([value], dtype=object), allow_pickle=True)
            archive.writestr(f"{name}.npy", buffer.getvalue())


@pytest.mark.parametrize("name", ["scores.npz", "neighbours.npz"])
def test_arrays_that_would_run_code_are_refused(run: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABELSIEVE_HIT", raising=False)
    pickled_npz(run / name, ids=Bomb(), of=Bomb(), classes=Bomb())
    with pytest.raises(ToolError, match="Python objects"):
        open_review(run)
    (run / name).write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ToolError, match="NumPy"):
        open_review(run)
    import os

    assert "LABELSIEVE_HIT" not in os.environ


@pytest.mark.parametrize(
    "text",
    [
        "!!python/object/apply:os.system ['touch hit']\n",
        "data: !!python/name:os.system\n",
        "a: &a [*a, *a]\n",
        "[" * 1200,
        "\x00",
    ],
)
def test_a_configuration_that_would_run_code_is_refused(run: Path, text: str) -> None:
    (run / "config.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(ToolError, match="config.yaml"):
        open_review(run)
    assert not Path("hit").exists()


@pytest.mark.parametrize("line", [b"{}\n", b"not json\n", b'{"seq": 1}\n', b"[" * 100_000 + b"\n"])
def test_a_log_that_is_damaged_is_named(run: Path, line: bytes) -> None:
    (run / "decisions.jsonl").write_bytes(line)
    with pytest.raises(ToolError, match="decisions.jsonl"):
        open_review(run)


def test_a_log_that_is_a_link_is_not_followed(run: Path, tmp_path: Path, page_of: Callable[[Path], Page]) -> None:
    target = tmp_path / "precious"
    target.write_text("")
    (run / "decisions.jsonl").symlink_to(target)
    with pytest.raises(ToolError, match="decisions.jsonl"):
        open_review(run)
    assert target.read_text() == ""


# --- the token, and where it is bound


def test_the_token_outlives_the_server_and_differs_by_run_and_by_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "a"))
    first = tokens.run_token(tmp_path / "run")
    assert len(first) == 43 and first == tokens.run_token(tmp_path / "run") != tokens.run_token(tmp_path / "other")
    secret = tmp_path / "a" / "labelsieve" / tokens.NAME
    assert secret.stat().st_mode & 0o777 == 0o600 and not any((tmp_path / "run").glob("*"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "b"))
    assert tokens.run_token(tmp_path / "run") != first


def test_a_secret_that_others_could_read_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    first = tokens.run_token(tmp_path)
    (tmp_path / "labelsieve" / tokens.NAME).chmod(0o644)
    assert tokens.run_token(tmp_path) != first


def test_two_first_reviews_at_once_share_one_whole_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is held up when it has made its secret and not yet written it, the second until the first is through."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    real, begun, found = tokens.secrets.token_bytes, [], {}
    first_is_through = threading.Event()

    def start(name: str) -> None:
        found[name] = tokens.run_token(tmp_path / "run")

    second = threading.Thread(target=start, args=("second",))

    def slow(count: int) -> bytes:
        if count != 32:  # a draft's name, not a secret
            return real(count)
        begun.append(count)
        if len(begun) == 1:
            second.start()
            while len(begun) < 2 and second.is_alive():
                time.sleep(0.001)
        else:
            first_is_through.wait(60)
        return real(count)

    monkeypatch.setattr(tokens.secrets, "token_bytes", slow)
    start("first")
    first_is_through.set()
    second.join()
    secret = (tmp_path / "labelsieve" / tokens.NAME).read_bytes()
    assert len(secret) == 32 and found["first"] == found["second"] == tokens.run_token(tmp_path / "run")
    assert [file.name for file in (tmp_path / "labelsieve").iterdir()] == [tokens.NAME]


def test_where_no_secret_can_be_kept_the_token_is_new_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert len({tokens.run_token(tmp_path) for _ in range(3)}) == 3


def test_names_the_server_answers_to(run: Path) -> None:
    review = open_review(run)
    for host, name, status in [
        ("127.0.0.1", "10.0.0.5", 421),
        ("0.0.0.0", "10.0.0.5", 401),
        ("0.0.0.0", "evil.example", 421),
        ("10.0.0.5", "10.0.0.5", 401),
    ]:
        assert bare(review, hosts=names_for(host)).get("/", headers={"host": f"{name}:1"}).status_code == status
    assert is_loopback("127.0.0.1") and is_loopback("localhost") and is_loopback("::1") and not is_loopback("0.0.0.0")
    assert address("0.0.0.0", 80, "t") == "http://127.0.0.1:80/?token=t" and address("::1", 80, "t") == "http://[::1]:80/?token=t"
