"""Decisions through the door: the summary, out to CSV and Label Studio and back, apply, and the next round."""

import csv
import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Shell
from cli.own import QUICK, folder
from labelsieve.data.pictures import pool
from labelsieve.decisions.log import DecisionLog
from runs.reviewed import decide

ANSWERS = {"00003": ("keep", "0"), "00004": ("relabel", "2"), "00006": ("drop", None), "00007": ("unsure", None)}


@pytest.fixture
def run(tmp_path: Path, finished: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def outcomes(run: Path) -> dict[str, Any]:
    return {name: state.current and state.current.outcome for name, state in DecisionLog(run).states().items()}


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_summary_counts_by_reviewer_and_names_conflicts(run: Path, shell: Shell) -> None:
    decide(run, ANSWERS)
    decide(run, {"00004": ("drop", None)}, who="bob")
    answer = shell("decisions", run)
    assert answer.code == 0 and "ada" in answer.out and "bob" in answer.out and "5 entries" in answer.out
    assert "conflicts" in answer.out and '00004: ada says relabel "2", bob says drop' in answer.out


def test_a_reviewer_who_is_called_all_is_one_of_them(run: Path, shell: Shell) -> None:
    decide(run, {"00003": ("keep", "0")}, who="ada")
    decide(run, {"00004": ("drop", None), "00006": ("drop", None)}, who="all")
    lines = [line.split() for line in shell("decisions", run).out.splitlines() if " all " in line][1:]
    assert [line[-2] for line in lines] == ["2", "3"]


def test_a_reviewer_without_a_file_is_refused(run: Path, shell: Shell) -> None:
    answer = shell("decisions", run, "--reviewer", "ada")
    assert answer.code == 2 and "--reviewer" in answer.err and "--from" in answer.err


@pytest.mark.parametrize(("to", "suffix"), [("csv", ".csv"), ("labelstudio", ".json")])
def test_out_and_back_into_another_copy_gives_the_same(
    tmp_path: Path, run: Path, finished: Path, shell: Shell, to: str, suffix: str
) -> None:
    decide(run, ANSWERS)
    decide(run, {"00004": ("drop", None)}, who="bob")  # a conflict, which is handed on as one
    file, other = tmp_path / f"out{suffix}", tmp_path / "other"
    assert shell("decisions", run, "--to", to, "--out", file).code == 0
    shutil.copytree(finished, other)
    answer = shell("decisions", other, "--from", file)
    assert answer.code == 0 and "5 decisions, 5 of them new\n" in answer.out, answer.err
    assert outcomes(other) == outcomes(run) and DecisionLog(other).states()["00004"].conflict
    log = (other / "decisions.jsonl").read_bytes()
    assert "0 of them new" in shell("decisions", other, "--from", file).out
    assert (other / "decisions.jsonl").read_bytes() == log and {entry.who for entry in DecisionLog(other).all()} == {"ada", "bob"}
    assert shell("decisions", run, "--to", to, "--out", file).code == 2  # nothing is overwritten


def test_a_file_written_by_hand_comes_in_and_can_change_its_mind(tmp_path: Path, run: Path, shell: Shell) -> None:
    file = written(
        tmp_path / "mine.csv", "\ufeffid,action,label\n00003,Keep,\n00004,relabel,2\n00006,drop,\n00007,review,\n00008,,\n"
    )
    answer = shell("decisions", run, "--from", file, "--reviewer", "eve")
    assert answer.code == 0 and "4 decisions, 4 of them new" in answer.out
    found = {entry.id: entry for entry in DecisionLog(run).all()}
    assert found["00003"].label is not None and found["00007"].action == "unsure" and found["00003"].who == "eve"
    assert found["00003"].when.endswith("+00:00") and found["00003"].score is not None
    for label, new in (("1", 1), ("1", 0), ("2", 1)):  # and back to what it was at first
        said = shell("decisions", run, "--from", written(file, f"id,action,label\n00004,relabel,{label}\n")).out
        assert f"{new} of them new" in said and outcomes(run)["00004"] == ("label", label)
    assert "1 decision, 1 of them new\n" in shell("decisions", run, "--from", written(file, "id,action\n00004,clear\n")).out
    assert outcomes(run)["00004"] is None


def test_an_exported_row_that_was_edited_is_new_and_the_rest_is_not(tmp_path: Path, run: Path, shell: Shell) -> None:
    decide(run, ANSWERS)
    shell("decisions", run, "--to", "csv", "--out", tmp_path / "out.csv")
    decide(run, {"00006": ("keep", "0")}, seen=3)  # decided anew meanwhile: the old row does not come back over it
    file = written(tmp_path / "out.csv", (tmp_path / "out.csv").read_text().replace("00004,relabel,2", "00004,relabel,1"))
    assert "4 decisions, 1 of them new" in shell("decisions", run, "--from", file).out
    assert outcomes(run)["00004"] == ("label", "1") and outcomes(run)["00006"] == ("label", "0")


def test_a_file_that_is_not_there_is_called_so(tmp_path: Path, run: Path, shell: Shell) -> None:
    answer = shell("decisions", run, "--from", tmp_path / "mine.csv")
    assert answer.code == 1 and "mine.csv: no such file; name a CSV of decisions" in answer.err


def test_every_bad_row_is_named_and_nothing_comes_in(tmp_path: Path, run: Path, shell: Shell) -> None:
    with (run / "issues.csv").open(newline="") as file:
        given = {row["id"]: row["given_label"] for row in csv.DictReader(file)}
    other = "1" if given["00008"] != "1" else "2"
    rows = f"00003,keep,\n0004,drop,\n00005,relable,1\n00006,relabel,11\n00007,drop,\n00007,keep,\n00008,keep,{other}\n"
    answer = shell("decisions", run, "--from", written(tmp_path / "bad.csv", f"id,action,label\n{rows}"))
    assert answer.code == 1 and not (run / "decisions.jsonl").exists() and "5 problem(s)" in answer.err
    for words in (
        'row 2: there is no sample "0004" in this run (did you mean "00004"?)',
        'row 3: unknown action "relable" (did you mean "relabel"?)',
        'row 4: label "11" is not one of 3 classes (did you mean "1"?)',
        'row 6: "00007" was decided otherwise',
        "row 7: keep means the given label",
    ):
        assert words in answer.err


def task(name: str, *results: dict[str, Any], **more: Any) -> dict[str, Any]:
    """All have the same annotation id, as in exports of two projects put together."""
    annotation = {
        "id": 7,
        "completed_by": {"id": 1, "email": "a@b.c"},
        "created_at": "2026-11-15T01:02:03Z",
        "result": [*results],
    }
    return {"id": 3, "data": {"image": "/x.png", "id": name}, "annotations": [annotation | more]}


def chosen(value: str, control: str = "choice") -> dict[str, Any]:
    return {"from_name": control, "to_name": "image", "type": "choices", "value": {"choices": [value]}}


def test_annotations_of_label_studio_come_in(tmp_path: Path, run: Path, shell: Shell) -> None:
    tasks = [
        task("00003", chosen("2")),
        task("00004", chosen("drop", "action")),
        task("00005", was_cancelled=True),
        task("00006"),
        {"data": {"id": "00007"}},
    ]
    file = written(tmp_path / "studio.json", json.dumps(tasks))
    answer = shell("decisions", run, "--from", file)
    assert answer.code == 0 and "2 decisions, 2 of them new" in answer.out, answer.err
    assert outcomes(run) == {"00003": ("label", "2"), "00004": ("drop", None)}
    first = DecisionLog(run).all()[0]
    assert first.who == "labelstudio:a@b.c" and first.when == "2026-11-15T01:02:03Z"
    assert "0 of them new" in shell("decisions", run, "--from", file).out
    bad = shell("decisions", run, "--from", written(file, json.dumps([task("00003", chosen("cow")), task("x", chosen("1"))])))
    assert bad.code == 1 and 'task 1: label "cow"' in bad.err and 'task 2: there is no sample "x"' in bad.err


FORMULA = "=cmd|' /C calc'!A0"


@pytest.mark.parametrize(
    ("who", "when", "key", "said"),
    [
        (FORMULA, "now", "k", "the reviewer's name must not begin with ="),
        (f" {FORMULA}", "now", "k", "the reviewer's name must not begin with ="),
        ("x" * 81, "now", "k", "the reviewer's name has 81 characters; use 80 at most"),
        ("a\tb", "now", "k", "the reviewer's name must be printable"),
        ("ada", "@SUM(A1)", "k", "the time must not begin with ="),
        ("ada", "now", "+cmd|x", "the key must not begin with ="),
        ("ada", "now", "k" * 129, "the key has 129 characters"),
    ],
)
def test_a_file_is_signed_by_the_same_rule_as_the_page(
    tmp_path: Path, run: Path, shell: Shell, who: str, when: str, key: str, said: str
) -> None:
    """What comes in goes out again as a cell of `decisions --to csv`."""
    text = io.StringIO()
    csv.writer(text).writerows([("id", "action", "who", "when", "key"), ("00003", "drop", who, when, key)])
    answer = shell("decisions", run, "--from", written(tmp_path / "mine.csv", text.getvalue()))
    assert answer.code == 1 and f"row 1: {said}" in answer.err and not (run / "decisions.jsonl").exists()
    record = {"action": "drop", "label": None, "who": who, "when": when, "key": key}
    one = task("00003", chosen("drop", "action"))
    one["data"]["decisions"] = [record]
    answer = shell("decisions", run, "--from", written(tmp_path / "studio.json", json.dumps([one])))
    assert answer.code == 1 and f"task 1: {said}" in answer.err and not (run / "decisions.jsonl").exists()


def test_an_action_of_label_studio_that_is_no_text_is_one_sentence(tmp_path: Path, run: Path, shell: Shell) -> None:
    one = task("00003", chosen(["drop"], "action"))  # type: ignore[arg-type]
    answer = shell("decisions", run, "--from", written(tmp_path / "studio.json", json.dumps([one])))
    assert answer.code == 1 and "studio.json" in answer.err and answer.err.count("error: ") == 1
    assert not (run / "decisions.jsonl").exists()


def test_the_reviewer_that_a_command_names_is_no_formula_either(tmp_path: Path, run: Path, shell: Shell) -> None:
    file = written(tmp_path / "mine.csv", "id,action\n00003,drop\n")
    answer = shell("decisions", run, "--from", file, "--reviewer", FORMULA)
    assert answer.code != 0 and "the reviewer's name must not begin with =" in answer.err
    assert not (run / "decisions.jsonl").exists()


def test_what_an_older_log_is_signed_with_goes_out_as_text(tmp_path: Path, run: Path, shell: Shell) -> None:
    decide(run, ANSWERS, who=FORMULA)
    assert shell("decisions", run, "--to", "csv", "--out", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open(newline="") as file:
        assert {row["who"] for row in csv.DictReader(file)} == {f"'{FORMULA}"}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "[{", "export from Label Studio as JSON"),
        ("a.json", '[{"image": "x", "choice": "1"}]', "not JSON-MIN"),
        ("a.json", "[[]]", "not a list of tasks"),
        ("a.csv", "id,label\n1,2\n", 'the column "action" is missing'),
        ("a.csv", "id,action\n", "no decisions in it"),
        ("a.txt", "", ".csv file or from Label Studio"),
    ],
)
def test_files_that_hold_no_decisions_are_named(tmp_path: Path, run: Path, shell: Shell, name: str, text: str, said: str) -> None:
    answer = shell("decisions", run, "--from", written(tmp_path / name, text))
    assert answer.code in (1, 2) and said in answer.err and not (run / "decisions.jsonl").exists()


