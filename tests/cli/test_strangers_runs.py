"""A stranger's run folder: pipes, devices, links and damaged files in it are one sentence at once, whichever verb meets them."""

import csv
import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Shell
from labelsieve.errors import ToolError
from labelsieve.review.opening import open_review
from labelsieve.runs.folder import RunFolder, known_files
from labelsieve.runs.rounds import decisions_in
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import resume, start
from runs.reviewed import decide
from runs.tiny import tiny_config


@pytest.fixture(autouse=True)
def _no_hang() -> Iterator[None]:
    """Opening a pipe without a writer waits forever: better a failed test."""

    def ended(*_: object) -> None:
        raise TimeoutError("still reading after 120 s")

    before = signal.signal(signal.SIGALRM, ended)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def stopped(tmp_path: Path, source: str) -> Path:
    """After its first epoch, so that `resume` has something to do."""
    begun = start(tmp_path / "run", tiny_config(source))
    next(iter(each_epoch(begun, stop=lambda: True)))
    return begun.folder.path


def zero(path: Path) -> None:
    path.symlink_to("/dev/zero")


def beyond(path: Path) -> None:
    """A hole: it takes no room on the disk."""
    path.touch()
    os.truncate(path, 2**40)


def elsewhere(path: Path) -> None:
    (path.parents[1] / "secret").write_text("{}")
    path.symlink_to(path.parents[1] / "secret")


OTHERS: dict[str, tuple[Callable[[Path], None], str]] = {
    "pipe": (os.mkfifo, "it is a pipe, not a plain file"),
    "device": (zero, "it is a link, which is not followed"),
    "link": (elsewhere, "it is a link, which is not followed"),
    "folder": (Path.mkdir, "it is a folder, not a file"),
    "hole": (beyond, "and such a file has"),
}
# What each verb reads of the run.
FACTS = ("config.yaml", "metrics.jsonl", "timings.jsonl", "data.json", "environment.json")
READS: dict[str, tuple[tuple[object, ...], tuple[str, ...]]] = {
    "report": (("report", "RUN"), (*FACTS, "issues.csv", "scores.npz", "noise.npz")),
    "apply": (("apply", "RUN", "--out", "OUT.npz", "--decisions", "DECISIONS"), ("config.yaml", "issues.csv", "scores.npz")),
    "compare": (("compare", "RUN", "OTHER"), ("config.yaml", "predictions.npz", "metrics.jsonl")),
    "predict": (("predict", "RUN", "SOURCE", "--out", "OUT.csv"), ("config.yaml", "model.json", "model.safetensors")),
    "evaluate": (("evaluate", "RUN"), ("config.yaml", "model.json", "model.safetensors")),
    "export": (("export", "RUN", "--to", "cleanlab", "--out", "OUT"), ("config.yaml", "issues.csv")),
    "decisions": (("decisions", "RUN", "--from", "DECISIONS"), ("issues.csv",)),
}
CASES = [(verb, name) for verb, (_, names) in READS.items() for name in names]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize(("verb", "name"), CASES)
def test_no_verb_reads_what_is_no_plain_file(
    tmp_path: Path, run: Path, finished: Path, source: str, shell: Shell, verb: str, name: str, other: str
) -> None:
    make, why = OTHERS[other]
    (run / name).unlink(missing_ok=True)
    make(run / name)
    (tmp_path / "decisions.csv").write_text("id,action,label\n0,keep,\n")
    (run / "issues.parquet").unlink()
    known = {"RUN": run, "OTHER": finished, "DECISIONS": tmp_path / "decisions.csv", "SOURCE": source.partition(":")[2]}
    words = [known.get(str(word), str(word).replace("OUT", str(tmp_path / "out"))) for word in READS[verb][0]]
    answer = shell(*words)
    assert answer.code == 1 and f"{run / name}: " in answer.err and why in " ".join(answer.err.split()), answer


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["config.yaml", "issues.csv", "issues.parquet", "scores.npz", "neighbours.npz", "data.json"])
def test_the_review_page_reads_no_such_file_either(run: Path, name: str, other: str) -> None:
    make, why = OTHERS[other]
    (run / name).unlink(missing_ok=True)
    if name == "issues.csv":
        (run / "issues.parquet").unlink()
    make(run / name)
    with pytest.raises(ToolError, match=f"{name}.*{why}"):
        open_review(run).pictures.known()


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", ["config.yaml", "state.json", "state.safetensors", "timings.jsonl"])
def test_resume_reads_no_such_file_either(stopped: Path, shell: Shell, name: str, other: str) -> None:
    make, why = OTHERS[other]
    file = next(path for path in (stopped / name, stopped / "checkpoint" / "epoch-000001" / name) if path.exists())
    file.unlink()
    make(file)
    answer = shell("resume", stopped)
    assert answer.code == 1 and why in " ".join(answer.err.split()), answer


