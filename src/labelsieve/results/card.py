"""README.md of a run: model card and data card in one, of measured figures only; and the cautions that it begins with.

Cautions say when not to rely on a run and what to do about it, what matters most first: one list for the terminal, the card, the
report, estimate.json and Python.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelsieve.config.method_settings import all_warm_up, method_words
from labelsieve.data.doubts import doubts, formulas, single_samples
from labelsieve.issues.estimate import HOW, MEASURED, RIGHT, UNKNOWN_WORDS, Share, in_words
from labelsieve.issues.rules import ACTIONS, KINDS, unlisted_words
from labelsieve.runs import atomic
from labelsieve.runs.findings import Findings, Record, opinion, rankings
from labelsieve.runs.folder import RunFolder
from labelsieve.texts import computed, rounded

MOST = 0.75  # of the labels
NEAR_CHANCE = 1.5  # times what guessing gets right
RECENT = 3  # epochs in which a collapse still matters
HANDFUL = 20  # samples
BAD = "swallows the rest"  # of a collapsed partition; that all labels count as clean is none to fear


def cautions(found: Findings, record: Record) -> list[str]:
    """None where there is nothing to warn of."""
    said = [words for check in (_collapsed, _near_chance, _unfinished, _plain) if (words := check(found, record))]
    counts = np.bincount(found.given, minlength=len(found.classes)).tolist()
    # Ids in class folders begin with their class, of which that is told already.
    told = (list(formulas(found.columns.get(name, ()), name)) for name in ("id", "path"))
    ids = () if any(map(computed, found.classes)) else next(filter(None, told), ())
    return [*said, *_share(found.share), *data_cautions(dict(zip(found.classes, counts))), *map(_sentence, ids)]


def table_cautions(found: Share, counts: Mapping[str, int]) -> tuple[str, ...]:
    """Where there was no run: of an estimate and {class: samples}.

    Of a handful of samples, or of classes that have one each, the estimate says nothing at all.
    """
    late = _share(found) if sum(counts.values()) >= HANDFUL and not single_samples(counts) else []
    return (*late, *data_cautions(counts))


def data_cautions(counts: Mapping[str, int]) -> list[str]:
    """What is known before anything is trained: of {class: samples}."""
    return [_sentence(words) for words in doubts(counts)]


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "?", "!")) else ".")


def _collapsed(found: Findings, record: Record) -> str:
    notes = [note for line in record.metrics[-RECENT:] for note in line.get("notes", ()) if BAD in note]
    if not notes:
        return ""
    decided = record.decision.get("lambda_u", record.config.training.lambda_u)
    ways = "--set training.lambda_u=0, a longer warm-up" if decided else "a longer warm-up (--set training.warmup=N), more epochs"
    return f"Do not use this list: {notes[-1]}. Try {ways}, or a lower learning rate."


def _near_chance(found: Findings, record: Record) -> str:
    if not record.accuracies or record.accuracies[-1][1] >= NEAR_CHANCE * 100 / len(found.classes):
        return ""
    return (
        f"Do not use this list: the networks are right on {record.accuracies[-1][1]:.1f} % of the test pictures, hardly more "
        f"than by guessing. See that labels and samples belong together, or train longer (--epochs N)."
    )


def _unfinished(found: Findings, record: Record) -> str:
    done, planned = record.epochs_done, record.epochs_planned
    return (
        f"Stopped after {done} of {planned} epochs, so scores still move: go on with `labelsieve resume`."
        if done < planned
        else ""
    )


def _plain(found: Findings, record: Record) -> str:
    return all_warm_up(record.config, record.decision.get("epochs"))


def _share(found: Share) -> list[str]:
    if not found.known:
        return [UNKNOWN_WORDS]
    if found.share > MOST:
        return ["Most labels look wrong: see that they belong to these samples, and that the label column is the right one."]
    return []


MOST_CLASSES = 50
MEASURES = {
    "clean_precision": "labels taken as right that are right",
    "clean_recall": "right labels taken as right",
}


def write_card(folder: RunFolder, found: Findings, record: Record) -> None:
    """The card, and what it says as facts for programs: in estimate.json."""
    said = cautions(found, record)
    atomic.write_text(folder.card, card(found, record, said))
    write_estimate(folder, record.decision, said, found)


def write_estimate(folder: RunFolder, decided: Mapping[str, Any], said: Sequence[str], found: Findings | None = None) -> None:
    """estimate.json: how many labels are wrong, null until the end and where it cannot be known; what was decided; cautions."""
    share = None
    if found is not None and found.share.known:
        share = {"share": found.share.share, "low": found.share.low, "high": found.share.high, "by": found.by}
    folder.write_json(folder.estimate, dict(decided) | {"estimate": share, "cautions": list(said)})


def card(found: Findings, record: Record, said: Sequence[str]) -> str:
    """Its text; `said` are the cautions."""
    parts = [
        _head(found, record),
        *(["## Caution\n\n" + "\n".join(f"- {plain(caution)}" for caution in said)] if said else []),
        _data(found, record),
        _labels(found),
        _model(found, record),
        _measured(record),
        _use(),
    ]
    return "\n\n".join(parts) + "\n"


def _head(found: Findings, record: Record) -> str:
    config = record.config
    return (
        f"# Run on {plain(config.data.source)}\n\n"
        f"A classifier of {len(found.classes)} classes trained on {len(found.score):,} given labels, and a list of the labels "
        f"that seem wrong. Written by labelsieve {record.environment.get('labelsieve', '')}; every figure was measured or "
        f"estimated in this run, and estimates say so."
    )


def _data(found: Findings, record: Record) -> str:
    config, share = record.config, found.share
    lines = [
        ("source", plain(config.data.source)),
        ("samples", f"{len(found.score):,}" + (f" (a fixed subset, limit {config.data.limit})" if config.data.limit else "")),
        ("classes", f"{len(found.classes):,}"),
        ("wrong labels, estimated", _said(share)),
    ]
    if record.left_out:
        lines.insert(2, ("listed but left out", f"{record.left_out:,}; `left_out.csv` says why each"))
    if found.made_wrong is not None:
        made = f"{plain(config.data.noise)}: {_percent(float(found.made_wrong.mean()))} of the labels"
        lines.append(("wrong labels, made on purpose", made))
    how = HOW[found.by] + MEASURED if share.known and found.by in HOW else ""
    listed = sorted(range(len(found.classes)), key=lambda k: -found.listed_of(k))[:MOST_CLASSES]
    rows = [
        (plain(found.classes[k]), f"{found.samples[k]:,}", f"{found.listed[k]:,}", _percent(found.listed_of(k))) for k in listed
    ]
    left = len(found.classes) - len(listed)
    which = "1 class of which less is listed is" if left == 1 else f"{left:,} classes of which less is listed are"
    more = f"\n\n{which} not listed." if left else ""
    more += "".join(f"\n\n- {plain(remark)}" for remark in record.remarks)
    table = _table(("class", "samples", "listed as issues", "share listed"), rows)
    return "\n\n".join(filter(None, ["## Data", _table(("", ""), lines), how, table])) + more


def _labels(found: Findings) -> str:
    issues = int(found.is_issue.sum())
    be = "is" if issues == 1 else "are"
    actions = ", ".join(f"{action} {found.count('action', action):,}" for action in ACTIONS)
    kinds = ", ".join(f"{kind} {found.count('kind', kind):,}" for kind in KINDS)
    more = f". {unlisted_words(found.unlisted)}" if found.unlisted else ""
    right = f"\n- {RIGHT[found.by]}" if found.share.known and issues and found.by in RIGHT else ""
    odd = f"\n- odd samples, in no estimate (`sample_issue`): {found.odd_words}" if found.odd_words else ""
    return (
        f"## Labels\n\n`issues.csv` has a row for every sample, most suspicious first; {issues:,} {be} marked as issues.\n\n"
        f"- suggested actions: {actions}{more}\n- kinds: {kinds}{right}{odd}"
    )


def _model(found: Findings, record: Record) -> str:
    config, facts = record.config, record.environment
    packages = facts.get("packages") or {}
    lines = [
        ("networks", f"two of `{plain(config.network)}`, their outputs averaged"),
        ("method", method_words(config)),
        ("epochs", f"{record.epochs_done} of {record.epochs_planned}, of which {config.training.warmup} of warm-up"),
        ("seed", str(config.seed)),
        ("time", f"{record.seconds:,.0f} s on {plain(str(facts.get('device', 'an unknown device')))}"),
        ("made with", f"Python {facts.get('python', '?')}, torch {packages.get('torch') or '?'}"),
    ]
    return (
        f"## Model\n\n{_table(('', ''), lines)}\n\nIt knows the classes above and nothing else; it was trained on these "
        f"labels and shares their biases. All settings are in `config.yaml`."
    )


def _measured(record: Record) -> str:
    accuracies, final, things = record.accuracies, record.final, record.things
    lines = []
    if "chosen_epoch" in final:
        lines.append((f"accuracy on validation {things}, epoch {final['chosen_epoch']}", f"{final['chosen_validation']:.2f} %"))
        lines += [(f"accuracy of that epoch on test {things}", f"{accuracies[-1][1]:.2f} %")] if accuracies else []
    elif accuracies:
        best = max(value for _, value in accuracies)
        lines.append((f"accuracy on test {things}, last epoch", f"{accuracies[-1][1]:.2f} %"))
        lines.append((f"the same, best epoch (chosen on the test {things}, so it flatters)", f"{best:.2f} %"))
    lines += _further(record)
    by_words = {f"ranking of right above wrong labels by {opinion(key)} (AUC)": each for key, each in rankings(final).items()}
    by_words |= {words: [value for value in final.get(name) or () if value is not None] for name, words in MEASURES.items()}
    for words, values in by_words.items():
        if values:
            lines.append((f"{words}, network by network", ", ".join(f"{value:.4f}" for value in values)))
    if not lines:
        return f"## Measured\n\nNothing could be measured: there were neither test {things} nor true labels."
    missing = "" if accuracies else f"\n\nThere were no test {things}, so no accuracy was measured."
    return f"## Measured\n\n{_table(('', ''), lines)}{missing}"


def _further(record: Record) -> list[tuple[str, str]]:
    """Top 5, and test sets beside the first, by the last epoch that measured them."""
    latest: dict[str, Any] = next((line for line in reversed(record.metrics) if "accuracy" in line), {})
    first = f"test {record.things}"
    sets = {first: latest.get("accuracy") or {}} | {plain(name): found for name, found in latest.get("also", {}).items()}
    lines = []
    for name, found in sets.items():
        if name != first:
            lines.append((f"accuracy on {name}, last epoch", f"{found['both']:.2f} %"))
        if "both_top5" in found:
            lines.append((f"right class among the first five on {name}", f"{found['both_top5']:.2f} %"))
    return lines


def _use() -> str:
    return (
        "## Use\n\n```\nlabelsieve report RUN                  # an HTML report\n"
        "labelsieve review RUN                  # check the suspicious labels in your browser\n"
        "labelsieve apply RUN --out CORRECTED   # a copy of the data, as you decided there\n"
        "labelsieve predict RUN PATH...         # classify new samples\n"
        "labelsieve evaluate RUN DATA           # accuracy on other data\n```"
    )


def plain(text: str) -> str:
    """Text that stays text in Markdown: no markup, no line ends, no table bars."""
    safe = html.escape(" ".join(text.split()), quote=False)
    return "".join(f"\\{sign}" if sign in "\\`*_[]|#~" else sign for sign in safe)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _said(share: Share) -> str:
    if not share.known:
        return "cannot be known here"
    lead, aside = in_words(share)
    return f"{lead} ({aside})"


def _percent(share: float) -> str:
    return f"{rounded(share)} %"