def test_apply_by_the_log(tmp_path: Path, run: Path, shell: Shell) -> None:
    assert "no decisions in it" in shell("apply", run, "--out", tmp_path / "l.csv", "--decisions").err
    decide(run, ANSWERS)
    for number, words in enumerate((("--decisions", "--out"), ("--decisions", run, "--out"))):
        out = tmp_path / str(number) / "labels.csv"
        answer = shell("apply", run, *words, out)
        assert answer.code == 0 and "1 dropped, 47 samples left" in answer.out, answer.err
    decide(run, {"00004": ("drop", None)}, who="bob")
    answer = shell("apply", run, "--out", tmp_path / "c" / "l.csv", "--decisions")
    assert answer.code == 1 and "00004: ada says relabel" in answer.err and not (tmp_path / "c").exists()
    settled = shell("apply", run, "--out", tmp_path / "c" / "l.csv", "--on-conflict", "latest", "--decisions")
    assert settled.code == 0 and "2 dropped" in settled.out
    assert 'did you mean "latest"' in shell("apply", run, "--out", tmp_path / "d.csv", "--decisions", "--on-conflict", "late").err


def test_options_that_would_do_nothing_are_refused(tmp_path: Path, run: Path, shell: Shell) -> None:
    decide(run, ANSWERS)
    file, out = written(tmp_path / "mine.csv", "id,action\n00003,keep\n"), tmp_path / "out.csv"
    for words in (
        ("apply", run, "--out", out, "--decisions", file, "--on-conflict", "latest"),
        ("apply", run, "--out", out, "--decisions", "--symlink"),
        ("train", "digits", "--dry-run", "--on-conflict", "latest"),
    ):
        answer = shell(*words)
        assert answer.code == 2 and words[-2 if words[-1] == "latest" else -1] in answer.err, words
    assert not out.exists()
    assert shell("apply", run, "--out", out, "--decisions", "--on-conflict", "latest").code == 0 and out.exists()


