"""The options about one's own pictures that several verbs share, and what they set in a configuration."""

from pathlib import Path
from typing import Annotated, Any

import typer

ImageColumn = Annotated[str | None, typer.Option(help="A table's column of picture paths; found by usual names.")]
LabelColumn = Annotated[str | None, typer.Option(help="A table's column of labels; found by usual names.")]
IdColumn = Annotated[str | None, typer.Option(help="A table's column of ids; else the paths are the ids.")]
Root = Annotated[Path | None, typer.Option(help="The folder that a table's paths start from; default: the table's own.")]
Classes = Annotated[
    str | None,
    typer.Option(help="The labels that may occur, in order: cat,dog or a file with one a line. Others are errors."),
]
Size = Annotated[int | None, typer.Option(help="The side in pixels that pictures are brought to; default: by their sizes.")]
CacheDir = Annotated[Path | None, typer.Option(help="Where decoded pictures are kept; default: the user's cache folder.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at an unreadable picture instead of leaving it out.")]
Encoding = Annotated[str | None, typer.Option(help="Of a table: utf-8 unless given; often cp1252 from spreadsheets.")]

Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Any setting by its key; repeatable.")]


def picture_settings(
    image_column: str | None,
    label_column: str | None,
    id_column: str | None,
    root: Path | None,
    classes: str | None,
    size: int | None,
    cache_dir: Path | None,
    strict: bool,
    encoding: str | None,
) -> dict[str, Any]:
    """Dotted keys of the configuration; None where nothing was said."""
    return {
        "pictures.image_column": image_column,
        "pictures.label_column": label_column,
        "pictures.id_column": id_column,
        "pictures.root": root,
        "pictures.classes": class_names(classes),
        "pictures.size": size,
        "pictures.cache_dir": cache_dir,
        "pictures.strict": strict or None,
        "pictures.encoding": encoding,
    }


def class_names(text: str | None) -> list[str] | None:
    """The names in a file, one a line, or between commas."""
    from labelsieve.errors import ToolError, UsageError

    if text is None:
        return None
    path = Path(text).expanduser()
    try:
        is_file = path.is_file()
        words = path.read_text("utf-8-sig").splitlines() if is_file else text.split(",")
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{path}: the classes cannot be read ({error}); write one name a line, as UTF-8") from None
    names = [word.strip() for word in words if word.strip()]
    if len(names) < 2:
        raise UsageError(f'--classes "{text}" names {len(names)} class; give at least two: cat,dog or a file with one a line')
    return names


def data_settings(options: dict[str, Any], settings: list[str] | None, verb: str) -> dict[str, Any]:
    """Options and `--set` as `train` reads them, for the keys that say how data are read; others are errors."""
    from labelsieve.errors import UsageError
    from labelsieve.runs.resolve import given_by

    said = given_by(options, settings or [])
    others = [key for key in said if not key.startswith("pictures.")]
    if others:
        raise UsageError(f"--set {others[0]}: `{verb}` takes settings of data only, pictures.*; others are for `train`")
    return said
