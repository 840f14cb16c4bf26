"""What is wrong with one's own data or with what is said of them: thing, place and remedy, without a traceback."""

import csv
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.conftest import Shell
from cli.own import QUICK, folder, striped
from labelsieve.data.pictures import pool


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(pool, "FEW", 10**6)


@pytest.fixture
def animals(tmp_path: Path) -> Path:
    return folder(tmp_path / "animals", each=6)


def test_a_name_that_is_no_data_is_answered_with_the_nearest(tmp_path: Path, shell: Shell, animals: Path) -> None:
    for verb, rest in (("train", ("--out", tmp_path / "run")), ("inspect", ())):
        answer = shell(verb, "digist", *rest)
        assert answer.code == 2 and 'did you mean "digits"' in answer.err and "class folders" in answer.err
        lost = shell(verb, tmp_path / "animal", *rest)
        assert lost.code == 2 and 'did you mean "animals"' in lost.err and str(tmp_path) in lost.err
    assert not (tmp_path / "run").exists()


def manifest(root: Path, text: str, name: str = "list.csv", encoding: str = "utf-8") -> Path:
    path = root / name
    path.write_bytes(text.encode(encoding))
    return path


GOOD = "".join(f"{name}/{k}.png,{name}\n" for name in ("cat", "dog", "cow") for k in range(6))
TABLES: dict[str, tuple[str, tuple[object, ...], tuple[str, ...]]] = {
    "no label column": ("path,what\n" + GOOD, (), ("--label-column", '"what"')),
    "a column that is not there": ("path,label\n" + GOOD, ("--label-column", "lable"), ('did you mean "label"',)),
    "two label columns": ("path,label,class\n" + "cat/0.png,a,b\n", (), ('"label" and "class"', "label_column")),
    "a label missing": (
        "path,label\n" + GOOD + "cat/x.png,\n",
        (),
        ("1 of 19 rows have no label", "row 19", "--set pictures.skip_unlabelled=true"),
    ),
    "a label misspelt": (
        "path,label\n" + GOOD.replace("cow/5.png,cow", "cow/5.png,cwo"),
        ("--classes", "cat,dog,cow"),
        ('"cwo"', 'did you mean "cow"', "row 18"),
    ),
    "ids twice": ("path,label,id\n" + "cat/0.png,cat,1\ndog/0.png,dog,1\n", (), ('id "1"', "row 1", "row 2")),
    "a path that leaves the root": ("path,label\n" + GOOD + "../../etc/passwd,cat\n", (), ("leads out of the root",)),
    "nothing but a header": ("path,label\n", (), ("no rows",)),
    "files that are all missing": ("path,label\nx.png,a\ny.png,b\n", (), ("none of its 2 pictures", "--root")),
    "too many fields": ("path,label\ncat/0.png,cat,and,more\n", (), ("line 2", "double quotes")),
    "one class": ("path,label\ncat/0.png,cat\ncat/1.png,cat\n", (), ("two",)),
}


@pytest.mark.parametrize("case", TABLES)
@pytest.mark.parametrize("verb", ["train", "inspect"])
def test_tables_that_cannot_be_used(tmp_path: Path, shell: Shell, animals: Path, case: str, verb: str) -> None:
    text, options, words = TABLES[case]
    table = manifest(animals, text)
    rest = ("--out", tmp_path / "run", *QUICK) if verb == "train" else ()
    answer = shell(verb, table, *rest, *options)
    assert answer.code in (1, 2), answer.out
    for word in ("error: ", "list.csv", *words):
        assert word in answer.err
    assert not (tmp_path / "run").exists()


def test_a_table_in_another_encoding_and_with_a_mark(tmp_path: Path, shell: Shell, animals: Path) -> None:
    text = "path,label\n" + GOOD.replace(",cow", ",Kühe")
    table = manifest(animals, text, encoding="cp1252")
    wrong = shell("inspect", table)
    assert wrong.code == 1 and "not UTF-8" in wrong.err and "cp1252" in wrong.err
    right = shell("inspect", table, "--encoding", "cp1252")
    assert right.code == 0 and '"Kühe": 6' in right.out
    marked = shell("inspect", manifest(animals, "\ufeff" + text))
    assert marked.code == 0 and '"Kühe": 6' in marked.out