@pytest.mark.parametrize("other", OTHERS)
def test_the_list_of_files_that_a_run_names_may_be_anything(run: Path, tmp_path: Path, other: str) -> None:
    """data.json says where the cache remembers the run's files; what is none is passed over, and never waited for."""
    OTHERS[other][0](tmp_path / "files.npz")
    (run / "data.json").write_text(json.dumps({"files": [str(tmp_path / "files.npz"), "/dev/zero"]}))
    assert known_files(RunFolder(run)) == {}


def test_a_sweep_is_read_as_carefully(tmp_path: Path, shell: Shell) -> None:
    os.mkfifo(tmp_path / "sweep.json")
    answer = shell("reproduce", "table1", "--out", tmp_path)
    assert answer.code == 1 and "sweep.json: it is a pipe" in answer.err


@pytest.mark.parametrize("name", ["checkpoint", "slim"])
@pytest.mark.parametrize("verb", ["resume", "report"])
def test_nothing_is_written_or_cleared_away_through_a_linked_folder(
    tmp_path: Path, stopped: Path, shell: Shell, name: str, verb: str
) -> None:
    """`checkpoint -> ~/work` would have had its drafts and epoch-* removed, and a checkpoint put into it."""
    private = tmp_path / "private"
    if (stopped / name).exists():
        (stopped / name).rename(private)
    private.mkdir(exist_ok=True)
    (private / ".thesis.draft").write_text("dear")
    (private / "epoch-000000").mkdir()
    (private / "epoch-000000" / "mine").write_text("dear")
    (stopped / name).symlink_to(private)
    before = sorted(path.name for path in private.rglob("*"))
    answer = shell(verb, stopped)
    assert answer.code == 1 and f"{stopped / name}: it is a link" in answer.err
    assert sorted(path.name for path in private.rglob("*")) == before


def test_a_folder_of_a_link_is_not_begun_in(tmp_path: Path, source: str) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").symlink_to(tmp_path / "private")
    with pytest.raises(ToolError, match="it exists and is not a run"):
        start(tmp_path / "run", tiny_config(source))
    assert not list((tmp_path / "private").iterdir())


def test_nothing_is_cleared_away_before_the_run_is_known_to_go_on(stopped: Path, shell: Shell) -> None:
    drafts = [stopped / ".notes.draft", stopped / "checkpoint" / ".thesis.draft", stopped / "checkpoint" / ".folder.draft"]
    for draft in drafts[:2]:
        draft.write_text("dear")
    drafts[2].mkdir()
    older = shutil.copytree(stopped / "checkpoint" / "epoch-000001", stopped / "checkpoint" / "epoch-000000")
    text = (stopped / "config.yaml").read_text()
    (stopped / "config.yaml").write_text(text.replace("seed: 0", "seed: none"))
    assert shell("resume", stopped).code == 1
    (stopped / "config.yaml").write_text(text.replace("sym:0.3", "sym:0.4"))  # other labels than the run began with
    assert "not the data this run began with" in shell("resume", stopped).err
    assert all(draft.exists() for draft in (*drafts, older))
    (stopped / "config.yaml").write_text(text)
    resume(stopped)
    assert not any(draft.exists() for draft in (*drafts, older))


