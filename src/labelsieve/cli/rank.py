"""`labelsieve rank FILE`: the list of suspicious labels by the predicted probabilities of any model, without training."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelsieve.cli.picture_options import Said, reads_data

if TYPE_CHECKING:
    from labelsieve.data.probabilities import Probabilities
    from labelsieve.issues.table import LabelIssues
    from labelsieve.methods.parts.estimate import NoiseEstimate

FIRST = 5  # that are shown


@reads_data("label_column", "id_column", "classes", "encoding")
def rank(
    file: Annotated[
        Path,
        typer.Argument(
            help="An .npz with pred_probs (N, K) and labels (N,), perhaps ids and classes; or a table (.csv, .tsv, .jsonl, "
            ".parquet) with a column of labels and one per class, named as the class."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The .csv or .parquet file to write, which must not exist.")] = Path("issues.csv"),
    *,
    said: Said,
) -> None:
    """Rank labels by predicted probabilities. FILE has both; the most suspicious come first, and nothing is trained.

    The model must not have been trained on the labels it judges: take probabilities from cross-validation. One that has seen a
    wrong label often repeats it, and this cannot be told from the numbers.
    """
    from labelsieve.data.pictures.options import PictureOptions
    from labelsieve.data.probabilities import read_probabilities
    from labelsieve.errors import UsageError
    from labelsieve.issues.table import can_write_parquet
    from labelsieve.results.by_probabilities import issues_by_probabilities
    from labelsieve.runs import atomic
    from labelsieve.terminal.console import check_new, console

    suffix = out.suffix.lower()
    if suffix not in (".csv", ".parquet"):
        raise UsageError(f"--out {out}: the list is written as .csv or .parquet; end the name so")
    if suffix == ".parquet" and not can_write_parquet():
        raise UsageError(f"--out {out}: Parquet needs pyarrow: pip install 'labelsieve[tables]'; or write a .csv")
    check_new("--out", out)
    options = {key.removeprefix("pictures."): value for key, value in said.of_data("rank").items() if value is not None}
    if "classes" in options:
        options["classes"] = tuple(options["classes"])
    found = read_probabilities(file, PictureOptions(**options))
    issues, wrong = issues_by_probabilities(found.values, found.labels.codes, found.ids, found.labels.classes, found.paths)
    atomic.write_new(out, lambda draft: write(issues, draft, suffix))
    for line in words(found, issues, wrong):
        console.print(line)
    console.print(f"list: {out}")


def write(issues: "LabelIssues", draft: Path, suffix: str) -> None:
    from labelsieve.issues.table import write_parquet

    if suffix == ".parquet":
        write_parquet(issues.columns, draft)
        return
    with draft.open("w", encoding="utf-8", newline="") as stream:
        stream.writelines(issues.csv_lines())


def words(found: "Probabilities", issues: "LabelIssues", wrong: "NoiseEstimate") -> list[str]:
    """What was found, the first of the list, and when not to trust it."""
    import numpy as np

    from labelsieve.issues.estimate import Share, sentence
    from labelsieve.results.card import table_cautions

    share = Share(wrong.share, wrong.low, wrong.high)
    listed = int(issues.is_issue.sum())
    counts = dict(zip(issues.classes, np.bincount(issues.given, minlength=len(issues.classes)).tolist()))
    first = issues.order[: min(FIRST, listed)].tolist()
    return [
        *(f"note: {note}" for note in found.labels.notes),
        f"{len(found.ids):,} labels of {len(issues.classes):,} classes: {listed:,} are listed"
        + (f". {sentence(share)}" if share.known else ""),  # else a caution says so
        *(
            f"  {issues.ids[i]}: {issues.classes[issues.given[i]]}, looks like {issues.classes[issues.predicted[i]]} "
            f"(score {issues.score[i]:.3f})"
            for i in first
        ),
        *(f"caution: {caution}" for caution in table_cautions(share, counts)),
    ]
