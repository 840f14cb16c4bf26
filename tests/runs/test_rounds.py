"""The loop: what people decide in one round is what the next begins with, for every kind of data, killed or not."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from labelsieve.config.schema import override
from labelsieve.corrected.apply import apply_run, logged
from labelsieve.decisions.log import DecisionLog
from labelsieve.errors import ToolError, UsageError
from labelsieve.exports.decisions import import_decisions
from labelsieve.issues.estimate import BY_THE_RUN
from labelsieve.issues.policy import read_decisions
from labelsieve.report.markup import escape
from labelsieve.report.run import run_page
from labelsieve.results.reporting import run_report
from labelsieve.runs.findings import read_findings
from labelsieve.runs.folder import RunFolder
from labelsieve.runs.rounds import based_on, next_round, read_round, rounds, table_of
from labelsieve.runs.rows import rows_for
from labelsieve.train.loop import each_epoch
from labelsieve.train.start import start
from runs.moments import watched
from runs.reviewed import decide, next_run
from runs.tiny import arrays_file, contents, to_the_end

# Of stripes.npz: 48 samples of classes 0, 1, 2 in turn. 00003 is truly 0, 00004 truly 1, ...
ANSWERS = {
    "00003": ("keep", "0"),
    "00004": ("relabel", "2"),  # against the truth, so that it shows
    "00005": ("accept", "2"),
    "00006": ("drop", None),
    "00007": ("unsure", None),
}


@pytest.fixture
def first(tmp_path: Path, finished: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "first"))


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory, finished: Path) -> Path:
    """first, second and third round side by side; tests do not change them."""
    root = tmp_path_factory.mktemp("chain")
    shutil.copytree(finished, root / "first")
    decide(root / "first", ANSWERS)
    next_run(root / "first", root / "second")
    decide(root / "second", {"00009": ("relabel", "1"), "00004": ("keep", "2"), "00003": ("clear", None)})
    next_run(root / "second", root / "third")
    return root


def rows_of(run: Path) -> dict[str, dict[str, str]]:
    with (run / "issues.csv").open(newline="") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def test_the_next_round_pins_replaces_and_leaves_out(chain: Path) -> None:
    before = rows_for(RunFolder(chain / "first").read_config())
    rows = rows_for(RunFolder(chain / "second").read_config())
    assert len(rows.data) == 47 and "00006" not in rows.data.ids
    assert rows.pinned is not None and rows.truth is not None and before.truth is not None and rows.noise is not None
    pinned = {name for name, held in zip(rows.data.ids, rows.pinned.tolist()) if held}
    assert pinned == {"00003", "00004", "00005"}
    labels = dict(zip(rows.data.ids, rows.data.labels.tolist()))
    old = dict(zip(before.data.ids, before.data.labels.tolist()))
    assert labels == {name: label for name, label in old.items() if name != "00006"} | {"00003": 0, "00004": 2, "00005": 2}
    true = dict(zip(before.data.ids, before.truth.labels.tolist()))
    assert dict(zip(rows.data.ids, rows.truth.labels.tolist())) == {k: v for k, v in true.items() if k != "00006"}
    assert torch.equal(rows.noise.flipped, rows.data.labels != rows.truth.labels) and len(rows.collection.train) == 47
    assert "3 labels are pinned as right" in rows.notes[-1] and rows.notes[-1].endswith(
        "1 sample is left out; 1 more, unsure, stays in doubt"
    )


def test_what_is_decided_is_marked_and_not_flagged(chain: Path) -> None:
    found = rows_of(chain / "second")
    assert "00006" not in found and len(found) == 47
    for name, action in (("00003", "keep"), ("00004", "relabel"), ("00005", "accept")):
        row = found[name]
        assert row["decided"] == action and row["is_label_issue"] == "False" and float(row["label_score"]) == 1
        assert row["action"] == "keep" and "A person decided" in row["reason"]
    assert found["00007"]["decided"] == "unsure" and float(found["00007"]["label_score"]) < 1
    assert found["00008"]["decided"] == ""
    assert read_findings(RunFolder(chain / "second")).decided.sum() == 3
    assert {row["decided"] for row in rows_of(chain / "first").values()} == {""}


def test_rounds_chain_and_can_be_taken_back(chain: Path) -> None:
    """Round 1's decisions hold in round 3 without being said again; one was said again, one taken back."""
    begun = read_round(chain / "third" / "round.json")
    assert begun.number == 3 and begun.parent == str(chain / "second")
    told = {one.decision.id: (one.decision.action, one.round) for one in begun.carried}
    assert told == {
        "00004": ("keep", 2), "00005": ("accept", 1), "00006": ("drop", 1), "00007": ("unsure", 1), "00009": ("relabel", 2)
    }  # fmt: skip
    rows, given = rows_for(RunFolder(chain / "third").read_config()), rows_of(chain / "first")
    labels = dict(zip(rows.data.ids, (rows.data.classes[k] for k in rows.data.labels.tolist())))
    assert labels["00004"] == "2" and labels["00009"] == "1" and labels["00003"] == given["00003"]["given_label"]
    assert "00006" not in labels and len(labels) == 47


