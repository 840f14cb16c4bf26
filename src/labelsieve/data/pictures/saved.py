"""Lists a folder that `datasets` wrote by save_to_disk. Needs only pyarrow."""

from difflib import get_close_matches
from pathlib import Path
from typing import Any

from labelsieve import doors
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.stored import Part, StoredRows, stored_cells, stored_listing
from labelsieve.data.trust import quoted
from labelsieve.errors import ToolError, suggest

LARGEST = 2**26  # bytes of what describes a data set: with very many classes or files, a few million


def is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or ((path / "dataset_info.json").is_file() and (path / "state.json").is_file())


def read_saved(path: Path, options: PictureOptions) -> Listing:
    """One row for each row of its Arrow files; its id is an id column's value, else "split/row"."""
    found = _parts(path, options.measuring)
    features = _json(path / next(iter(found)) / "dataset_info.json").get("features") or {}
    parts = [Part(folder, split, _files(path / folder)) for folder, split in found.items()]
    unused = [name for name in _splits(path) if name not in found]
    return stored_listing(path, parts, features, options, [not_used(name) for name in unused])


def unlabelled_saved(path: Path, options: PictureOptions) -> StoredRows:
    """Every row of every split; ids are those of `read_saved`."""
    names = _splits(path) or [""]
    features = _json(path / names[0] / "dataset_info.json").get("features") or {}
    return stored_cells(path, [Part(name, TRAIN, _files(path / name)) for name in names], features, options)


def misspelt(split: str) -> str:
    """` (did you mean "valid"?)`, where a split's name is nearly a known one; "extra", as SVHN has it, is not."""
    return suggest(split, get_close_matches(split.lower(), SPLIT_NAMES, n=1, cutoff=0.7))


def not_used(split: str) -> str:
    return f'the split "{split}" is neither train, val nor test: not used'


def _parts(path: Path, measuring: bool) -> dict[str, int]:
    """{folder: split}: one folder a split, or the folder itself."""
    if not (path / "dataset_dict.json").is_file():
        return {"": TRAIN}
    names = _splits(path)
    parts = {name: SPLIT_NAMES[name.lower()] for name in names if name.lower() in SPLIT_NAMES}
    for name in names:
        near = misspelt(name)
        if name not in parts and (near or TRAIN not in parts.values()):
            raise ToolError(
                f'{path}: split "{name}" is not known{near}; '
                f"give the folder of one split ({path / name}), or name them {', '.join(SPLITS)}"
            )
    if TRAIN not in parts.values() and not (measuring and parts):
        raise ToolError(f"{path}: it has no training split; give the folder of one split, such as {path / 'test'}")
    return parts


def _splits(path: Path) -> list[str]:
    """The names of its splits; none where it is one by itself."""
    if not (path / "dataset_dict.json").is_file():
        return []
    names = [str(name) for name in _json(path / "dataset_dict.json").get("splits") or []]
    for name in names:
        if not name or name == ".." or "/" in name:
            raise ToolError(f"{path}: dataset_dict.json names the split {quoted(name)}, which is no folder in it; save it again")
    return names


def _files(folder: Path) -> list[Path]:
    state = _json(folder / "state.json")
    if state.get("_indices_data_files"):
        raise ToolError(f"{folder}: its rows are a selection; call flatten_indices() and save_to_disk again")
    files = [folder / str(entry["filename"]) for entry in state.get("_data_files") or []]
    for file in files:
        if file.parent != folder or not file.is_file():
            raise ToolError(f"{file}: no such file, though state.json names it; save the data set again")
    if not files:
        raise ToolError(f"{folder}: state.json names no data files; save the data set again")
    return files


def _json(path: Path) -> dict[str, Any]:
    with doors.reading(path, "save the data set again"):
        found = doors.read_json(path, LARGEST, follow=True)
    if not isinstance(found, dict):
        raise ToolError(f"{path}: it is not a JSON object; save the data set again")
    return found