def test_the_next_round_by_the_command(tmp_path: Path, run: Path, shell: Shell) -> None:
    assert "no data are named" in shell("train", "--out", tmp_path / "next").err
    assert "no decisions in it" in shell("train", "--decisions", run, "--out", tmp_path / "next").err
    decide(run, ANSWERS)
    plan = shell("train", "--decisions", run, "--dry-run", "--verbose")
    assert plan.code == 0 and "47 pictures" in plan.out and "epochs: 2" in plan.out
    answer = shell("train", "--decisions", run, "--out", tmp_path / "next")
    assert answer.code == 0, answer.err
    assert "round 2, on 3 decisions: 2 labels are pinned as right" in answer.out and "rounds" in answer.out
    assert "what each run estimated" in " ".join(answer.out.split())
    again = shell("train", "--decisions", run, "--out", tmp_path / "next", "--resume")
    assert again.code == 0 and "already done" in again.out
    other = shell("train", "--decisions", tmp_path / "next", "--out", tmp_path / "next", "--resume")
    assert other.code == 2 and "other settings" in other.err
    assert shell("report", tmp_path / "next").code == 0
    assert "Rounds" in (tmp_path / "next" / "report.html").read_text()


def test_a_folder_of_pictures_goes_round(tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pictures, a manifest's ids and paths: after a drop, each row still has its own picture and path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pool, "FEW", 10**6)
    source = folder(tmp_path / "animals")
    assert shell("train", source, "--out", tmp_path / "1", *QUICK, "--seed", 1).code == 0
    decide(tmp_path / "1", {"cat/0.png": ("drop", None), "cat/1.png": ("relabel", "dog"), "cow/3.png": ("keep", "cow")})
    answer = shell("train", "--decisions", tmp_path / "1", "--out", tmp_path / "2")
    assert answer.code == 0, answer.err
    with (tmp_path / "2" / "issues.csv").open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    assert (
        len(rows) == 59 and rows["cat/1.png"]["given_label"] == "dog" and all(row["path"] == name for name, row in rows.items())
    )
    exported = shell("export", tmp_path / "2", "--to", "huggingface")
    assert exported.code == 0, exported.err
    done = shell("apply", tmp_path / "2", "--decisions", "--out", tmp_path / "new")
    assert done.code == 0, done.err
    there = {str(path.relative_to(tmp_path / "new")) for path in (tmp_path / "new").rglob("*.png")}
    assert len(there) == 59 and not any(name.startswith(("cat/0", "cat/1.")) for name in there)


def test_a_next_round_on_data_that_moved_names_the_way(tmp_path: Path, shell: Shell) -> None:
    answer = shell("train", folder(tmp_path / "mine"), "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err
    name = next(csv.DictReader((tmp_path / "run" / "issues.csv").open(newline="")))["id"]
    decide(tmp_path / "run", {name: ("drop", None)})
    (tmp_path / "mine").rename(tmp_path / "yours")
    refused = shell("train", "--decisions", tmp_path / "run", "--out", tmp_path / "next")
    assert refused.code == 1 and f"labelsieve train DATA --decisions {tmp_path / 'run'} --out NEXT" in refused.err
    assert str(tmp_path / "mine") in refused.err and not (tmp_path / "next").exists()
    said = shell("train", tmp_path / "yours", "--decisions", tmp_path / "run", "--out", tmp_path / "next")
    assert said.code == 0 and "1 sample is left out" in said.out, said.err