def test_undoing_ones_own_change_leaves_the_earlier_rounds_decision(tmp_path: Path, chain: Path) -> None:
    second = Path(shutil.copytree(chain / "second", tmp_path / "second"))
    (second / "decisions.jsonl").unlink()
    decide(second, {"00003": ("drop", None)})
    decide(second, {"00003": ("clear", None)}, seen=1)
    told = {one.decision.id: one for one in next_round(second, "refuse").carried}
    assert told["00003"].decision.action == "keep" and told["00003"].round == 1


def test_a_file_can_take_back_what_an_earlier_round_decided(tmp_path: Path, chain: Path) -> None:
    second = Path(shutil.copytree(chain / "second", tmp_path / "second"))
    (second / "decisions.jsonl").unlink()
    file = tmp_path / "back.csv"
    file.write_text("id,action\n00003,clear\n00009,clear\n")  # 00009 was never decided
    assert import_decisions(second, file, "eve", "2030-01-01T00:00:00+00:00") == (1, 2)
    assert import_decisions(second, file, "eve", "2030-01-01T00:00:00+00:00") == (0, 2)
    assert "00003" not in {one.decision.id for one in next_round(second, "refuse").carried}


def test_a_file_meets_what_an_earlier_round_dropped(tmp_path: Path, chain: Path) -> None:
    """Dropped once more it stands already; decided otherwise, the run is named in which that can be done."""
    third, now = Path(shutil.copytree(chain / "third", tmp_path / "third")), "2030-01-01T00:00:00+00:00"
    file = tmp_path / "all.csv"
    file.write_text("id,action\n00006,drop\n00010,keep\n")
    assert import_decisions(third, file, "eve", now) == (1, 2)
    told = read_decisions(file)
    assert "00006" in apply_run(third, tmp_path / "again.npz", told).changes.read_text()
    for action in ("keep", "clear", ""):
        file.write_text(f"id,action,label\n00006,{action},{'' if action else '0'}\n")
        with pytest.raises(ToolError, match='row 1: "00006" was dropped in an earlier round') as refused:
            import_decisions(third, file, "eve", now)
        assert str(chain / "first") in str(refused.value) and "did you mean" not in str(refused.value)
    with pytest.raises(ToolError, match='"00006" was dropped in an earlier round'):
        apply_run(third, tmp_path / "other" / "again.npz", read_decisions(file))


def test_a_file_that_undoes_a_change_does_so_once(tmp_path: Path, chain: Path) -> None:
    """Brought in twice, it must not take back the earlier round's decision, too."""
    second = Path(shutil.copytree(chain / "second", tmp_path / "second"))
    (second / "decisions.jsonl").unlink()
    decide(second, {"00003": ("drop", None)})
    file = tmp_path / "back.csv"
    file.write_text("id,action\n00003,clear\n")
    assert [import_decisions(second, file, "eve", "2030-01-01T00:00:00+00:00")[0] for _ in range(2)] == [1, 0]
    told = {one.decision.id: one for one in next_round(second, "refuse").carried}
    assert told["00003"].decision.action == "keep" and told["00003"].round == 1