def test_a_few_missing_files_are_named_counted_and_left_out(tmp_path: Path, shell: Shell, animals: Path) -> None:
    table = manifest(animals, "path,label\n" + GOOD + "cat/none.png,cat\ndog/none.png,dog\n")
    answer = shell("train", table, "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err
    assert "left out: 2 pictures" in answer.out
    told = list(csv.DictReader((tmp_path / "run" / "left_out.csv").open(newline="")))
    assert [(row["id"], row["reason"]) for row in told] == [
        ("cat/none.png", "there is no such file"),
        ("dog/none.png", "there is no such file"),
    ]


def stopped(shell: Shell, data: Path, out: Path) -> None:
    assert shell("train", data, "--out", out, *QUICK, "--time-limit", "0.001s").code == 0


CHANGES: dict[str, tuple[Callable[[Path], object], tuple[str, ...]]] = {
    "broken": (lambda root: (root / "cat" / "3.png").write_bytes(b""), ("1 is gone", "cat/3.png (the file is empty")),
    "added": (lambda root: shutil.copy(root / "cat" / "3.png", root / "cat" / "new.png"), ("1 is new", "cat/new.png")),
    "moved": (lambda root: (root / "cat" / "3.png").rename(root / "dog" / "x.png"), ("gone: cat/3.png", "new: dog/x.png")),
}


@pytest.mark.parametrize("case", CHANGES)
def test_pictures_that_changed_between_two_runs_are_named(tmp_path: Path, shell: Shell, animals: Path, case: str) -> None:
    change, words = CHANGES[case]
    stopped(shell, animals, tmp_path / "run")
    kept = tmp_path / "kept"
    shutil.copytree(animals, kept)
    change(animals)
    answer = shell("resume", tmp_path / "run")
    assert answer.code == 1 and "not the data this run began with" in answer.err and "put the old data back" in answer.err
    for word in words:
        assert word in answer.err
    back = shell("resume", tmp_path / "run", "--data", kept)
    assert back.code == 0, back.err


def test_pictures_deleted_while_a_run_goes_on_do_not_matter(tmp_path: Path, shell: Shell, animals: Path) -> None:
    from labelsieve.config.resolve import resolve
    from labelsieve.train.loop import each_epoch
    from labelsieve.train.start import start

    settings = {"training.epochs": 2, "device": "cpu", "cleaning.dim": 8, "pictures.workers": 1}
    run = start(tmp_path / "run", resolve(f"pictures:{animals}", options=settings))
    shutil.rmtree(animals)
    for _ in each_epoch(run):
        pass
    assert run.done and (tmp_path / "run" / "issues.csv").exists()


def test_trusted_ids_are_pinned_and_unknown_ones_are_named(tmp_path: Path, shell: Shell, animals: Path) -> None:
    ids = tmp_path / "sure.txt"
    ids.write_text("cat/0.png\n./dog/1.png\n\ncow/2.png\n")
    answer = shell("train", animals, "--out", tmp_path / "run", *QUICK, "--trusted", ids)
    assert answer.code == 0, answer.err
    assert "3 labels are trusted" in answer.out
    rows = {row["id"]: row for row in csv.DictReader((tmp_path / "run" / "issues.csv").open(newline=""))}
    for name in ("cat/0.png", "dog/1.png", "cow/2.png"):
        assert float(rows[name]["label_score"]) == 1 and rows[name]["is_label_issue"] == "False"
    ids.write_text("cat/0.png\ncat/00.png\nelk/7.png\n")
    wrong = shell("train", animals, "--out", tmp_path / "other", *QUICK, "--trusted", ids)
    assert wrong.code == 1 and '"cat/00.png" is not in the data' in wrong.err
    assert 'did you mean "cat/0.png"' in wrong.err and "2 such ids" in wrong.err
    changed = shell("resume", tmp_path / "run")
    assert changed.code == 1 and '"cat/00.png"' in changed.err
    ids.write_text("cat/0.png\n")
    other = shell("resume", tmp_path / "run")
    assert other.code == 1 and "trusted ids" in other.err


@pytest.mark.parametrize("text", ["id,why\ncat/0.png,seen\n", "path\ncat/0.png\n", "cat/0.png\n"])
def test_trusted_ids_in_tables(tmp_path: Path, shell: Shell, animals: Path, text: str) -> None:
    table = manifest(tmp_path, text, "sure.csv")
    answer = shell("train", animals, "--out", tmp_path / "run", "--dry-run", "--trusted", table)
    assert answer.code == 0, answer.err


PRIORS = {
    "class,frequency\ncat,1\ndog,1\n": ('no frequency for "cow"',),
    "class,frequency\ncat,1\ndog,1\ncow,0\n": ('"cow"', "above 0"),
    "class,frequency\ncat,1\ndgo,1\ncow,1\n": ('did you mean "dog"',),
    "class,frequency\ncat,1\ndog,1\ncow,many\n": ("'many'",),
    "class,frequency\ncat,1\ncat,1\ndog,1\ncow,1\n": ("twice",),
    "name,n\ncat,1\n": ("class",),
}


@pytest.mark.parametrize("text", PRIORS)
def test_priors_that_cannot_be_used(tmp_path: Path, shell: Shell, animals: Path, text: str) -> None:
    table = manifest(tmp_path, text, "prior.csv")
    answer = shell("train", animals, "--out", tmp_path / "run", *QUICK, "--prior", table)
    assert answer.code in (1, 2) and "prior.csv" in answer.err
    for word in PRIORS[text]:
        assert word in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("option", ["--trusted", "--prior", "--val", "--root", "--pretrained"])
def test_files_that_are_named_and_missing(tmp_path: Path, shell: Shell, animals: Path, option: str) -> None:
    answer = shell("train", animals, "--out", tmp_path / "run", *QUICK, option, tmp_path / "nowhere")
    assert answer.code == 1 and "nowhere" in answer.err and option in answer.err
    assert not (tmp_path / "run").exists() and not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("option", "text", "says"),
    [
        ("--trusted", "a,b\n1,2\n", 'no column "id"'),
        (
            "--prior",
            "cat,0.9\ndog,0.1\n",
            'a column class and a column frequency, named in the first line; the columns are "cat"',
        ),
        ("--val", "{}", "file.json: not recognised; write JSON lines"),
        ("--pretrained", "not weights", "not readable as weights"),
    ],
)
def test_files_of_another_kind_are_told_before_anything_is_decoded(
    tmp_path: Path, shell: Shell, animals: Path, option: str, text: str, says: str
) -> None:
    file = manifest(tmp_path, text, "file.json" if option == "--val" else "file.csv")
    answer = shell("train", animals, "--out", tmp_path / "run", *QUICK, option, file)
    assert answer.code in (1, 2) and says in answer.err
    assert not (tmp_path / "run").exists() and not (tmp_path / "cache").exists()


