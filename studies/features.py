"""Lists, estimates and corrections on features whose true labels are known, beside cleanlab on the same features.

`python -m studies.features FILE.npz ... --size 500 --size 2000 --seed 0` makes noise on true labels and prints a row per case. A
file has `features` (N, D), true `labels` (N,) and, for labels as people give them, `counts` (N, K): how many people said what.
"""

import json
import math
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
from labelsieve.issues.estimate import UNKNOWN, Share, expected_yield, spread
from labelsieve.issues.rules import RELABEL_CONFIDENCE, RELABEL_SCORE
from labelsieve.methods.parts.estimate import noise_by
from labelsieve.methods.parts.heads import HeldOut, held_out, label_share
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


def opinions(features: NDArray[Any], labels: NDArray[np.int64], classes: int, seed: int) -> HeldOut:
    return held_out([compact(features), compact(features, alike=True)], torch.from_numpy(labels), classes, seed)


def by_cleanlab(features: NDArray[Any], given: NDArray[np.int64]) -> NDArray[Any]:
    """cleanlab's score of each label, by logistic regression on five folds."""
    from cleanlab.rank import get_label_quality_scores
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    probs = cross_val_predict(LogisticRegression(max_iter=1000), features, given, cv=5, method="predict_proba")
    quality: NDArray[Any] = get_label_quality_scores(np.unique(given, return_inverse=True)[1], probs)
    return quality


def judged(features: NDArray[Any], given: NDArray[np.int64], true: NDArray[np.int64], best: HeldOut, seed: int) -> dict[str, Any]:
    """Ours and cleanlab's ranking, the list, the interval, the yield, and what `apply --auto` would do.

    `best` are opinions of heads that learnt from the true labels, and so rank as well as these heads can.
    """
    wrong, labels, count = given != true, torch.from_numpy(given), len(given)
    began = time.process_time()
    quality = by_cleanlab(features, given)
    cleanlab_seconds, began = time.process_time() - began, time.process_time()
    heads = opinions(features, given, best.probs.shape[1], seed)
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
        "bound": average_precision(label_share(best.probs, labels).numpy(), wrong) if wrong.any() else None,
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
    """Tables by set and by noise, coverage, and every row that is lost to cleanlab or missed by an interval."""
    noisy_rows = [row for row in rows if row["ap"] is not None]
    lost = [row["case"] for row in noisy_rows if row["ap"] < row["cleanlab_ap"]]
    known = [row for row in rows if row["interval"][2] - row["interval"][0] <= UNKNOWN]
    missed = [row["case"] for row in known if not row["interval"][0] <= row["wrong"] <= row["interval"][2]]
    yields = [each for row in known for each in row["yields"]]
    met = [each for each in yields if each[1] <= each[3] <= each[2]]
    told = {name: np.sum([row["suggested"][name] for row in noisy_rows], 0).tolist() for name in ("relabel", "review")}
    worse = [row["case"] for row in rows if row["right_after"] < row["right_before"]]
    changed = [row for row in rows if row["auto"]]
    gained = float(np.mean([row["right_after"] - row["right_before"] for row in changed])) if changed else 0.0
    return [
        *table(rows, "set"),
        *table(rows, "noise"),
        *reliability(rows),
        f"lost rows {len(lost)} of {len(noisy_rows)}: {', '.join(lost)}",
        f"interval held {len(known) - len(missed)} of {len(known)}; no percentage in {len(rows) - len(known)}",
        f"missed: {', '.join(missed)}",
        f"yield held {len(met)} of {len(yields)}",
        "suggestions right, where labels are wrong: " + ", ".join(f"{name} {hit} of {of}" for name, (of, hit) in told.items()),
        f"apply --auto changed labels in {len(changed)} of {len(rows)}, {gained:+.3f} right in the mean",
        f"after it fewer were right in {len(worse)}: {', '.join(worse)}",
    ]


def table(rows: list[dict[str, Any]], by: str) -> list[str]:
    """Means of the cases of each set or noise, and of all; the width of the interval is a median."""
    lines = [
        f"{by}: cases, AP ours / cleanlab / bound, error left / by the bound, list precision / recall, width, CPU s ours / theirs"
    ]
    for name in [*dict.fromkeys(row[by] for row in rows), None]:
        some = [row for row in rows if name in (None, row[by])]

        def mean(what: str, some: list[dict[str, Any]] = some) -> float:
            found = [row[what] for row in some if row[what] is not None]
            return float(np.mean(found)) if found else math.nan

        ours, theirs, best = mean("ap"), mean("cleanlab_ap"), mean("bound")
        wide = float(np.median([row["interval"][2] - row["interval"][0] for row in some]))
        lines.append(
            f"| {name or 'all'} | {len(some)} | {ours:.3f} / {theirs:.3f} / {best:.3f} | {(1 - ours) / (1 - theirs):.2f} / "
            f"{(1 - best) / (1 - theirs):.2f} | {mean('list_precision'):.2f} / {mean('list_recall'):.2f} | {wide:.2f} | "
            f"{mean('seconds'):.1f} / {mean('cleanlab_seconds'):.1f} |"
        )
    return lines


def reliability(rows: list[dict[str, Any]]) -> list[str]:
    """How many labels were really wrong of those with a score of 0 to 0.1 and so on, by how many are wrong at all."""
    lines = ["really wrong by label_score: share asked for, 0 to 0.1, 0.1 to 0.2, ..."]
    for rate in sorted({row["rate"] for row in rows}):
        bands = np.sum([row["bands"] for row in rows if row["rate"] == rate], 0).tolist()
        lines.append(f"| {rate:g} | " + " | ".join(f"{wrong / of:.2f}" if of else "-" for of, wrong in bands) + " |")
    return lines


def main(
    files: Annotated[list[Path], typer.Argument(help="Files of features, true labels and maybe counts.")],
    size: Annotated[list[int], typer.Option(help="Rows to draw.")] = [500, 2000],  # noqa: B006
    seed: Annotated[list[int], typer.Option(help="Of the draw, the noise and the folds.")] = [0],  # noqa: B006
    rate: Annotated[list[float], typer.Option(help="Shares of wrong labels.")] = list(RATES),  # noqa: B006
    out: Annotated[Path | None, typer.Option(help="A file of JSON lines, a case each; cases that it has are not run.")] = None,
) -> None:
    """Print a row per case, then a summary with every row that is lost."""
    torch.set_num_threads(1)
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out is not None and out.exists() else []
    done = {row["case"] for row in rows}
    for path in files:
        file = dict(read_npz(path))
        for count, number in ((count, number) for count in size for number in seed):
            drawn = np.sort(np.random.default_rng([number, count]).permutation(len(file["labels"]))[:count])
            true = noisy(file, drawn, "", 0.0, number)
            named = {
                share_of: f"{path.stem} {share_of[0]} {share_of[1]:g} {len(drawn)} seed {number}"
                for share_of in cases(file, rate)
            }
            best = None
            for (kind, share), name in named.items():
                if name in done:
                    continue
                best = best or opinions(file["features"][drawn], true, len(np.unique(file["labels"])), number)
                given = noisy(file, drawn, kind, share, number)
                row = {"case": name, "set": path.stem, "noise": kind, "rate": share}
                row |= judged(file["features"][drawn], given, true, best, number)
                rows.append(row)
                print(json.dumps(row), flush=True)
                if out is not None:
                    with out.open("a", encoding="utf-8") as log:
                        log.write(json.dumps(row) + "\n")
    print("\n".join(summary(rows)))


if __name__ == "__main__":
    as_command(main)