def test_the_table_of_rounds(chain: Path) -> None:
    found = rounds(RunFolder(chain / "third"))
    assert [one.round for one in found] == [1, 2, 3] and [one.decisions for one in found] == [0, 4, 4]
    assert [one.samples for one in found] == [48, 47, 47] and all(one.accuracy is not None for one in found)
    rows = rows_for(RunFolder(chain / "second").read_config())
    assert rows.truth is not None and found[1].known_wrong == int((rows.truth.labels != rows.data.labels).sum())
    header, lines = table_of(found)
    assert header[:2] == ["round", "decisions used"] and len(lines) == 3
    report, _ = run_report(chain / "third")
    assert report.rounds[1] == lines and report.decided == 3
    left = lines[2][header.index("wrong labels left, by the run")]
    assert left.startswith(f"{len(report.score) * report.share.share:,.0f} (")  # as the report's own share has it
    assert escape(BY_THE_RUN) in run_page(report) and escape(BY_THE_RUN) not in run_page(run_report(chain / "first")[0])
    assert run_report(chain / "first")[0].rounds == ((), ())


def test_later_decisions_in_the_parent_change_nothing(tmp_path: Path, first: Path) -> None:
    decide(first, ANSWERS)
    config = based_on(RunFolder.open(first).read_config(), first)
    next_run(first, tmp_path / "whole")
    run = start(tmp_path / "second", config)
    for _ in each_epoch(run, stop=lambda: run.epoch == 1):
        pass
    assert not run.done
    decide(first, {"00010": ("drop", None)})
    shutil.rmtree(first)
    to_the_end(tmp_path / "second")
    assert contents(tmp_path / "second") == contents(tmp_path / "whole")


def test_a_round_killed_at_any_moment_ends_as_an_unbroken_one(tmp_path: Path, first: Path) -> None:
    decide(first, ANSWERS)
    config = based_on(RunFolder.open(first).read_config(), first)
    with watched(tmp_path / "run", tmp_path / "shelf") as moments:
        next_run(first, tmp_path / "run")
    expected = contents(tmp_path / "run")
    for copy in moments.copies[::9]:
        if RunFolder(copy).config.exists():
            to_the_end(copy)
        else:
            for _ in each_epoch(start(copy, config)):
                pass
        assert contents(copy) == expected, copy


def test_a_run_folder_can_be_moved(tmp_path: Path, chain: Path) -> None:
    moved = Path(shutil.copytree(chain / "second", tmp_path / "elsewhere"))
    assert len(rows_for(RunFolder.open(moved).read_config()).data) == 47
    (moved / "round.json").unlink()
    with pytest.raises(ToolError, match="round.json.*put back the decisions"):
        rows_for(RunFolder.open(moved).read_config())


def test_another_seed_keeps_the_noise_that_was_reviewed(chain: Path) -> None:
    base = RunFolder.open(chain / "first").read_config()
    config = override(based_on(base, chain / "first"), {"seed": 7})
    before, after = rows_for(base), rows_for(config)
    labels = dict(zip(before.data.ids, before.data.labels.tolist()))
    same = {name: label for name, label in zip(after.data.ids, after.data.labels.tolist()) if name not in ANSWERS}
    assert all(labels[name] == label for name, label in same.items())


def test_a_class_may_lose_all_its_samples(tmp_path: Path, first: Path) -> None:
    rows = rows_for(RunFolder(first).read_config())
    twos = [name for name, label in zip(rows.data.ids, rows.data.labels.tolist()) if label == 2]
    decide(first, dict.fromkeys(twos, ("drop", None)))
    run = next_run(first, tmp_path / "second")
    assert run.done and set(run.rows.data.labels.tolist()) == {0, 1}


