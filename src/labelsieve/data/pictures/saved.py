"""A folder that `datasets` wrote by save_to_disk goes in; a `Listing` comes out. Only pyarrow is needed."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from labelsieve.data.pictures import columns as usual
from labelsieve.data.pictures.arrow import arrow_table
from labelsieve.data.pictures.columns import needed, optional
from labelsieve.data.pictures.labels import Labels, name_labels, number_labels
from labelsieve.data.pictures.listing import SPLIT_NAMES, SPLITS, TRAIN, Listing, arranged
from labelsieve.data.pictures.manifest import check_unique, ids_of, labelled
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.origins import ArrowRows
from labelsieve.errors import ToolError, UsageError, suggest


def is_saved(path: Path) -> bool:
    return (path / "dataset_dict.json").is_file() or ((path / "dataset_info.json").is_file() and (path / "state.json").is_file())


def read_saved(path: Path, options: PictureOptions) -> Listing:
    """One row for each row of its Arrow files; its id is an id column's value, else "split/row"."""
    parts = _parts(path, options.measuring)
    features = _json(path / next(iter(parts)) / "dataset_info.json").get("features") or {}
    image = needed(*_choices(features, "Image", options.image_column, usual.IMAGE), "image_column", path)
    label = needed(*_choices(features, "ClassLabel", options.label_column, usual.LABEL), "label_column", path)
    wanted = optional(list(features), options.id_column, usual.ID, "id_column", path)
    values: list[Any] = []
    ids: list[str] = []
    files: list[Path] = []
    spans: list[tuple[int, int, int]] = []
    for folder, split in parts.items():
        start = len(values)
        for file in _files(path / folder):
            table = arrow_table(file)
            for name in (image, label):
                if name not in table.column_names:
                    raise ToolError(f'{file}: it has no column "{name}"; save the data set again')
            values += table.column(label).to_pylist()
            ids += ids_of(table.column(wanted).to_pylist(), file) if wanted else []
            spans.append((len(files), table.num_rows, split))
            files.append(file)
        if wanted is None:
            prefix = f"{folder}/" if folder else ""
            ids += [f"{prefix}{row:06d}" for row in range(len(values) - start)]
    check_unique(ids, path, "id")
    labels = _labels(values, features[label], options, path)
    listing = Listing(
        path,
        _origin(files, spans, image, options.outside),
        ids,
        labels.codes,
        labels.classes,
        np.repeat(np.array([split for _, _, split in spans], np.int8), [count for _, count, _ in spans]),
        (
            *labels.notes,
            *(f'the split "{name}" is neither train, val nor test: not used' for name in _splits(path) if name not in parts),
        ),
    )
    return arranged(labelled(listing, labels, options.skip_unlabelled))


def _origin(files: list[Path], spans: list[tuple[int, int, int]], image: str, outside: bool) -> ArrowRows:
    shards = [np.full(count, number, np.int64) for number, count, _ in spans]
    rows = [np.arange(count, dtype=np.int64) for _, count, _ in spans]
    return ArrowRows(tuple(files), np.concatenate(shards), np.concatenate(rows), image, outside)


def _parts(path: Path, measuring: bool) -> dict[str, int]:
    """{folder: split}: one folder a split, or the folder itself."""
    if not (path / "dataset_dict.json").is_file():
        return {"": TRAIN}
    names = _splits(path)
    parts = {name: SPLIT_NAMES[name.lower()] for name in names if name.lower() in SPLIT_NAMES}
    for name in names:
        near = suggest(name, SPLIT_NAMES)
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
    return [str(name) for name in _json(path / "dataset_dict.json").get("splits") or []]


def _choices(
    features: dict[str, Any], kind: str, given: str | None, names: tuple[str, ...]
) -> tuple[list[str], str | None, tuple[str, ...]]:
    """Columns to choose from and the usual names: a feature's type says more than its name."""
    typed = tuple(n for n, f in features.items() if isinstance(f, dict) and f.get("_type") == kind)
    usual_names = tuple(name.lower() for name in typed) or names
    return list(features), given, usual_names


def _labels(values: list[Any], feature: Any, options: PictureOptions, path: Path) -> Labels:
    names = feature.get("names") if isinstance(feature, dict) else None
    if not names:
        return name_labels(values, str(path), options.classes)
    numbered = number_labels(values, [str(name) for name in names], str(path))
    if options.classes is None:
        return numbered
    if set(options.classes) != set(numbered.classes):
        strange = sorted(set(options.classes) ^ set(numbered.classes))[0]
        hint = suggest(strange, set(numbered.classes) - {strange})
        raise UsageError(f'{path}: its classes and the classes given differ in "{strange}"{hint}')
    order = np.array([*(options.classes.index(name) for name in numbered.classes), -1])
    return Labels(order[numbered.codes], options.classes)


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
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ToolError(f"{path}: it cannot be read ({error}); save the data set again") from None
    if not isinstance(found, dict):
        raise ToolError(f"{path}: it is not a JSON object; save the data set again")
    return found
