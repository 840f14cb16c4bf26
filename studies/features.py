"""Lists, estimates and corrections on features whose true labels are known, beside cleanlab on the same features.

`python -m studies.features FILE.npz ... --size 500 --size 2000 --seed 0` makes noise on true labels and prints a row per case. A
file has `features` (N, D), true `labels` (N,) and, for labels as people give them, `counts` (N, K): how many people said what.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import typer
from numpy.typing import NDArray

from labelsieve.benchmark.against_cleanlab import average_precision, peak_mib, recall_at_true_count
from labelsieve.corrected.apply import VOUCHED
from labelsieve.data.noise import inject
from labelsieve.data.npz import read_npz
from labelsieve.issues.estimate import Share, expected_yield, spread
from labelsieve.issues.rules import RELABEL_CONFIDENCE, RELABEL_SCORE
from labelsieve.methods.parts.estimate import noise_by
from labelsieve.methods.parts.heads import held_out, label_share
from labelsieve.methods.parts.scaling import compact
from labelsieve.terminal.console import as_command

KINDS, RATES, FIRST = ("human", "confuse", "sym-other"), (0.05, 0.1, 0.2, 0.4), (50, 100, 200)
UNSEEN = 0.02  # of a vote for classes that nobody named: at high rates people's errors reach beyond those


def noisy(file: dict[str, NDArray[Any]], rows: NDArray[Any], kind: str, rate: float, seed: int) -> NDArray[np.int64]:
    """Labels (M,) of the rows with noise of a kind; of people, a vote is drawn, from counts to the power that gives the rate."""
    true = np.unique(file["labels"], return_inverse=True)[1].astype(np.int64)
    if not rate:
        return true[rows]
    if kind != "human":
        samples = torch.from_numpy(file["features"][rows])
        made = inject(f"{kind}:{rate}", torch.from_numpy(true[rows]), int(true.max()) + 1, seed, samples=samples)
        return made.labels.numpy()
    votes, low, high = file["counts"][rows].astype(np.float64) + UNSEEN, 0.0, 3.0
    for _ in range(40):
        power = (low + high) / 2
        shares = votes**power / (votes**power).sum(1, keepdims=True)
        too_wrong = 1 - shares[np.arange(len(rows)), true[rows]].mean() > rate
        low, high = (power, high) if too_wrong else (low, power)
    drawn = np.random.default_rng([seed, round(1000 * rate)]).random((len(rows), 1))
    return (shares.cumsum(1) > drawn).argmax(1)


def judged(features: NDArray[Any], given: NDArray[np.int64], true: NDArray[np.int64], seed: int) -> dict[str, Any]:
    """Ours and cleanlab's ranking, the list, the interval, the yield, and what `apply --auto` would do."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    wrong, labels, count = given != true, torch.from_numpy(given), len(given)
    began = time.process_time()
    theirs = cross_val_predict(LogisticRegression(max_iter=1000), features, given, cv=5, method="predict_proba")
    quality = get_label_quality_scores(np.unique(given, return_inverse=True)[1], theirs)
    cleanlab_seconds, began = time.process_time() - began, time.process_time()
    heads = held_out([compact(features), compact(features, alike=True)], labels, int(max(given.max(), true.max())) + 1, seed)
    noise, score = noise_by(heads, labels), label_share(heads.probs, labels).numpy()
    seconds = time.process_time() - began
    order, suggested = np.argsort(score, kind="stable"), heads.predicted.numpy()
    listed = np.zeros(count, bool)
    listed[order[: round(noise.share * count)]] = True
    listed &= (score <= 0.5) & (suggested != given)
    share = Share(noise.share, noise.low, noise.high)
    chances = spread(score, suggested != given, order, share)
    found = expected_yield(chances, order, count)
    sure = listed & heads.agree.numpy() & (score <= RELABEL_SCORE) & (heads.probs.amax(1).numpy() >= RELABEL_CONFIDENCE)
    by_action = {"relabel": sure, "review": listed & ~sure}
    right = float(chances.opinions[:, sure].mean(1).min()) if sure.any() else 0.0
    taken = sure if right >= VOUCHED and share.known else np.zeros(count, bool)
    after = np.where(taken, suggested, given)
    return {
        "wrong": float(wrong.mean()),
        "ap": average_precision(score, wrong) if wrong.any() else None,
        "cleanlab_ap": average_precision(quality, wrong) if wrong.any() else None,
        "recall": recall_at_true_count(score, wrong) if wrong.any() else None,
        "list_precision": float(wrong[listed].mean()) if listed.any() else None,
        "list_recall": float(listed[wrong].mean()) if wrong.any() else None,
        "interval": [share.low, share.share, share.high],
        "yields": [[n, *found.at(n)[1:], int(wrong[order[:n]].sum())] for n in FIRST if n <= count],
        "suggested": {name: [int(rows.sum()), int((suggested == true)[rows].sum())] for name, rows in by_action.items()},
        "bands": [[int(each.sum()), int(wrong[each].sum())] for each in in_bands(score)],
        "auto": int(taken.sum()),
        "right_before": float((given == true).mean()),
        "right_after": float((after == true).mean()),
        "seconds": seconds,
        "cleanlab_seconds": cleanlab_seconds,
        "peak_mib": peak_mib(),
    }


