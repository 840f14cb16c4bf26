"""Refuses options that the given data cannot use, before anything is read."""

from collections.abc import Mapping
from typing import Any

from labelsieve.data.pictures.options import named
from labelsieve.data.sources import OWN
from labelsieve.errors import UsageError

FILES_ONLY = {"pictures.size": "arrays keep their size", "pictures.classes": "classes are named in the data"}
OF_TABLES = {
    **dict.fromkeys(("image_column", "label_column", "id_column", "split_column", "encoding"), "a table"),
    "root": "a table of paths",
    "labels_file": "a file of vectors",
}


def check_heeded(source: str, given: Mapping[str, Any]) -> None:
    """A `UsageError` for what was said of pictures, by dotted key, and the data at `source` cannot heed.

    Held-out pictures may come as a table where those to learn from do not, so with them nothing said of tables is idle.
    """
    name, said = source.partition(":")[0], [key for key in given if str(given[key]).lower() not in ("", "none", "null")]
    unread = [key for key in FILES_ONLY if key in said]
    if unread and name not in OWN and given.get("features.use") != "frozen":  # a backbone looks at any picture in its own size
        raise UsageError(
            f"{unread[0]} is for pictures in files, and {source} has its own: {FILES_ONLY[unread[0]]}; "
            f"leave it out, or change the data"
        )
    if name == "embeddings" and "pictures.size" in said:
        raise UsageError(f"pictures.size is for pictures, and {source} has vectors, which are taken as they are; leave it out")
    if name != "webvision" and "pictures.second_test" in said:
        raise UsageError(
            f"pictures.second_test is for webvision, and {source} is not that; leave it out, and measure on further pictures "
            f"when the run is done: `labelsieve evaluate RUN DATA`"
        )
    idle = [option for option in OF_TABLES if f"pictures.{option}" in said and not _reads(source, option)]
    if idle and "pictures.val" not in said:
        raise UsageError(
            f"{named(idle[0])} is for {OF_TABLES[idle[0]]}, and {source} is none: there it would change nothing; leave it out"
        )


def _reads(source: str, option: str) -> bool:
    """Whether something said of tables can count. Pictures in files may have one; class folders note what they do not use."""
    name, _, place = source.partition(":")
    if name == "embeddings":
        return option != "root" and not place.lower().endswith(".npz")
    return name == "pictures"
