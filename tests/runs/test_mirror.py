"""`--no-mirror` holds for all pictures: arrays and known data sets too, which say of themselves that they may be mirrored."""

from pathlib import Path

import numpy as np
import pytest

from labelsieve.config.resolve import resolve
from labelsieve.runs.rows import rows_for
from runs.tiny import arrays_file, tiny_config, whole


@pytest.mark.parametrize(("in_file", "said", "mirrored"), [(True, None, True), (True, False, False), (False, None, False)])
def test_what_the_user_says_of_arrays_holds(tmp_path: Path, in_file: bool, said: bool | None, mirrored: bool) -> None:
    source = arrays_file(tmp_path / "data.npz", mirror=np.array(in_file))
    assert rows_for(resolve(source, options={"pictures.mirror": said})).collection.mirror is mirrored


def test_a_run_is_the_one_of_a_file_that_says_so_itself(tmp_path: Path) -> None:
    metrics = []
    for name, in_file, settings in (("said", True, {"pictures__mirror": False}), ("file", False, {}), ("mirrored", True, {})):
        source = arrays_file(tmp_path / f"{name}.npz", mirror=np.array(in_file))
        metrics.append(whole(tmp_path / name, tiny_config(source, **settings)).metrics)
    assert metrics[0] == metrics[1] != metrics[2]
