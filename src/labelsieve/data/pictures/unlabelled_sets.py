"""Opens data sets as `train` reads them, without needing labels: pictures by id."""

from pathlib import Path

from labelsieve.data.pictures.manifest import unlabelled_manifest
from labelsieve.data.pictures.options import PictureOptions
from labelsieve.data.pictures.saved import is_saved, unlabelled_saved
from labelsieve.data.pictures.shards import shard_files, unlabelled_shards
from labelsieve.data.pictures.tables import SUFFIXES
from labelsieve.data.pictures.unlabelled import Unlabelled
from labelsieve.data.pictures.walking import holds_picture
from labelsieve.doors import reading
from labelsieve.errors import ToolError

FILES = (*SUFFIXES, ".npz", ".npy")


def is_set(path: Path) -> bool:
    """Whether pictures are rows of the data set at `path`, rather than itself or the files below it."""
    if path.is_dir():
        try:
            return is_saved(path) or (not holds_picture(path) and bool(shard_files(path)))
        except (OSError, ToolError):  # one that may not be looked into is passed over, and counted, by `find_pictures`
            return False
    return path.suffix.lower() in FILES


def unlabelled_set(kind: str, path: Path, options: PictureOptions) -> Unlabelled:
    """The pictures of a table, a saved data set or Parquet files, `kind` as `recognise` calls it; all splits, each row once."""
    if kind == "manifest":
        with reading(path, "write or fetch the table again"):
            named = unlabelled_manifest(path, options)
        files, problems = named.files.examined()
        return Unlabelled(files, named.ids, problems, notes=named.notes)
    with reading(path, "write or fetch the data set again"):
        rows = unlabelled_saved(path, options) if kind == "saved dataset" else unlabelled_shards(path, options)
    return Unlabelled(rows.origin, rows.ids, {})
