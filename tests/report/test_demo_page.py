"""The demonstration's page says what was measured, and nothing else."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from labelsieve.errors import UsageError
from labelsieve.report.charts import Curve
from labelsieve.report.demo import DemoReport, DemoRow, demo_page, headline
from labelsieve.report.page import Suspect

PICTURE = np.arange(64, dtype=np.uint8).reshape(1, 8, 8)


def report() -> DemoReport:
    epochs = list(range(1, 11))
    return DemoReport(
        title="Digits",
        lead="A test.",
        rows=[
            DemoRow("plain training", 0.8083, 0.9114, 0.731, None, None),
            DemoRow("labelsieve", 0.99, 0.9931, 0.986, 0.958, 0.9661),
        ],
        accuracy=[
            Curve("plain training", epochs, [0.08 * e for e in epochs]),
            Curve("labelsieve", epochs, [0.099 * e for e in epochs]),
        ],
        auc=[Curve("labelsieve", epochs, [None] + [0.9] * 9)],
        warmup=3,
        losses=np.array([0.1, 0.2, 0.1, 5.0, np.nan]),
        wrong=np.array([False, False, False, True, True]),
        suspects=[Suspect(PICTURE, f"row {k}", "3", "8", (k % 7) / 7, k % 2 == 0) for k in range(30)],
        settings={"epochs": "10", "<noise>": "40 % & more"},
    )


def test_the_page_is_sound_and_holds_every_measured_number(read_page: Callable) -> None:
    seen = read_page(demo_page(report()))
    text = " ".join(seen.words).replace("\u00a0", " ")
    for figure in ("80.8 %", "91.1 %", "0.731", "99.0 %", "99.3 %", "0.986", "95.8 %", "96.6 %"):
        assert figure in text
    assert "2 of 5 labels are wrong" in text and "<noise>" in text and "40 % & more" in text
    assert "right labels (3)" in text and "wrong labels (1)" in text and "1 value that is not finite" in text


def test_the_auc_is_said_to_be_that_of_the_prototypes(read_page: Callable) -> None:
    """As in summary.json; the list goes by a score of its own, whose AUC is another."""
    assert "than a right one by the class prototypes alone" in " ".join(read_page(demo_page(report())).words)


def test_the_headline_is_a_sentence_in_the_users_words() -> None:
    assert headline(report()).replace("\u00a0", " ") == (
        "40 % of the labels were made wrong on purpose. Plain training ends at 80.8 % accuracy, labelsieve "
        "at 99.0 %, and it found 96.6 % of the wrong labels. Of the labels on its list, 95.8 % really are wrong."
    )


@pytest.mark.parametrize(
    ("recall", "said"),
    [
        (1.0, "found 100.0 % of the wrong labels"),
        (0.9999, "found over 99.9 % of the wrong labels"),
        (0.0001, "found under 0.1 % of the wrong labels"),
        (0.0, "found 0.0 % of the wrong labels"),
    ],
)
def test_rounding_never_claims_all_or_none(recall: float, said: str) -> None:
    data = report()
    rows = [data.rows[0], replace(data.rows[1], issue_recall=recall, issue_precision=None)]
    words = headline(replace(data, rows=rows))
    assert said in words.replace("\u00a0", " ") and "on its list" not in words


def test_what_was_not_measured_is_not_said() -> None:
    data = report()
    words = headline(replace(data, rows=data.rows[:1], wrong=np.zeros(0, bool), losses=np.zeros(0)))
    assert words.replace("\u00a0", " ") == "Plain training ends at 80.8 % accuracy."


def test_the_24_most_suspicious_come_first_in_order(read_page: Callable) -> None:
    data = report()
    odd = Suspect(PICTURE, "no score", "3", "8", float("nan"), None)
    seen = read_page(demo_page(replace(data, suspects=[odd, *data.suspects])))
    ids = [word for word in seen.words if word.startswith("row ")]
    wanted = sorted(range(30), key=lambda k: k % 7)[:24]
    assert ids == [f"row {k}" for k in wanted] and "no score" not in seen.words
    right = sum(k % 2 == 0 for k in wanted)
    assert f"Of these 24 given labels, {right} really are wrong." in " ".join(seen.words)


def test_one_thing_looks_alike_in_both_charts() -> None:
    text = demo_page(report())
    ends = re.findall(r'class="label end (s\d)">(.*?)</text>', text)
    assert len(ends) == 6 and set(ends) == {("s0", "labelsieve"), ("s1", "plain training")}


def test_accuracy_is_drawn_in_percent_and_the_warm_up_is_shaded() -> None:
    text = demo_page(report())
    assert "labelsieve: ends at 99.000 (epoch 10)." in text
    assert text.count('class="band b0"') == 4
    assert 'class="band' not in demo_page(replace(report(), warmup=0))


def test_an_empty_report_still_is_a_page(read_page: Callable) -> None:
    none = np.zeros(0)
    empty = DemoReport("Nothing", "", [], [], [], 0, none, none.astype(bool), [], {}, next_steps=())
    read_page(demo_page(empty))


def test_percent_for_shares_and_unequal_lengths_are_refused() -> None:
    data = report()
    with pytest.raises(UsageError, match=r'row "plain training": 80\.8 is not a share'):
        demo_page(replace(data, rows=[replace(data.rows[0], accuracy_last=80.8)]))
    with pytest.raises(UsageError, match="5 losses for 4 labels"):
        demo_page(replace(data, wrong=data.wrong[:4]))
