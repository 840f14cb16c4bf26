"""The tiny data, and one finished run of it that tests may copy and must not change."""

from pathlib import Path

import pytest

from runs.tiny import arrays_file, tiny_config, whole


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    return arrays_file(tmp_path_factory.mktemp("data") / "stripes.npz")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, source: str) -> Path:
    path = tmp_path_factory.mktemp("finished") / "run"
    whole(path, tiny_config(source))
    return path
