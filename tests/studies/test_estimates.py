"""The study of estimates counts what people are shown against the truth."""

import numpy as np
import pytest

from studies.estimates import corrected, held, line, main, trained


def test_a_line_says_what_was_really_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    main("digits", ["sym:0.4"], 150, 0, False, ["training.epochs=3", "training.warmup=1"])
    header, row = capsys.readouterr().out.strip().splitlines()
    assert header.startswith("noise") and row.startswith("sym:0.4")
    run = trained("digits", "sym:0.4", 150, 0, False, ["training.epochs=3", "training.warmup=1"])
    wrong = run.found.made_wrong
    assert wrong is not None and f"{wrong.mean():.3f}" in row and row.split(maxsplit=1)[1] == line(run)
    assert corrected(run) == {}, "150 samples are few, which is a caution"
    met, of = held(run.found, wrong)
    assert 0 <= met <= of == 2
    low, high = (run.found.expected.at(50)[k] for k in (1, 2))
    assert (met == 2) <= (low <= np.sum(wrong[run.found.order[:50]]) <= high)
