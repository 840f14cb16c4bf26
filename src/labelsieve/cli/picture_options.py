"""The options about data that several verbs share, made from the settings of pictures; `@reads_data` gives them to a verb."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from labelsieve.config.setting import rules
from labelsieve.data.pictures.options import ON_COMMAND_LINE, PictureSettings

LARGEST = 2**26  # bytes of a file of class names

Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting (see `labelsieve presets --keys`); repeatable."),
]
DataSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Any setting of the data, pictures.*; repeatable."),
]


def _kind_of(name: str) -> Any:
    """The option of a setting of pictures, in the words of its declaration."""
    rule, hint = dict(rules(PictureSettings))[name], get_type_hints(PictureSettings)[name]
    if hint is bool:
        return Annotated[bool, typer.Option(f"--{name.replace('_', '-')}", help=f"{rule.meaning}.")]
    if name == "classes":
        return Annotated[str | None, typer.Option(help=f"{rule.meaning}. Write cat,dog or name a file with one per line.")]
    return Annotated[Path | None if name in PLACES else hint, typer.Option(help=f"{rule.meaning}.")]


LOOKS_FAR = re.compile("[a-z0-9]{2,}:/")  # what a path is made of s3://
PLACES = ("root", "cache_dir", "val", "second_test")
OPTIONS: dict[str, Any] = {name: _kind_of(name) for name in ON_COMMAND_LINE} | {
    "no_mirror": Annotated[
        bool,
        typer.Option(
            "--no-mirror",
            help="Don't mirror pictures in training, since it changes what they show: letters, digits, left and right.",
        ),
    ],
}


@dataclass(frozen=True)
class Said:
    """What was said of data: `options` by dotted key of the configuration, None where nothing was, and `--set` as written."""

    options: dict[str, Any]
    settings: list[str]

    def of_data(self, verb: str) -> dict[str, Any]:
        """Both together, for a verb that only reads data: other settings are errors."""
        from labelsieve.config.resolve import given_by
        from labelsieve.errors import UsageError

        said = given_by(self.options, self.settings)
        others = [key for key in said if not key.startswith("pictures.")]
        if others:
            raise UsageError(f"--set {others[0]}: `{verb}` takes settings of data only, pictures.*; others are for `train`")
        return said


def reads_data(
    *names: str, settings: Any = DataSettings, copies: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a verb the named `OPTIONS` and `--set` in place of its keyword `said`, which receives what they say.

    With `copies` it gets its data on this machine, wherever they lie.
    """
    kinds = {name: OPTIONS[name] for name in names} | {"settings": settings}
    defaults = {name: False if kind.__origin__ is bool else None for name, kind in kinds.items()}
    only = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(name, only, default=defaults[name], annotation=kind) for name, kind in kinds.items()]

    def given(verb: Callable[..., None]) -> Callable[..., None]:
        @wraps(verb)
        def called(*arguments: Any, **values: Any) -> None:
            mine = {name: values.pop(name, default) for name, default in defaults.items()}
            settings = mine.pop("settings") or []
            said = Said(dict(setting(name, value) for name, value in mine.items()), settings)
            if mine.get("root") is not None and LOOKS_FAR.match(mine["root"].as_posix()):
                from labelsieve.errors import UsageError

                raise UsageError(
                    f"--root {mine['root']}: it must be a folder on this machine; where pictures lie elsewhere, put the table "
                    f"there, too, and write whole addresses into it"
                )
            if copies and "://" in str(values.get("data") or ""):
                values["data"] = copied_here(str(values["data"]), said)
            verb(*arguments, said=said, **values)

        signature = inspect.signature(verb)
        parameters = [new for old in signature.parameters.values() for new in (shared if old.name == "said" else [old])]
        called.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return called

    return given


def copied_here(text: str, said: Said) -> str:
    """Data that lie elsewhere, by where their copy is on this machine; other data as they were named."""
    from labelsieve.config.schema import Config, override
    from labelsieve.data.pictures.options import picture_options
    from labelsieve.data.remote import address_in, local_copy
    from labelsieve.terminal.console import console
    from labelsieve.terminal.looking import Looking

    found = address_in(text)
    if found is None:
        return text
    name, address = found
    given = {key: value for key, value in said.options.items() if value is not None and key.startswith("pictures.")}
    with Looking().shown() as watch:
        copied = local_copy(address, picture_options(override(Config(), given).pictures), progress=watch.progress)
    for line in copied.words(address):
        console.print(line)
    return f"{name}:{copied.path}" if name else str(copied.path)


def setting(name: str, value: Any) -> tuple[str, Any]:
    """An option as a setting: its dotted key, and the value, None where the option was not given."""
    if name == "no_mirror":
        return "pictures.mirror", False if value else None
    if name == "classes":
        value = class_names(value)
    return f"pictures.{name}", None if value is False else value


def class_names(text: str | None) -> list[str] | None:
    """The names in a file, one per line, or between commas."""
    from labelsieve import doors
    from labelsieve.errors import ToolError, UsageError

    if text is None:
        return None
    path = Path(text).expanduser()
    try:
        is_file = path.is_file()
        words = doors.read_text(path, LARGEST, follow=True).splitlines() if is_file else text.split(",")
    except (OSError, UnicodeError) as error:
        raise ToolError(f"{path}: the classes cannot be read ({error}); write one name per line, as UTF-8") from None
    names = [word.strip() for word in words if word.strip()]
    if len(names) < 2:
        raise UsageError(f'--classes "{text}" names {len(names)} class; give at least two: cat,dog or a file with one per line')
    return names
