"""Hostile values in every place of a run's files: each is one sentence that names the file, or a value that such a file may have.

Below the commands, where thousands take seconds; `make attack` draws the same values and runs the commands on them.
"""

import io
import json
import math
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

pytest.importorskip("hypothesis")
from attack.values import NASTY
from cli.conftest import Shell
from labelsieve import run_files
from labelsieve.backbones.pictures import FeatureStore
from labelsieve.config.resolve import validate
from labelsieve.config.schema import Config, dotted_keys, override
from labelsieve.data.npz import read_npz
from labelsieve.data.pictures.looks import LOOK
from labelsieve.errors import ToolError
from labelsieve.predict.model import load_model
from labelsieve.results.kept import read_answers
from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.tiny import pictures, tiny_config

GONE = object()


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory, source: str) -> Path:
    begun = start(tmp_path_factory.mktemp("stopped") / "run", tiny_config(source, output__slim_checkpoint=True))
    next(iter(each_epoch(begun, stop=lambda: True)))
    return begun.folder.path


def nodes(tree: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place of a tree; of a list its first entry."""
    yield place
    below = tree.items() if isinstance(tree, dict) else list(enumerate(tree))[:1] if isinstance(tree, list) else ()
    for key, one in below:
        yield from nodes(one, (*place, key))


def planted(tree: Any, place: tuple[Any, ...], value: Any) -> Any:
    if not place:
        return value
    tree = spot = deepcopy(tree)
    for key in place[:-1]:
        spot = spot[key]
    if value is GONE:
        del spot[place[-1]]
    else:
        spot[place[-1]] = value
    return tree


def all_planted(tree: Any) -> Iterator[Any]:
    """Each value in every eighth place, so that there are thousands and not tens of thousands."""
    for number, place in enumerate(nodes(tree)):
        for value in (*NASTY[number % 8 :: 8], GONE):
            if place or value is not GONE:
                yield planted(tree, place, value)


def numbers(tree: Any) -> Iterator[float]:
    if isinstance(tree, (dict, list)):
        for one in tree.values() if isinstance(tree, dict) else tree:
            yield from numbers(one)
    elif isinstance(tree, (int, float)):
        yield tree


@pytest.mark.parametrize("name", ["metrics.jsonl", "timings.jsonl", "environment.json", "model.json", "state.json"])
def test_what_is_read_has_the_numbers_that_we_write_and_no_null_where_readers_expect_none(
    finished: Path, tmp_path: Path, name: str
) -> None:
    (file,) = finished.glob(f"checkpoint/*/{name}") if name == "state.json" else (finished / name,)
    tree = json.loads(file.read_text().splitlines()[1] if name.endswith("l") else file.read_text())
    said: list[str] = []
    for each in all_planted(tree):
        (tmp_path / name).write_bytes(json.dumps(each).encode(errors="surrogatepass"))
        try:
            found = run_files.records(tmp_path / name)[0] if name.endswith("l") else run_files.facts(tmp_path / name)
        except ToolError as error:
            said.append(str(error))
        else:
            known = {key: found[key] for key in tree.keys() & found.keys()}
            assert all(math.isfinite(one) and abs(one) < 1e39 for one in numbers(known))
            assert None not in found.values() or name != "metrics.jsonl"
    assert len(said) > 25 and all(name in one and len(one) < 600 for one in said)


LIES: dict[str, Any] = {
    "accuracy": {"both": float("nan")},
    "validation": {"both": 101},
    "clean_share": [-0.1],
    "wrong_labels": -1,
    "epoch": -1,
    "auc_loss": [float("inf")],
}


@pytest.mark.parametrize("name", LIES)
def test_a_report_has_no_figure_that_is_none(finished: Path, tmp_path: Path, shell: Shell, name: str) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    lines = [json.loads(line) | {name: LIES[name]} for line in (run / "metrics.jsonl").read_text().splitlines()]
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    answer = shell("report", run)
    assert answer.code == 1 and "metrics.jsonl, line 1: " in answer.err and "put it back" in answer.err


STATES: dict[str, dict[str, Any]] = {
    "is of epoch 2": {"epoch": 2},
    "metrics end with 7": {"metrics": [{"epoch": 7, "phase": "warm-up"}]},
    "not two numbers": {"values": [0.5]},
    "not true or false": {"done": 1},
    '"training.epochs" is 9': {
        "decision": {
            "estimate": {"share": 0.1, "low": 0, "high": 0.2, "by_class": [0.1], "by": "x"},
            "lambda_u": 0,
            "mixture_threshold": 0.5,
            "mixture_memory": 1,
            "epochs": 9 * 10**9,
        }
    },
}


@pytest.mark.parametrize("kind", ["checkpoint", "slim"])
@pytest.mark.parametrize("said", STATES)
def test_a_checkpoint_says_of_itself_what_is_so(stopped: Path, tmp_path: Path, kind: str, said: str) -> None:
    run = Path(shutil.copytree(stopped, tmp_path / "run"))
    shutil.rmtree(run / ("slim" if kind == "checkpoint" else "checkpoint"))
    (file,) = run.glob(f"{kind}/*/state.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | STATES[said]))
    with pytest.raises(ToolError, match=said) as caught:
        resume(run)
    assert kind in str(caught.value)


def test_every_setting_with_every_value_is_a_sentence_or_a_configuration() -> None:
    said: list[str] = []
    for key in dotted_keys():
        for value in NASTY:
            try:
                validate(override(Config(), {key: value}), recorded=True)
            except ToolError as error:
                said.append(str(error))
    assert len(said) > 3000 and max(map(len, said)) < 2500


def _merged(depth: int) -> str:
    lines = [f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}\n" for k in range(1, depth)]
    return "".join(("a0: &a0 {x: 1}\n", *lines))


YAML: dict[str, str] = {
    "merged": _merged(12),
    "aliases": "".join((f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]\n" if k else "a0: &a0 [x]\n") for k in range(12)),
    "twice": "seed: 1\nseed: 2\n",
    "twice below": "data: {limit: 2, limit: 3}\n",
    "nested": "[" * 10_000,
    "in itself": "seed: &a [*a]\n",
    "a list as a name": "? [a]\n: 1\n",
    "no date": "seed: 2026-13-45\n",
    "long": f"seed: {'9' * 5000}\n",
    "long, by its power": f"seed: 1{'0' * 400}\n",
    "runs": '!!python/object/apply:os.system ["touch ran"]\n',
    "two documents": "seed: 1\n---\nseed: 2\n",
    "no number": "training: {lr: .nan}\n",
    "a tag": "seed: !!set {a}\n",
}


@pytest.mark.parametrize("odd", YAML)
def test_a_strange_yaml_is_one_sentence(tmp_path: Path, odd: str) -> None:
    (tmp_path / "config.yaml").write_text(YAML[odd])
    with pytest.raises(ToolError, match=r"config\.yaml: ") as caught:
        RunFolder(tmp_path).read_config()
    assert len(str(caught.value)) < 600


def header(content: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def tensors(head: Any, body: bytes) -> bytes:
    raw = head if isinstance(head, bytes) else json.dumps(head).encode()
    return len(raw).to_bytes(8, "little") + raw + body


def _with(content: bytes, name: str, **change: Any) -> bytes:
    head, body = header(content)
    return tensors(head | {name: head[name] | change}, body)


def _filled(content: bytes, name: str, value: float) -> bytes:
    head, body = header(content)
    begin, end = head[name]["data_offsets"]
    return tensors(head, body[:begin] + struct.pack("<f", value) * ((end - begin) // 4) + body[end:])


HEADERS: dict[str, Callable[[bytes, str], bytes]] = {
    "length 2^63": lambda content, name: (2**63).to_bytes(8, "little") + content[8:],
    "nested": lambda content, name: tensors(b'{"a":' + b"[" * 100_000, b""),
    "a list": lambda content, name: tensors([], b""),
    "no tensors": lambda content, name: tensors({}, b""),
    "cut": lambda content, name: content[:-10],
    "terabytes": lambda content, name: _with(content, name, shape=[2**20, 2**20], data_offsets=[0, 2**42]),
    "more than there can be": lambda content, name: _with(content, name, shape=[2**62, 4]),
    "over another": lambda content, name: _with(content, name, data_offsets=[0, 384]),
    "below zero": lambda content, name: _with(content, name, shape=[-1]),
    "as whole numbers": lambda content, name: _with(content, name, dtype="I32"),
    "as complex ones": lambda content, name: _with(content, name, dtype="C64", shape=[48]),
    "no number": lambda content, name: _filled(content, name, float("nan")),
    "infinite": lambda content, name: _filled(content, name, float("-inf")),
}


@pytest.mark.parametrize("odd", HEADERS)
def test_no_damaged_weights_judge_or_train(finished: Path, stopped: Path, tmp_path: Path, odd: str) -> None:
    """An accuracy of weights that are no numbers looks like one."""
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    (run / "model.safetensors").write_bytes(HEADERS[odd]((run / "model.safetensors").read_bytes(), "1.network.norms.2.weight"))
    images = torch.from_numpy(pictures()["images"]).unsqueeze(1)
    with warnings.catch_warnings(action="error"), pytest.raises(ToolError, match=r"model\.safetensors: .*repeat the run"):
        load_model(run).look(images)
    half = Path(shutil.copytree(stopped, tmp_path / "half"))
    (file,) = half.glob("checkpoint/*/state.safetensors")
    file.write_bytes(HEADERS[odd](file.read_bytes(), "learner1.network.norms.2.weight"))
    with warnings.catch_warnings(action="error"), pytest.raises(ToolError, match="checkpoint.*start a new run"):
        resume(half)


@pytest.mark.parametrize("kind", ["checkpoint", "slim"])
def test_no_tensor_of_a_checkpoint_is_stretched_or_made_up(stopped: Path, tmp_path: Path, kind: str) -> None:
    """Copied into its place, a number fills all of it, and a momentum that is missing is zero."""
    from safetensors.torch import load_file, save_file

    run = Path(shutil.copytree(stopped, tmp_path / "run"))
    shutil.rmtree(run / ("slim" if kind == "checkpoint" else "checkpoint"))
    (file,) = run.glob(f"{kind}/*/*.safetensors")
    whole = load_file(file)
    name = "learner0.network.norms.0.bias" if kind == "slim" else "learner0.optimiser.momentum.0"
    for change in ({name: torch.zeros(1)}, {name: None}):
        save_file({key: value for key, value in (whole | change).items() if value is not None}, file)
        with pytest.raises(ToolError, match=f'"{name}" is missing in the checkpoint, or of another kind or size'):
            resume(run)
    save_file(whole, file)
    resume(run)


def test_a_file_of_a_run_is_no_bomb(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelsieve.data.npz.PACKED", 0)
    assert read_npz(RunFolder(finished).scores, of_run=True)  # not packed, and as large as it is
    with pytest.raises(ToolError, match=r"noise\.npz: it unpacks to .* bytes, and we pack 0 at most"):
        read_npz(RunFolder(finished).noise, of_run=True)
    assert read_npz(RunFolder(finished).noise)  # your own data may be packed


ARRAYS: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "given as fractions": ("given", lambda given: given.astype(np.float32)),
    "given as texts": ("given", lambda given: given.astype(str)),
    "given below zero": ("given", lambda given: given * 0 - 1),
    "given beyond": ("given", lambda given: given + 10**6),
    "given, an axis more": ("given", lambda given: given[None]),
    "losses of nobody": ("loss", lambda loss: loss[:0]),
    "complex losses": ("loss", lambda loss: loss.astype(np.complex64)),
    "a loss too few": ("loss", lambda loss: loss[:, 1:]),
    "a name too few": ("ids", lambda ids: ids[1:]),
    "no estimate": ("estimate", lambda estimate: estimate * np.nan),
    "dates": ("suggested", lambda suggested: suggested.astype("M8[s]")),
}


@pytest.mark.parametrize("odd", ARRAYS)
def test_arrays_of_a_run_are_of_the_kinds_that_we_write(finished: Path, tmp_path: Path, odd: str) -> None:
    run, (name, change) = RunFolder(Path(shutil.copytree(finished, tmp_path / "run"))), ARRAYS[odd]
    arrays = read_npz(run.scores)
    np.savez(run.scores, **(arrays | {name: change(arrays[name])}))
    with warnings.catch_warnings(action="error"), pytest.raises(ToolError, match=r"(scores\.npz.*|issues\.csv.*)repeat the run"):
        read_findings(run)


@pytest.mark.parametrize("name", ["label", "top"])
def test_answers_of_another_kind_are_not_compared(finished: Path, tmp_path: Path, name: str) -> None:
    run = RunFolder(Path(shutil.copytree(finished, tmp_path / "run")))
    arrays = read_npz(run.predictions)
    for odd in (arrays[name].view("V4"), arrays[name][..., :0], arrays[name].astype(float)):
        np.savez(run.predictions, **(arrays | {name: odd}))
        with pytest.raises(ToolError, match=r"predictions\.npz"):
            read_answers(run)


FEATURES: dict[str, Any] = {
    "no number": np.full((2, 3), np.nan, np.float32),
    "complex": np.ones((2, 3), np.complex64),
    "wide": np.ones((2, 4), np.float32),
    "few": np.ones((1, 3), np.float32),
    "text": np.full((2, 3), "x"),
    "objects": np.full((2, 3), {}, object),
}


@pytest.mark.parametrize("odd", FEATURES)
def test_features_in_a_cache_that_are_none_are_made_again(tmp_path: Path, odd: str) -> None:
    keys = np.arange(32, dtype=np.uint8).reshape(2, 16)
    stream = io.BytesIO()
    np.savez(stream, keys=keys, looks=np.zeros((2, LOOK), np.uint8), features=FEATURES[odd])
    (tmp_path / "a.npz").write_bytes(stream.getvalue())
    store = FeatureStore(tmp_path)
    store.read()
    with warnings.catch_warnings(action="error"):
        found, _, missing = store.gather([key.tobytes() for key in keys], 3)
    assert missing == [0, 1] and not found.any()
