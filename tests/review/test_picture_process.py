"""The process that encodes pictures of arrays."""

import pytest

from labelsieve.config.resolve import resolve
from labelsieve.review.picture_process import PictureProcess


def test_it_ends_quietly_where_the_server_has_gone_before_the_data_were_open(capfd: pytest.CaptureFixture[str]) -> None:
    process = PictureProcess(resolve("digits"), {}, ())
    process.stop()
    process._process.join(120)
    assert process._process.exitcode == 0
    assert "Traceback" not in capfd.readouterr().err
