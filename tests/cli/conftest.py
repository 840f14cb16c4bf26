"""The command line, called as a shell would: arguments in; exit code, output and errors out."""

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from labelsieve.cli.main import main
from runs.tiny import SETTINGS


@dataclass(frozen=True)
class Answer:
    code: int
    out: str
    err: str


Shell = Callable[..., Answer]
# The settings of a tiny run, as options.
TINY = tuple(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    def call(*words: object) -> Answer:
        monkeypatch.setattr(sys, "argv", ["labelsieve", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        code = end.value.code
        assert code is None or isinstance(code, int)
        return Answer(code or 0, found.out, found.err)

    return call
