"""Every noise: exact counts, where labels go, the benchmark's maps written out again, and what is refused."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from labelsieve.data.label_files import label_hash
from labelsieve.data.noise import FORMS, NOISES, inject, read_matrix
from labelsieve.errors import ToolError, UsageError

K, N = 10, 20_000
LABELS = torch.arange(N) % K
NAMES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


# CIFAR-100's twenty superclasses in the official numbering.
CIFAR100_GROUPS = [
    (4, 30, 55, 72, 95),
    (1, 32, 67, 73, 91),
    (54, 62, 70, 82, 92),
    (9, 10, 16, 28, 61),
    (0, 51, 53, 57, 83),
    (22, 39, 40, 86, 87),
    (5, 20, 25, 84, 94),
    (6, 7, 14, 18, 24),
    (3, 42, 43, 88, 97),
    (12, 17, 37, 68, 76),
    (23, 33, 49, 60, 71),
    (15, 19, 21, 31, 38),
    (34, 63, 64, 66, 75),
    (26, 45, 77, 79, 99),
    (2, 11, 35, 46, 98),
    (27, 29, 44, 78, 93),
    (36, 50, 65, 74, 80),
    (47, 52, 56, 59, 96),
    (8, 13, 48, 58, 90),
    (41, 69, 81, 85, 89),
]


def transitions(before: torch.Tensor, after: torch.Tensor, classes: int = K) -> np.ndarray:  # type: ignore[type-arg]
    """(K, K): the share of class i's samples now labelled j."""
    table = np.zeros((classes, classes))
    np.add.at(table, (before.numpy(), after.numpy()), 1)
    return table / table.sum(1, keepdims=True)


def test_every_noise_has_its_form() -> None:
    assert list(NOISES) == [form.partition(":")[0] for form in FORMS]


def test_none_changes_nothing() -> None:
    noise = inject("none", LABELS, K, 0)
    assert torch.equal(noise.labels, LABELS) and not noise.flipped.any()


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_sym_relabels_over_all_classes(rate: float) -> None:
    noise = inject(f"sym:{rate}", LABELS, K, 3)
    assert float(noise.flipped.float().mean()) == pytest.approx(rate * 0.9, abs=0.01)
    expected = np.full((K, K), rate / K) + np.eye(K) * (1 - rate)
    assert np.abs(transitions(LABELS, noise.labels) - expected).max() < 0.025


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.45, 1.0])
def test_sym_other_flips_exactly_so_many(rate: float) -> None:
    noise = inject(f"sym-other:{rate}", LABELS, K, 3)
    assert int(noise.flipped.sum()) == round(rate * N)
    expected = np.full((K, K), rate / 9)
    np.fill_diagonal(expected, 1 - rate)
    assert np.abs(transitions(LABELS, noise.labels) - expected).max() < 0.03


def test_sym_draws_exactly_so_many() -> None:
    """Among a billion classes no row draws its own again, so the rows drawn can be counted."""
    noise = inject("sym:0.5", torch.zeros(1001, dtype=torch.int64), 1_000_000_000, 0)
    assert int(noise.flipped.sum()) == round(0.5 * 1001) == 500


def test_pair_moves_to_the_next_class() -> None:
    noise = inject("pair:0.3", LABELS, K, 1)
    assert int(noise.flipped.sum()) == round(0.3 * N)
    assert torch.equal(noise.labels[noise.flipped], (LABELS[noise.flipped] + 1) % K)


def test_asym_on_cifar10_follows_the_benchmark() -> None:
    noise = inject("asym:0.4", LABELS, K, 1, name="cifar10")
    moves = {"truck": "automobile", "bird": "airplane", "deer": "horse", "cat": "dog", "dog": "cat"}
    seen = {(NAMES[int(before)], NAMES[int(after)]) for before, after in zip(LABELS[noise.flipped], noise.labels[noise.flipped])}
    assert seen == set(moves.items())
    assert float(noise.flipped.float().mean()) == pytest.approx(0.2, abs=0.01)
    table = transitions(LABELS, noise.labels)
    for before, after in moves.items():
        assert table[NAMES.index(before), NAMES.index(after)] == pytest.approx(0.4, abs=0.04)


def test_asym_at_full_rate_moves_every_mapped_label() -> None:
    noise = inject("asym:1", torch.arange(10), K, 0, name="cifar10")
    assert noise.labels.tolist() == [0, 1, 0, 5, 7, 3, 6, 7, 8, 1]