def test_trusted_labels_that_contradict_the_data_are_refused(tmp_path: Path, shell: Shell, animals: Path) -> None:
    words = ("train", animals, *QUICK, "--dry-run", "--trusted")
    table = manifest(tmp_path, "id,label\ncat/0.png,cat\ncat/1.png,dog\n", "right.csv")
    answer = shell(*words, table)
    assert answer.code == 1 and 'it says that "cat/1.png" is "dog", and the data say "cat"' in answer.err
    table.write_text("id,label\ncat/0.png,cat\ncat/1.png,\n")
    assert "note: 2 labels are trusted" in shell(*words, table).out


def test_a_list_of_issues_or_decisions_is_not_trusted_whole(tmp_path: Path, shell: Shell, animals: Path) -> None:
    """It names doubted and corrected labels, too: all of them were pinned as right."""
    words = ("train", animals, *QUICK, "--dry-run", "--trusted")
    head = "id,action,label,given_label,key\n"
    table = manifest(tmp_path, f"{head}cat/0.png,keep,cat,cat,k1\ncat/1.png,accept,dog,cat,k2\ncat/2.png,drop,,cat,k3\n", "d.csv")
    answer = shell(*words, table)
    assert answer.code == 1 and 'column "action" says "accept" (2 rows' in answer.err and "--decisions RUN" in answer.err
    table.write_text(f"{head}cat/0.png,keep,cat,cat,k1\ncat/1.png,,,cat,k2\n")
    assert "note: 2 labels are trusted" in shell(*words, table).out


def test_a_dry_run_reads_the_prior_and_tells_the_notes(tmp_path: Path, shell: Shell, animals: Path) -> None:
    table = manifest(tmp_path, "class,frequency\ncat,1\ndog,1\n", "prior.csv")
    assert 'no frequency for "cow"' in shell("train", animals, *QUICK, "--dry-run", "--prior", table).err
    told = shell("train", animals, *QUICK, "--dry-run", "--label-column", "kind")
    assert told.code == 0 and "note: --label-column: only for tables, not used for class folders" in told.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--classes", "cat,dgo,cow"), 'the folder "dog" is not one of 3 classes (did you mean "dgo"?)'),
        (("--prior", "0.9,0.1"), "a table with the columns class and frequency"),
        (("--network", "rsnet18"), 'did you mean "resnet18"'),
        (("--pretrained", "zoo"), "timm:NAME"),
        (("--size", 2), "between 4 and 1024"),
        (("--classes", "cat"), "at least two"),
        (("--set", "pictures.fit=stretch"), "crop, squash"),
        (("--cache-dir", "/proc/nothing"), "cache"),
        (("--device", "gpu"), 'did you mean "cuda"'),
        (("--device", "GPU:0"), 'did you mean "cuda"'),
        (("--prior", "unifrm"), 'did you mean "uniform"'),
    ],
)
def test_options_that_cannot_be(tmp_path: Path, shell: Shell, animals: Path, words: tuple[object, ...], said: str) -> None:
    answer = shell("train", animals, "--out", tmp_path / "run", *QUICK, *words)
    assert answer.code in (1, 2) and said in answer.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("place", ["run", "cat/run", "../link/run"])
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_run_among_the_pictures_is_refused(
    tmp_path: Path, shell: Shell, animals: Path, place: str, more: tuple[str, ...]
) -> None:
    (tmp_path / "link").symlink_to(animals)
    before = sorted(animals.rglob("*"))
    answer = shell("train", animals, "--out", animals / place, *QUICK, *more)
    assert answer.code == 2 and f"inside the data {animals}" in answer.err and "another --out" in answer.err
    assert sorted(animals.rglob("*")) == before and not (tmp_path / "cache").exists()


