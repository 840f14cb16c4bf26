"""Noise from and to files: matrices, records with their hashes, and foreign lists of labels."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelsieve.data.label_files import label_hash, load, save
from labelsieve.data.noise import inject
from labelsieve.errors import ToolError

K = 3
LABELS = torch.arange(9000) % K
CHANCES = [[0.7, 0.3, 0.0], [0.0, 1.0, 0.0], [0.25, 0.25, 0.5]]


def put(path: Path, content: Any) -> Path:
    if path.suffix == ".npy":
        np.save(path, np.array(content))
    elif path.suffix == ".npz":
        np.savez(path, **content)
    elif path.suffix == ".json":
        path.write_text(json.dumps(content))
    else:
        path.write_text("\n".join(",".join(str(value) for value in row) for row in content))
    return path


@pytest.mark.parametrize("kind", ["npy", "csv", "json"])
def test_labels_follow_the_rows_of_a_matrix(kind: str, tmp_path: Path) -> None:
    noise = inject(f"matrix:{put(tmp_path / f'm.{kind}', CHANCES)}", LABELS, K, 0)
    for k in range(K):
        shares = torch.bincount(noise.labels[k == LABELS], minlength=K) / 3000
        assert shares.tolist() == pytest.approx(CHANCES[k], abs=0.03)
        assert all(share == 0 for share, chance in zip(shares, CHANCES[k]) if chance == 0)
    assert noise.sha256 == inject(f"matrix:{put(tmp_path / 'm.json', CHANCES)}", LABELS, K, 0).sha256


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("m.npy", np.eye(4), r"shape is \(4, 4\); 3 classes"),
        ("m.npy", np.ones(3), r"shape is \(3,\)"),
        ("m.csv", [[1, 0, 0], [0, 1, 0], [0.5, 0.6, -0.1]], "row 2 has a negative"),
        ("m.json", [[1, 0, 0], [0, 0.9, 0.09], [0, 0, 1]], "row 1 sums to 0.99"),
        ("m.npy", [[1, 0, 0], [0, np.nan, 1], [0, 0, 1]], "row 1 has .* NaN"),
        ("m.npy", [[1, 0, 0], [0, np.inf, 1], [0, 0, 1]], "row 1 has .* infinite"),
        ("m.json", [[1, 0, 0], [0, 1], [0, 0, 1]], "write 3 rows of 3 numbers"),
        ("m.json", {"rows": 1}, "write 3 rows of 3 numbers"),
        ("m.csv", [["a", "b", "c"]] * 3, "write 3 rows of 3 numbers"),
        ("m.csv", [], "it is empty"),
        ("m.txt", [[1, 0, 0]] * 3, r"an \.npy, \.csv or \.json file"),
    ],
)
def test_a_wrong_matrix_is_refused(name: str, content: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=says) as caught:
        inject(f"matrix:{put(tmp_path / name, content)}", LABELS, K, 0)
    assert name in str(caught.value)


@pytest.mark.parametrize("spec", ["matrix:{}/no.npy", "matrix:{}/no.csv", "matrix:{}/no.json", "file:{}/no.npz"])
def test_a_file_that_is_not_there_is_named(spec: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=r"no\.(npy|csv|json|npz): no such file"):
        inject(spec.format(tmp_path), LABELS, K, 0)


def test_one_of_several_arrays_is_named_by_its_key(tmp_path: Path) -> None:
    """As shared noise comes: one file for each data set, one array for each rate."""
    wanted = (LABELS + 1) % K
    path = put(tmp_path / "shared.npz", {"sym20": LABELS.numpy(), "asym40": wanted.numpy()})
    assert torch.equal(inject(f"file:{path}:asym40", LABELS, K, 0).labels, wanted)
    for spec in (f"file:{path}", f"file:{path}:sym30"):
        with pytest.raises(ToolError, match=r"has no key .* \(but sym20, asym40\); name one of them: file:.*shared.npz:KEY"):
            inject(spec, LABELS, K, 0)


def test_a_rounding_error_in_a_row_is_borne(tmp_path: Path) -> None:
    path = put(tmp_path / "m.json", [[0.3333333, 0.3333333, 0.3333333], [0, 1, 0], [0, 0, 1]])
    assert set(inject(f"matrix:{path}", LABELS, K, 0).labels.tolist()) == {0, 1, 2}


def test_a_record_comes_back_as_it_was(tmp_path: Path) -> None:
    noise = inject("sym:0.5", LABELS, K, 7)
    save(tmp_path / "noise.npz", noise, LABELS)
    back = load(tmp_path / "noise.npz")
    assert torch.equal(back.labels, noise.labels) and torch.equal(back.flipped, noise.flipped)
    assert (back.spec, back.seed, back.sha256) == ("sym:0.5", 7, noise.sha256)
    assert [path.name for path in tmp_path.iterdir()] == ["noise.npz"], "no half-written file is left"
    again = inject(f"file:{tmp_path / 'noise.npz'}", LABELS, K, 0)
    assert torch.equal(again.labels, noise.labels) and torch.equal(again.flipped, noise.flipped)
    assert again.sha256 == noise.sha256


def test_a_record_of_other_data_is_refused_with_both_hashes(tmp_path: Path) -> None:
    save(tmp_path / "noise.npz", inject("sym:0.5", LABELS, K, 7), LABELS)
    other = LABELS.roll(1)
    with pytest.raises(ToolError) as caught:
        inject(f"file:{tmp_path / 'noise.npz'}", other, K, 0)
    assert label_hash(LABELS) in str(caught.value) and label_hash(other) in str(caught.value)


def test_saving_replaces_a_record_and_a_bad_folder_is_named(tmp_path: Path) -> None:
    first, second = inject("sym:0.5", LABELS, K, 1), inject("sym:0.5", LABELS, K, 2)
    save(tmp_path / "noise.npz", first, LABELS)
    save(tmp_path / "noise.npz", second, LABELS)
    assert load(tmp_path / "noise.npz").sha256 == second.sha256
    with pytest.raises(ToolError, match="cannot be written"):
        save(tmp_path / "nowhere" / "noise.npz", first, LABELS)


@pytest.mark.parametrize("name", ["l.npy", "l.npz", "l.json"])
def test_plain_lists_of_labels_are_read(name: str, tmp_path: Path) -> None:
    listed = LABELS.roll(5).tolist()
    path = put(tmp_path / name, {"labels": listed} if name == "l.npz" else listed)
    noise = inject(f"file:{path}", LABELS, K, 0)
    assert noise.labels.tolist() == listed and bool(noise.flipped.all())


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("l.npy", [0, 1], "2 labels for 9000 samples"),
        ("l.json", [0, 1], "2 labels for 9000 samples"),
        ("l.npz", {"labels": [0, 1]}, "2 labels for 9000 samples"),
        ("l.npz", {"y": [0, 1]}, 'no key "labels"'),
        ("l.npy", [0.5] * 9000, "whole numbers"),
        ("l.npy", np.zeros((9000, 1), int), "whole numbers"),
        ("l.json", [0.5] * 9000, "list of whole numbers"),
        ("l.json", [True] * 9000, "list of whole numbers"),
        ("l.json", [10**30] * 9000, "list of whole numbers"),
        ("l.json", {"labels": []}, "list of whole numbers"),
        ("l.npy", [0] * 8999 + [3], r"row 8999 has label 3, outside 0\.\.2"),
        ("l.npy", [-1] * 9000, "row 0 has label -1"),
        ("l.npz", {"labels": np.array([None, [1]], object)}, "Python objects"),
    ],
)
def test_wrong_lists_are_refused(name: str, content: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match=says) as caught:
        inject(f"file:{put(tmp_path / name, content)}", LABELS, K, 0)
    assert name in str(caught.value)


@pytest.mark.parametrize("name", ["l.npy", "l.npz", "l.json"])
@pytest.mark.parametrize("content", [b"", b"[1, 2", b"\x93NUMPY\x01\x00", b"PK\x03\x04", b"\xff\xfe"])
def test_files_cut_short_are_refused(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ToolError, match=name):
        inject(f"file:{tmp_path / name}", LABELS, K, 0)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"labels": LABELS.numpy()}, "its own labels"),
        ({"sha256": np.array("0" * 64)}, "its own labels"),
        ({"flipped": np.zeros(3, bool)}, "flipped is bool"),
        ({"seed": None}, "seed missing"),
    ],
)
def test_a_record_changed_by_hand_is_refused(changes: dict[str, Any], says: str, tmp_path: Path) -> None:
    path = tmp_path / "noise.npz"
    save(path, inject("sym:0.5", LABELS, K, 7), LABELS)
    with np.load(path, allow_pickle=False) as found:
        content = dict(found) | changes
    np.savez(path, **{key: value for key, value in content.items() if value is not None})
    with pytest.raises(ToolError, match=says):
        load(path)


def test_labels_changed_by_hand_are_not_trained_on(tmp_path: Path) -> None:
    path = tmp_path / "noise.npz"
    save(path, inject("sym:0.5", LABELS, K, 7), LABELS)
    with np.load(path, allow_pickle=False) as found:
        np.savez(path, **dict(found) | {"labels": found["labels"][::-1]})
    with pytest.raises(ToolError, match="its own labels"):
        inject(f"file:{path}", LABELS, K, 0)


def test_a_json_list_is_read_under_any_name(tmp_path: Path) -> None:
    """The published scripts write a bare list, with or without a suffix."""
    file = tmp_path / "cifar10_0.5_sym"
    file.write_text(json.dumps([int(label) for label in (LABELS + 1) % K]))
    assert torch.equal(inject(f"file:{file}", LABELS, K, 0).labels, (LABELS + 1) % K)