def test_asym_on_superclasses_goes_round_within_each() -> None:
    groups = [next(g for g, members in enumerate(CIFAR100_GROUPS) if k in members) for k in range(100)]
    noise = inject("asym:1.0", torch.arange(100), 100, 0, groups=groups, name="cifar100")
    for first, second, third, fourth, fifth in CIFAR100_GROUPS:
        moved = [int(noise.labels[k]) for k in (first, second, third, fourth, fifth)]
        assert moved == [second, third, fourth, fifth, first]


def test_asym_at_part_rate_on_superclasses_flips_exactly_so_many() -> None:
    labels = torch.arange(1000) % 100
    noise = inject("asym:0.4", labels, 100, 0, groups=[k // 5 for k in range(100)])
    assert int(noise.flipped.sum()) == 400
    assert all(int(b) // 5 == int(a) // 5 for b, a in zip(labels, noise.labels))


@pytest.mark.parametrize("spec", ["sym:0.5", "sym-other:0.5", "asym:0.5", "pair:0.5"])
def test_a_seed_means_the_same_labels_and_another_seed_others(spec: str) -> None:
    first, again, other = (inject(spec, LABELS, K, seed, name="cifar10") for seed in (5, 5, 6))
    assert torch.equal(first.labels, again.labels) and first.sha256 == again.sha256
    assert not torch.equal(first.labels, other.labels) and first.sha256 != other.sha256
    assert (first.spec, first.seed) == (spec, 5)
    assert torch.equal(first.flipped, first.labels != LABELS)
    assert torch.equal(LABELS, torch.arange(N) % K), "the labels given are left alone"


def blobs(size: int = 900, far: float = 2.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Pictures of three classes: 0 and 1 are alike, 2 is unlike both."""
    labels = torch.arange(size) % 3
    level = torch.tensor([0.0, 1.0, 1.0 + 4 * far])[labels]
    drawn = torch.randn(size, 1, 12, 12, generator=torch.Generator().manual_seed(0))
    return (100 + 8 * level[:, None, None, None] + 20 * drawn).clamp(0, 255).to(torch.uint8), labels


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.4, 1.0])
def test_confuse_makes_exactly_so_many_wrong(rate: float) -> None:
    pictures, labels = blobs()
    noise = inject(f"confuse:{rate}", labels, 3, 4, samples=pictures)
    assert int(noise.flipped.sum()) == round(rate * len(labels))
    assert torch.equal(noise.labels, inject(f"confuse:{rate}", labels, 3, 4, samples=pictures).labels)
    if 0 < rate < 1:
        assert not torch.equal(noise.labels, inject(f"confuse:{rate}", labels, 3, 5, samples=pictures).labels)


def test_confuse_takes_what_is_hard_to_tell_and_calls_it_what_it_looks_like() -> None:
    pictures, labels = blobs()
    for samples in (pictures, pictures.float().mean((2, 3)), pictures.float().flatten(1)):
        noise = inject("confuse:0.1", labels, 3, 0, samples=samples)
        table = np.zeros((3, 3))
        np.add.at(table, (labels[noise.flipped].numpy(), noise.labels[noise.flipped].numpy()), 1)
        assert table[0, 1] + table[1, 0] > 0.9 * table.sum()
    fewer, more = (inject(f"confuse:{rate}", labels, 3, 0, samples=pictures) for rate in (0.1, 0.3))
    assert bool(more.flipped[fewer.flipped].all()) and torch.equal(more.labels[fewer.flipped], fewer.labels[fewer.flipped])


def test_confuse_copes_with_what_no_model_can_learn() -> None:
    flat, labels = torch.zeros(40, 3, 4, 4, dtype=torch.uint8), torch.arange(40) % 2
    assert int(inject("confuse:0.5", labels, 4, 0, samples=flat).flipped.sum()) == 20  # two classes have no sample
    far = torch.eye(2)[labels] * 1e6  # told apart beyond doubt
    assert int(inject("confuse:1", labels, 2, 0, samples=far).flipped.sum()) == 40
    with pytest.raises(UsageError, match="needs the pictures or vectors"):
        inject("confuse:0.1", labels, 2, 0)


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        ("sym:0.5", "e646ec0317836ba0"),
        ("asym:0.4", "eb480b53311335d1"),
        ("sym-other:0.2", "0734dc22ce6145fe"),
    ],
)
def test_these_labels_never_change(spec: str, start: str) -> None:
    assert inject(spec, LABELS, K, 0, name="cifar10").sha256[:16] == start


def test_a_smaller_rate_draws_a_part_of_the_larger() -> None:
    small, large = (inject(f"pair:{rate}", LABELS, K, 0).flipped for rate in (0.2, 0.5))
    assert bool((large | ~small).all())


def test_the_hash_is_sha256_of_little_endian_words() -> None:
    expected = hashlib.sha256(b"\1\0\0\0\0\0\0\0" + b"\2\1\0\0\0\0\0\0").hexdigest()
    assert label_hash(torch.tensor([1, 258])) == expected
    assert label_hash(torch.tensor([1, 258], dtype=torch.int32)) == expected


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("symm:0.5", 'unknown noise "symm".*did you mean "sym"'),
        ("", "the forms are none, sym:RATE"),
        ("none:0.5", "none"),
        ("sym", 'rate ""'),
        ("sym:half", 'rate "half"'),
        ("sym:50", 'rate "50" is not a number from 0 to 1'),
        ("sym:-0.1", 'rate "-0.1"'),
        ("sym:nan", 'rate "nan"'),
        ("sym-other:1.01", "from 0 to 1"),
        ("pair:inf", "from 0 to 1"),
        ("asym:0.4", r"pair:0\.4 .* or matrix:FILE"),
        ("matrix:", "matrix:FILE"),
        ("file", "file:FILE"),
    ],
)
def test_a_wrong_spec_is_refused(spec: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        inject(spec, LABELS, K, 0, name="digits")


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(UsageError, match="seed -1"):
        inject("sym:0.5", LABELS, K, -1)


def votes_file(path: Path, counts: np.ndarray) -> str:
    np.savez(path, counts=counts)
    return f"votes:{path}"


def test_votes_are_drawn_from_what_people_said_of_each_sample(tmp_path: Path) -> None:
    """At any rate asked for, wrong labels fall where people disagreed, on what they said."""
    labels = torch.arange(600) % 3
    counts = np.zeros((700, 3))
    counts[np.arange(600), labels] = 50
    counts[:200] = 0
    counts[np.arange(200), labels[:200]], counts[np.arange(200), (labels[:200] + 1) % 3] = 40, 10
    spec, ids = votes_file(tmp_path / "v.npz", counts), [f"{row:05d}" for row in range(600)]
    for rate in (0.03, 0.05, 0.1):
        made = inject(f"{spec}:{rate}", labels, 3, 0, ids=ids)
        assert float(made.flipped.double().mean()) == pytest.approx(rate, abs=0.03)
        wrong = torch.nonzero(made.flipped).flatten()
        assert (wrong < 200).double().mean() > 0.9
        assert (made.labels[wrong[wrong < 200]] == (labels[wrong[wrong < 200]] + 1) % 3).double().mean() > 0.9
    some = inject(f"{spec}:0.1", labels[100:200], 3, 0, ids=ids[100:200])  # of a part, its own rows
    assert float(some.flipped.double().mean()) == pytest.approx(0.1, abs=0.1)


def test_votes_on_other_pictures_are_refused(tmp_path: Path) -> None:
    labels, ids = torch.arange(60) % 3, [f"{row:05d}" for row in range(60)]
    right, other = np.eye(3)[labels] * 9, np.eye(3)[(labels + 1) % 3] * 9
    for counts, names, words in (
        (other, ids, "votes on other pictures"),
        (right[:50], ids, "do not fit"),
        (right, ["a"] * 60, "do not fit"),
        (right[:, :2], ids, "do not fit"),
    ):
        with pytest.raises(UsageError, match=words):
            inject(votes_file(tmp_path / "v.npz", counts) + ":0.2", labels, 3, 0, ids=names)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -1, 1e300, 1j, "3"])
@pytest.mark.filterwarnings("error")
def test_what_is_no_number_or_no_count_is_one_sentence(tmp_path: Path, bad: Any) -> None:
    labels, counts = torch.arange(60) % 3, np.eye(3)[torch.arange(60) % 3] * 9
    counts = np.where(np.arange(60)[:, None] == 7, bad, counts)
    with pytest.raises(ToolError, match="a count is not within 0 to|not numbers"):
        inject(votes_file(tmp_path / "v.npz", counts) + ":0.2", labels, 3, 0, ids=[str(row) for row in range(60)])
    np.save(tmp_path / "m.npy", counts[6:9])
    with pytest.raises(ToolError, match="not numbers|chances are 0 to 1|must sum to 1"):
        read_matrix(tmp_path / "m.npy", 3)
