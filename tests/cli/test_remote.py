"""Data in a bucket: a real S3 server, and between it and us a door that fails, cuts and dawdles."""

import http.client
import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from backbones.photos import folder
from cli.conftest import Shell
from labelsieve.data import remote
from labelsieve.data.pictures.manifest import read_manifest
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.remote import LIST, address_in, is_inside, local_copy
from labelsieve.errors import ToolError, UsageError
from train.test_ranks import labelsieve, ranks, said_by

s3fs = pytest.importorskip("s3fs", reason="the extra remote is not installed")
moto = pytest.importorskip("moto.server", reason="moto is not installed")
BUCKET = "photos"


class Door(ThreadingHTTPServer):
    """Passes requests on to the store. `faults` has, by the end of a path, what befalls the first requests for it."""

    daemon_threads = True

    def __init__(self, store: int) -> None:
        super().__init__(("127.0.0.1", 0), Passing)
        self.store = store
        self.faults: dict[str, list[str]] = {}
        self.asked: Counter[str] = Counter()

    def fault(self, path: str) -> str:
        path = path.partition("?")[0]
        self.asked[path] += 1
        for end, left in self.faults.items():
            if path.endswith(end) and left:
                return left[0] if left[0] == "forbidden" else left.pop(0)
        return ""


class Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Door

    def do_GET(self) -> None:
        fault = self.server.fault(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        store = http.client.HTTPConnection("127.0.0.1", self.server.store)
        store.request(self.command, self.path, body or None, {k: v for k, v in self.headers.items() if k.lower() != "host"})
        answer = store.getresponse()
        content = answer.read()
        status = {"500": 500, "forbidden": 403}.get(fault, answer.status)
        content = b"<Error><Code>AccessDenied</Code></Error>" if fault == "forbidden" else b"" if fault == "500" else content
        self.send_response(status)
        for name, value in answer.getheaders() if status == answer.status else []:
            if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                self.send_header(name, value)
        self.send_header(
            "Content-Length", answer.getheader("Content-Length") or "0" if self.command == "HEAD" else str(len(content))
        )
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault == "cut":
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            self.close_connection = True
            return
        if fault == "slow":
            for k in range(0, len(content), max(1, len(content) // 4)):
                self.wfile.write(content[k : k + max(1, len(content) // 4)])
                self.wfile.flush()
                time.sleep(0.05)
            return
        self.wfile.write(content)

    do_HEAD = do_PUT = do_POST = do_DELETE = do_GET

    def log_message(self, *words: Any) -> None:
        """Nobody listens."""


@pytest.fixture(scope="module")
def store() -> Iterator[int]:
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield server.get_host_and_port()[1]
    finally:
        server.stop()


@pytest.fixture
def door(store: int, monkeypatch: pytest.MonkeyPatch, own_cache: None) -> Iterator[Door]:
    door = Door(store)
    threading.Thread(target=door.serve_forever, daemon=True).start()
    known = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (known | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{door.server_port}"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "PAUSE", 0.01)
    s3fs.S3FileSystem.clear_instance_cache()
    yield door
    door.shutdown()
    door.server_close()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def bucket(door: Door, tmp_path: Path) -> str:
    """Twenty photos in folders of two classes, and two tables of them: with paths, and with whole addresses."""
    root = folder(tmp_path / "data")
    name = f"{BUCKET}-{os.urandom(4).hex()}"
    files = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.png"))
    rows = [(file, file.partition("/")[0]) for file in files]
    (root / "table.csv").write_text("path,label\n" + "".join(f"{file},{label}\n" for file, label in rows))
    (root / "full.csv").write_text("path,label\n" + "".join(f"s3://{name}/set/{file},{label}\n" for file, label in rows))
    files_of = s3fs.S3FileSystem()
    files_of.mkdir(name)
    files_of.put(str(root), f"{name}/set", recursive=True)
    files_of.invalidate_cache()
    door.asked.clear()
    return f"s3://{name}/set"


def pictures(top: Path) -> set[str]:
    return {path.relative_to(top).as_posix() for path in top.rglob("*.png")}


def test_a_folder_is_copied_once_whatever_befalls_it(door: Door, bucket: str, tmp_path: Path) -> None:
    faults = {"cat/000.png": ["500", "500"], "cat/001.png": ["cut"], "dog/002.png": ["slow"], "dog/003.png": ["cut", "500"]}
    door.faults = dict(faults)
    copied = local_copy(bucket, cache=tmp_path / "cache")
    assert copied.missing == {} and copied.files == 22 and not any(door.faults.values())
    for name in pictures(tmp_path / "data"):
        assert (copied.path / name).read_bytes() == (tmp_path / "data" / name).read_bytes()
    assert not list(copied.path.rglob("*.part"))
    door.asked.clear()
    assert local_copy(bucket, cache=tmp_path / "cache").files == 22
    assert not any(path.endswith(".png") for path in door.asked)


def test_what_was_interrupted_goes_on_and_what_cannot_be_copied_is_listed(door: Door, bucket: str, tmp_path: Path) -> None:
    door.faults = {"dog/004.png": ["500"] * 100, "cat/005.png": ["forbidden"]}
    copied = local_copy(f"{bucket}/table.csv", cache=tmp_path / "cache")
    assert set(copied.missing) == {"dog/004.png", "cat/005.png"} and copied.path.name == "table.csv"
    assert len(pictures(copied.path.parent)) == 18
    listed = (copied.path.parent / LIST).read_text().splitlines()
    assert sorted(line.partition("\t")[0] for line in listed) == ["cat/005.png", "dog/004.png"]
    assert any("2 files could not be copied" in line for line in copied.words(bucket))
    door.faults = {}
    door.asked.clear()
    again = local_copy(f"{bucket}/table.csv", cache=tmp_path / "cache")
    assert again.missing == {} and len(pictures(again.path.parent)) == 20 and not (again.path.parent / LIST).exists()
    assert {path.rpartition("/set/")[2] for path in door.asked if path.endswith(".png")} == {"dog/004.png", "cat/005.png"}


def test_whole_addresses_in_a_table_are_paths_from_it(door: Door, bucket: str, tmp_path: Path) -> None:
    copied = local_copy(f"{bucket}/full.csv", cache=tmp_path / "cache")
    assert copied.missing == {} and len(pictures(copied.path.parent)) == 20
    assert copied.path.read_text().splitlines()[1] == "cat/000.png,cat"


def table_of_another_bucket(bucket: str, kind: str, more: tuple[str, ...] = ()) -> str:
    """A table in a bucket of its own; its pictures lie in `bucket`."""
    store = s3fs.S3FileSystem()
    files = [f"s3://{name}" for name in store.glob(f"{bucket}/*/*.png")]
    rows = {"path": [*files, *more], "label": [*(file.split("/")[-2] for file in files), *("cat" for _ in more)]}
    home = f"tables-{os.urandom(4).hex()}"
    store.mkdir(home)
    with store.open(f"{home}/table.{kind}", "wb") as file:
        if kind == "parquet":
            pytest.importorskip("pyarrow.parquet").write_table(pytest.importorskip("pyarrow").table(rows), file)
        else:
            file.write("".join(f"{path},{label}\n" for path, label in [("path", "label"), *zip(*rows.values())]).encode())
    return f"s3://{home}/table.{kind}"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_pictures_in_another_bucket_than_their_table(door: Door, bucket: str, kind: str, tmp_path: Path) -> None:
    table = table_of_another_bucket(bucket, kind)
    door.faults = {"cat/000.png": ["500", "cut"], "dog/001.png": ["slow"], "dog/002.png": ["forbidden"]}
    copied = local_copy(table, cache=tmp_path / "cache")
    refused = f"{bucket}/dog/002.png"
    assert list(copied.missing) == [refused] and copied.files == 20 and len(pictures(copied.path.parent)) == 19
    home = f"{bucket.removesuffix('set')}"
    assert copied.words(table)[1] == f"the table names pictures in other places: {home}"
    listing = read_manifest(copied.path, PictureOptions())
    gone = listing.origin.examined()[1]
    assert len(listing) == 20 and list(gone.values()) == ["it is a web address that was not copied"]
    door.faults = {}
    door.asked.clear()
    assert local_copy(table, cache=tmp_path / "cache").missing == {}
    assert {path.rpartition("/set/")[2] for path in door.asked if path.endswith(".png")} == {"dog/002.png"}


def test_pictures_below_a_root_on_this_machine_are_not_asked_for(door: Door, bucket: str, shell: Shell, tmp_path: Path) -> None:
    copied = local_copy(f"{bucket}/table.csv", PictureOptions(root=tmp_path / "data"), cache=tmp_path / "cache")
    assert copied.files == 1 and not any(path.endswith(".png") for path in door.asked)
    far = shell("inspect", f"{bucket}/table.csv", "--root", "s3://other/set")
    assert far.code == 2 and far.err.count("\n") == 1 and "write whole addresses into it" in far.err


def test_a_table_leads_nowhere_but_to_stores(door: Door, bucket: str, tmp_path: Path) -> None:
    """A stranger's table must not open just anything, nor put a file elsewhere than into the copy."""
    odd = ("local:///etc/hostname", f"{bucket}/../../up.png", "zip://a.png::https://h/b.zip", "http://127.0.0.1:1/a.png")
    copied = local_copy(table_of_another_bucket(bucket, "csv", odd), cache=tmp_path / "cache")
    assert set(copied.missing) == set(odd) and copied.files == 21
    assert copied.missing[odd[0]] == "local:// is not followed from inside a table"
    assert copied.missing[odd[1]] == "a file here cannot have such a name"


def test_a_bucket_that_may_not_be_read_is_one_sentence(door: Door, bucket: str, tmp_path: Path) -> None:
    table = table_of_another_bucket(bucket, "csv")
    door.faults = {".png": ["forbidden"]}
    for address in (table, f"{bucket}/table.csv"):
        with pytest.raises(ToolError, match=r"none of its 20 files could be copied \(.*AccessDenied.*your credentials"):
            local_copy(address, cache=tmp_path / "cache")


def test_a_run_trains_on_a_bucket_and_resumes_without_it(door: Door, bucket: str, shell: Shell, tmp_path: Path) -> None:
    quick = ("--size", "16", "--device", "cpu", "--epochs", "2", "--set", "training.warmup=1", "--set", "training.batch=8")
    run = shell("train", f"{bucket}/table.csv", *quick, "--out", tmp_path / "run", "--time-limit", "1s")
    assert run.code == 0 and "21 files are in" in run.out and "stopped after epoch" in run.out, run.err
    door.faults = {"": ["forbidden"]}
    assert shell("resume", tmp_path / "run").code == 0
    assert (tmp_path / "run" / "issues.csv").read_text().count("\n") == 21


@pytest.mark.slow
def test_two_ranks_say_once_that_a_bucket_may_not_be_read(door: Door, bucket: str, tmp_path: Path) -> None:
    door.faults = {"": ["forbidden"]}
    where = {name: os.environ[name] for name in os.environ if name.startswith(("AWS_", "XDG_"))}
    command = labelsieve("train", f"{bucket}/table.csv", "--device", "cpu", "--out", "run")
    said = said_by(ranks([command] * 2, [tmp_path] * 2, **where))
    assert "you may not read it" in said and "check your credentials" in said


def test_what_cannot_be_is_said_in_one_sentence(door: Door, bucket: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="there is nothing there"):
        local_copy(f"{bucket}/none.csv", cache=tmp_path / "cache")
    with pytest.raises(ToolError, match="there is nothing there"):
        local_copy(f"{bucket}/nowhere", cache=tmp_path / "cache")
    door.faults = {"": ["forbidden"]}
    with pytest.raises(ToolError, match="you may not read it.*check your credentials"):
        local_copy(f"{bucket}/table.csv", cache=tmp_path / "cache")
    with pytest.raises(ToolError, match="you may not read it.*check your credentials"):
        local_copy(bucket, cache=tmp_path / "other")
    with pytest.raises(UsageError, match="odd://"):
        local_copy("odd://bucket/table.csv", cache=tmp_path / "cache")


@pytest.mark.parametrize("name", ["../a.png", "a/../../b.png", "/etc/passwd", "a\\..\\b", "a\0b", "", "a//b", "./a"])
def test_names_in_a_store_that_lead_elsewhere_are_not_copied(name: str) -> None:
    assert not is_inside(name) and is_inside("a/b.png") and is_inside("..a/b..png")


def test_an_address_is_known_by_its_form() -> None:
    assert address_in("s3://b/t.csv") == ("", "s3://b/t.csv") and address_in("webvision:gs://b/w") == ("webvision", "gs://b/w")
    assert address_in("cifar10:/data") is None and address_in("file:///data") is None and address_in("photos") is None
