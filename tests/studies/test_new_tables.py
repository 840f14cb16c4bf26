"""Studies take hours: what one wrote is not overwritten by the next, and a place that cannot be written is told first."""

from collections.abc import Callable
from pathlib import Path

import pytest

from labelsieve.errors import UsageError
from studies import bounds, judges, known_noise, plain_loop

# The source does not exist: whoever looks at it before the table says another thing.
NOWHERE = "arrays:/nowhere.npz"
STUDIES: dict[str, Callable[[Path, Path], None]] = {
    "bounds": lambda folder, table: bounds.main(NOWHERE, folder / "run", table),
    "judges": lambda folder, table: judges.main(NOWHERE, folder / "run", table),
    "plain_loop": lambda folder, table: plain_loop.main(NOWHERE, table, 3),
    "known_noise --trail": lambda folder, table: known_noise.main(NOWHERE, folder / "run.json", trail=table),
    "known_noise --evidence": lambda folder, table: known_noise.main(NOWHERE, folder / "run.json", evidence=table),
}


@pytest.mark.parametrize("study", STUDIES)
def test_a_table_that_is_there_stays(study: str, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("measured for hours")
    with pytest.raises(UsageError, match="t.csv: that file exists, and nothing is overwritten; move it away, or name another"):
        STUDIES[study](tmp_path, table)
    assert table.read_text() == "measured for hours" and [*tmp_path.iterdir()] == [table]


@pytest.mark.parametrize("study", STUDIES)
def test_a_link_is_not_written_through(study: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").symlink_to(tmp_path / "elsewhere.csv")
    with pytest.raises(UsageError, match="that file exists"):
        STUDIES[study](tmp_path, tmp_path / "t.csv")


@pytest.mark.parametrize("study", STUDIES)
def test_a_missing_folder_is_told_before_anything_is_trained(study: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gone does not exist; create it or change its permissions, or choose another file"):
        STUDIES[study](tmp_path, tmp_path / "gone" / "t.csv")
