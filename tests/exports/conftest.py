"""One finished tiny run for all exports; tests copy it before they change anything."""

import shutil
from pathlib import Path

import pytest

from runs.tiny import arrays_file, tiny_config, whole


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("exported")
    whole(home / "run", tiny_config(arrays_file(home / "stripes.npz")))
    return home / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")
