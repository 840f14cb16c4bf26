"""A finished tiny run to export, for each test its own."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return shutil.copytree(finished, tmp_path / "run")