def test_labels_of_flat_splits_in_a_column_that_is_named(tmp_path: Path, shell: Shell) -> None:
    """Before the column is named nothing says what the pictures are; run verbs know it from the run."""
    root, rows = tmp_path / "flat", ["image,breed"]
    for number in range(24):
        (root / "train").mkdir(parents=True, exist_ok=True)
        striped(number, number % 2).save(root / "train" / f"{number}.png")
        rows.append(f"train/{number}.png,{'ab'[number % 2]}")
    (root / "train.csv").write_text("\n".join(rows) + "\n")
    assert "named after a split" in shell("inspect", root).err
    told = shell("inspect", root, "--label-column", "breed")
    assert told.code == 0 and "train: 24 samples in 2 classes" in told.out
    assert shell("train", root, "--label-column", "breed", "--out", tmp_path / "run", *QUICK).code == 0
    moved = root.rename(tmp_path / "moved")
    told = tmp_path / "told.csv"
    told.write_text("id,action\ntrain/0.png,keep\n")
    applied = shell("apply", tmp_path / "run", "--data", moved, "--decisions", told, "--out", tmp_path / "new.csv")
    assert applied.code == 0, applied.err


def test_without_a_gpu_large_pictures_are_kept_to_64_px_and_the_run_remembers(tmp_path: Path, shell: Shell) -> None:
    root = tmp_path / "large"
    for label, name in enumerate(("cat", "dog")):
        (root / name).mkdir(parents=True)
        for k in range(5):
            striped(10 * label + k, label, side=150).save(root / name / f"{k}.png")
    answer = shell("train", root, "--out", tmp_path / "run", *QUICK, "--dry-run", "--verbose")
    assert answer.code == 0 and "size: 64 px at most" in answer.out and "size: 64\n" in answer.out
    assert "network: small" in answer.out
    seen = shell("inspect", root, "--device", "cpu")
    assert "1 x 64 x 64" in seen.out and "network: small" in seen.out
    larger = shell("train", root, "--out", tmp_path / "run", *QUICK, "--dry-run", "--verbose", "--size", 96)
    assert "size: 96\n" in larger.out and "network: resnet18" in larger.out and "px at most" not in larger.out


def test_names_with_quotes_newlines_and_markup(tmp_path: Path, shell: Shell) -> None:
    names = ('a "b"', "<b>&amp;<script>", "two\nlines")
    root = folder(tmp_path / "odd", classes=names, each=6)
    assert shell("inspect", root).code == 0
    out = tmp_path / "run"
    answer = shell("train", root, "--out", out, *QUICK)
    assert answer.code == 0, answer.err
    given = {row["given_label"] for row in csv.DictReader((out / "issues.csv").open(newline=""))}
    assert given == set(names)
    said = shell("predict", out, root / names[2], "--top", 1)
    assert [Path(row["path"]).parent.name for row in csv.DictReader(said.out.splitlines(keepends=True))] == [names[2]] * 6


def test_uneven_and_few_classes_work_and_are_warned_of(tmp_path: Path, shell: Shell) -> None:
    root = folder(tmp_path / "set", classes=("many",), each=60)
    folder(tmp_path / "set", classes=("few", "few"), each=2)
    answer = shell("train", root, "--out", tmp_path / "run", *QUICK)
    assert answer.code == 0, answer.err
    assert "30 times the smallest" in answer.out and '"few": 2' in answer.out and "62 samples are few" in answer.out


def test_a_picture_deleted_while_a_run_rests_is_said_once_and_taken_from_the_cache(
    tmp_path: Path, shell: Shell, animals: Path
) -> None:
    words = ("train", animals, "--out", tmp_path / "run", *QUICK)
    stopped(shell, animals, tmp_path / "run")
    (animals / "cat" / "3.png").unlink()
    answer = shell("resume", tmp_path / "run", "--time-limit", "0.001s")
    assert answer.code == 0, answer.err
    assert (
        answer.out.count("gone since the run started") == 1
        and "1 picture file is gone" in answer.out
        and "cat/3.png" in answer.out
    )
    answer = shell(*words, "--resume")
    assert answer.code == 0 and "gone since the run started" in answer.out, answer.err
    shutil.rmtree(tmp_path / "cache")
    refused = shell("resume", tmp_path / "run")
    assert refused.code == 1 and "1 is gone: cat/3.png" in refused.err and "put the old data back" in refused.err