def in_bands(score: NDArray[Any]) -> Iterator[NDArray[np.bool_]]:
    """Which labels have a score of 0 to 0.1, of 0.1 to 0.2 and so on."""
    band = np.minimum((10 * score).astype(int), 9)
    yield from (band == k for k in range(10))


def cases(file: dict[str, NDArray[Any]], rates: list[float]) -> Iterator[tuple[str, float]]:
    yield "clean", 0.0
    yield from ((kind, rate) for rate in rates if rate for kind in KINDS if kind != "human" or "counts" in file)


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """Means, coverage, and every row that is lost to cleanlab or missed by an interval."""
    noisy_rows = [row for row in rows if row["ap"] is not None]
    known = [row for row in rows if row["interval"][2] - row["interval"][0] <= 0.5]
    held = [row for row in known if row["interval"][0] <= row["wrong"] <= row["interval"][2]]
    yields = [each for row in known for each in row["yields"]]
    met = [each for each in yields if each[1] <= each[3] <= each[2]]
    ours, theirs = (float(np.mean([row[name] for row in noisy_rows])) for name in ("ap", "cleanlab_ap"))
    lost = [row["case"] for row in noisy_rows if row["ap"] < row["cleanlab_ap"]]
    told = {name: np.sum([row["suggested"][name] for row in rows], 0).tolist() for name in rows[0]["suggested"]}
    bands = np.sum([row["bands"] for row in rows], 0).tolist()
    worse = [row["case"] for row in rows if row["right_after"] < row["right_before"]]
    return [
        f"average precision {ours:.3f}, cleanlab {theirs:.3f}: {(1 - ours) / (1 - theirs):.2f} of its error left",
        f"lost rows {len(lost)} of {len(noisy_rows)}: {', '.join(lost)}",
        f"interval held {len(held)} of {len(known)}, {np.mean([row['interval'][2] - row['interval'][0] for row in known]):.3f} "
        f"wide in the mean; no percentage in {len(rows) - len(known)}",
        f"missed: {', '.join(row['case'] for row in known if row not in held)}",
        f"yield held {len(met)} of {len(yields)}",
        "suggestions right: " + ", ".join(f"{name} {right} of {count}" for name, (count, right) in told.items()),
        "really wrong by label_score, 0 to 0.1 and so on: " + ", ".join(f"{wrong / max(count, 1):.2f}" for count, wrong in bands),
        f"apply --auto changed labels in {sum(row['auto'] > 0 for row in rows)} of {len(rows)}, fewer right in {worse or 0}",
    ]


def main(
    files: Annotated[list[Path], typer.Argument(help="Files of features, true labels and maybe counts.")],
    size: Annotated[list[int], typer.Option(help="Rows to draw.")] = [500, 2000],  # noqa: B006
    seed: Annotated[list[int], typer.Option(help="Of the draw, the noise and the folds.")] = [0],  # noqa: B006
    rate: Annotated[list[float], typer.Option(help="Shares of wrong labels.")] = list(RATES),  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="A file of JSON lines to write, for each case.")] = None,
) -> None:
    """Print a row per case, then a summary with every row that is lost."""
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for path in files:
        file = dict(read_npz(path))
        for count, number in ((count, number) for count in size for number in seed):
            drawn = np.sort(np.random.default_rng([number, count]).permutation(len(file["labels"]))[:count])
            true = noisy(file, drawn, "", 0.0, number)
            for kind, share in cases(file, rate):
                given = noisy(file, drawn, kind, share, number)
                row = {"case": f"{path.stem} {kind} {share:g} {len(drawn)} seed {number}"}
                row |= judged(file["features"][drawn], given, true, number)
                rows.append(row)
                print(json.dumps(row), flush=True)
    if out is not None:
        out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    as_command(main)