def test_nothing_decided_unknown_labels_and_other_data_are_named(tmp_path: Path, first: Path, finished: Path) -> None:
    base = RunFolder.open(first).read_config()
    with pytest.raises(UsageError, match="no decisions in it"):
        start(tmp_path / "next", based_on(base, first))
    decide(first, {"00003": ("relabel", "cow")})
    with pytest.raises(ToolError, match='"00003" was decided to be "cow".*not one of 3 classes'):
        start(tmp_path / "next", based_on(base, first))
    shutil.rmtree(first)
    shutil.copytree(finished, first)
    decide(first, ANSWERS)
    ids = np.array([f"other {n}" for n in range(48)])
    other = override(based_on(base, first), {"data.source": arrays_file(tmp_path / "other.npz", ids=ids)})
    with pytest.raises(ToolError, match="none of the 5 decisions"):
        start(tmp_path / "next", other)
    assert not (tmp_path / "next").exists()


def test_conflicts_are_refused_or_settled_as_told(tmp_path: Path, first: Path) -> None:
    decide(first, {"00003": ("keep", "0"), "00004": ("keep", "1")})
    decide(first, {"00003": ("drop", None)}, who="bob")
    with pytest.raises(ToolError, match=r'(?s)disagree about 1 sample.*00003: ada says keep "0", bob says drop.*--on-conflict'):
        start(tmp_path / "next", based_on(RunFolder.open(first).read_config(), first))
    assert {one.decision.id for one in next_round(first, "undecided").carried} == {"00004"}
    assert {one.decision.action for one in next_round(first, "latest").carried} == {"drop", "keep"}


def test_apply_follows_the_log_and_the_rounds_before(tmp_path: Path, chain: Path) -> None:
    given = {name: row["given_label"] for name, row in rows_of(chain / "first").items()}
    done = apply_run(chain / "first", tmp_path / "1" / "labels.csv", logged(chain / "first", "refuse"))
    wanted = {name: label for name, label in given.items() if name != "00006"} | {"00003": "0", "00004": "2", "00005": "2"}
    assert labels_in(done.out) == wanted and done.left == 47
    again = apply_run(chain / "second", tmp_path / "2" / "labels.csv", logged(chain / "second", "refuse"))
    assert labels_in(again.out) == wanted | {"00009": "1", "00003": given["00003"]}
    arrays = apply_run(chain / "second", tmp_path / "2n" / "data.npz", logged(chain / "second", "refuse"))
    with np.load(arrays.out) as found:  # made from the source, where 00006 still is
        assert "00006" not in found["ids"].tolist() and len(found["ids"]) == 47
    with again.changes.open(newline="") as file:
        changes = {row["id"]: row for row in csv.DictReader(file)}
    assert changes["00006"]["new"] == "" and changes["00006"]["why"] == "decided by ada in round 1: drop"
    for one in (done, again, arrays):
        assert one.actions["drop"] == 1 and not any("no longer in the source" in note for note in one.notes)
    assert all(row["old"] == given[name] for name, row in changes.items())


def labels_in(path: Path) -> dict[str, str]:
    with path.open(newline="") as file:
        return {row["id"]: row["label"] for row in csv.DictReader(file)}


def test_apply_leaves_what_is_undecided(tmp_path: Path, first: Path) -> None:
    decide(first, {"00003": ("unsure", None)})
    kept = apply_run(first, tmp_path / "a" / "labels.csv", logged(first, "refuse"))
    assert kept.actions["relabel"] == kept.actions["drop"] == 0


def test_round_json_holds_who_and_when(chain: Path) -> None:
    facts = json.loads((chain / "second" / "round.json").read_text())
    assert facts["number"] == 2 and facts["carried"][0]["decision"]["who"] == "ada"
    assert [entry.id for entry in DecisionLog(chain / "second").all()] == ["00009", "00004", "00003"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"number": 2', '"number": "two"'),
        ('"action": "keep"', '"action": "burn"'),
        ('"label": "0"', '"label": ["0"]'),
        ('"samples": 48', '"samples": []'),
        ("{", ""),
    ],
)
def test_a_round_json_that_was_tampered_with_is_named(tmp_path: Path, chain: Path, old: str, new: str) -> None:
    text = (chain / "second" / "round.json").read_text()
    assert old in text
    (tmp_path / "round.json").write_text(text.replace(old, new, 1))
    with pytest.raises(ToolError, match="round.json"):
        read_round(tmp_path / "round.json")
