"""timm's own weights: taken from this machine, downloaded after it is said, or what to download is said. The hub is local."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import save

from backbones.conftest import TINY
from labelsieve.backbones.hub import Weights, own_weights
from labelsieve.errors import ToolError

REPOSITORY = f"timm/{TINY}.r160_in1k"
PROGRAM = f"""
import sys
from labelsieve.backbones.hub import own_weights
from labelsieve.errors import ToolError
try:
    print(own_weights("{TINY}").fetched(print, offline="offline" in sys.argv))
except ToolError as error:
    print(f"error: {{error}}")
"""


class Hub(BaseHTTPRequestHandler):
    """Has one file, and answers as the Hugging Face hub does."""

    content: bytes
    asked: list[str]

    def do_HEAD(self) -> None:
        self._answer(False)

    def do_GET(self) -> None:
        self._answer(True)

    def _answer(self, whole: bool) -> None:
        type(self).asked.append(f"{self.command} {self.path}")
        found = self.path.partition("?")[0].endswith(f"/{REPOSITORY}/resolve/main/model.safetensors")
        self.send_response(200 if found else 404)
        if not found:
            self.send_header("X-Error-Code", "EntryNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.send_header("ETag", '"0123456789abcdef"')
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("Content-Length", str(len(self.content)))
        self.end_headers()
        if whole:
            self.wfile.write(self.content)

    def log_message(self, form: str, *words: object) -> None:
        """Quietly."""


@pytest.fixture
def hub(timm: ModuleType) -> Iterator[tuple[str, type[Hub]]]:
    handler = type("OneFile", (Hub,), {"content": save(timm.create_model(TINY).state_dict()), "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", handler
    finally:
        server.shutdown()
        server.server_close()


def asked(home: Path, endpoint: str, *words: str) -> list[str]:
    """What a process of its own says, whose only hub is at `endpoint`, and whose caches lie in `home`."""
    told = {"HF_HOME": str(home / "hf"), "HF_ENDPOINT": endpoint, "TORCH_HOME": str(home / "torch"), "HF_HUB_DISABLE_XET": "1"}
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower() and not name.startswith("HF_")}
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, env=kept | told, check=True)
    return done.stdout.splitlines()


def test_what_is_downloaded_is_said_first_and_downloaded_once(hub: tuple[str, type[Hub]], tmp_path: Path) -> None:
    endpoint, handler = hub
    said, place = asked(tmp_path, endpoint)
    assert said.startswith(f"downloading weights: {REPOSITORY}, model.safetensors (") and "hf/hub" in said
    assert Path(place).read_bytes() == handler.content
    seen = len(handler.asked)
    assert asked(tmp_path, endpoint) == [place]
    assert asked(tmp_path, "http://127.0.0.1:9", "offline") == [place]
    assert len(handler.asked) == seen, "what is on this machine is taken without a word to the hub"


def test_offline_refuses_and_says_what_to_download(hub: tuple[str, type[Hub]], tmp_path: Path) -> None:
    endpoint, handler = hub
    (said,) = asked(tmp_path, endpoint, "offline")
    assert said.startswith(f"error: the weights of {TINY}.r160_in1k are not on this machine") and "this is offline" in said
    assert f"{endpoint}/{REPOSITORY}/resolve/main/model.safetensors" in said and "--weights FILE" in said
    assert not handler.asked


def test_a_hub_that_cannot_be_reached_is_named_with_what_to_download(timm: ModuleType, tmp_path: Path) -> None:
    (said,) = asked(tmp_path, "http://127.0.0.1:9")
    assert "cannot be fetched" in said and f"{REPOSITORY}/resolve/main/model.safetensors" in said and "--weights FILE" in said


def test_weights_at_an_address_are_fetched_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of timm's networks have an address in place of a repository."""
    (tmp_path / "far.pth").write_bytes(b"weights")
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "torch"))
    address = (tmp_path / "far.pth").as_uri()
    offered, said = Weights("x", None, (), address), list[str]()
    assert offered.cached() is None
    with pytest.raises(ToolError, match=f"download {address}"):
        offered.fetched(said.append, offline=True)
    assert offered.fetched(said.append).read_bytes() == b"weights" and address in said[0]
    assert offered.cached() == tmp_path / "torch" / "checkpoints" / "far.pth" and len(said) == 1
    assert offered.fetched(said.append) == offered.cached() and len(said) == 1


def test_networks_without_weights_are_told_apart(timm: ModuleType) -> None:
    bare = next(name for name in timm.list_models() if not timm.is_model_pretrained(name))
    with pytest.raises(ToolError, match="timm has no weights of .* name another backbone"):
        own_weights(bare).fetched(lambda text: None)
    assert own_weights("tf_efficientnet_lite0").repository == "timm/tf_efficientnet_lite0.in1k"
    assert own_weights("resnet18.a1_in1k").files == ("model.safetensors", "pytorch_model.safetensors", "pytorch_model.bin")
    assert json.dumps(own_weights("resnet18").name) == '"resnet18.a1_in1k"'