LINE = {"epoch": 1, "phase": "warm-up"}
DAMAGED: dict[str, tuple[str, bytes | Any]] = {
    "a byte 0xff": ("metrics.jsonl", b'{"epoch": 1, "phase": "\xff"}\n'),
    "a list": ("metrics.jsonl", b"[]\n"),
    "a text as epoch": ("metrics.jsonl", LINE | {"epoch": "first"}),
    "a huge epoch": ("metrics.jsonl", b'{"epoch": 1' + b"0" * 400 + b', "phase": "warm-up"}\n'),
    "no epoch": ("metrics.jsonl", {"phase": "warm-up"}),
    "an accuracy": ("metrics.jsonl", LINE | {"accuracy": 3}),
    "an accuracy of none": ("metrics.jsonl", LINE | {"accuracy": {"first": 3}}),
    "shares": ("metrics.jsonl", LINE | {"clean_share": []}),
    "losses": ("metrics.jsonl", LINE | {"loss": {"labelled": "high"}}),
    "a note": ("metrics.jsonl", LINE | {"notes": [["x"]]}),
    "a decision": ("metrics.jsonl", LINE | {"decision": {"lambda_u": "x"}}),
    "many seconds": ("timings.jsonl", LINE | {"seconds": "x"}),
    "nested": ("data.json", b"[" * 100_000),
    "packages": ("environment.json", {"packages": ["torch"]}),
    "notes": ("data.json", {"notes": 3}),
    "left out": ("data.json", {"left_out": "some"}),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_file_of_a_run_is_one_sentence(run: Path, shell: Shell, damage: str) -> None:
    name, content = DAMAGED[damage]
    (run / name).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode() + b"\n")
    answer = shell("report", run)
    assert answer.code == 1 and name in answer.err and "put it back" in answer.err and len(answer.err) < 600


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("network", []),
        ("networks", "two"),
        ("shape", []),
        ("classes", 3),
        ("mean", ["x"]),
        ("cosine", None),
        ("crop", []),
        ("networks", -1),
        ("crop", -1),
        ("crop", 99),
        ("shape", [1, 0, 8]),
        ("shape", [1, 8, 2**40]),
        ("shape", [2**20, 8, 8]),
        ("shape", [1] * 1000),
        ("classes", ["a", "b", "c", "d"]),
        ("classes", [str(k) for k in range(10**6)]),
        ("std", [0]),
        ("mean", [float("nan")]),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_damaged_model_json_is_one_sentence(
    run: Path, source: str, tmp_path: Path, shell: Shell, name: str, value: Any
) -> None:
    facts = json.loads((run / "model.json").read_text())
    (run / "model.json").write_text(json.dumps(facts | {name: value}))
    for words in (("evaluate", run), ("export", run, "--to", "onnx", "--out", tmp_path / "out")):
        answer = shell(*words)
        assert answer.code == 1 and "model" in answer.err and "resume or repeat the run" in answer.err


def test_a_next_round_of_a_run_whose_issues_have_no_ids(run: Path) -> None:
    with (run / "issues.csv").open(newline="") as file:
        first = next(csv.DictReader(file))
    decide(run, {first["id"]: ("keep", first["given_label"])})
    (run / "issues.csv").write_text((run / "issues.csv").read_text().replace("id,", "nr,", 1))
    with pytest.raises(ToolError, match='issues.csv: row 1 has no "id"; put it back'):
        decisions_in(RunFolder(run), "refuse")


def test_an_npz_of_a_strange_version_is_one_sentence(run: Path, shell: Shell) -> None:
    content = bytearray((run / "scores.npz").read_bytes())
    place = content.find(b"PK\x01\x02")
    content[place + 6] = 255
    (run / "scores.npz").write_bytes(content)
    answer = shell("report", run)
    assert answer.code == 1 and "scores.npz: damaged (NotImplementedError" in answer.err


def test_a_matrix_of_a_huge_number_is_one_sentence(tmp_path: Path, source: str, shell: Shell) -> None:
    (tmp_path / "m.json").write_text(f"[[1{'0' * 400}, 0, 0], [0, 1, 0], [0, 0, 1]]")
    answer = shell("train", source.partition(":")[2], "--noise", f"matrix:{tmp_path / 'm.json'}", "--out", tmp_path / "new")
    assert answer.code == 1 and "write 3 rows of 3 numbers" in answer.err and not (tmp_path / "new").exists()


def test_a_report_takes_the_place_of_no_pipe(run: Path, shell: Shell) -> None:
    os.mkfifo(run / "report.html")
    answer = shell("report", run)
    assert answer.code == 2 and "no report of labelsieve" in answer.err
