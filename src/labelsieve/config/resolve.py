"""Turns what you say into a whole configuration: data set defaults, then the preset, then options, then single settings.

The command line and Python share it.
"""

import shlex
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from labelsieve.config.fitting import check_quick, mixed_as_published
from labelsieve.config.method_settings import cell_settings
from labelsieve.config.moved import moved_to
from labelsieve.config.presets import defaults_for, is_own, preset
from labelsieve.config.schema import Config, full_key, override
from labelsieve.config.validate import check_heeded, cleaner_of, validate
from labelsieve.data.label_files import made_as
from labelsieve.data.pictures.options import picture_options
from labelsieve.data.sources import source_at, whole_path, whole_spec
from labelsieve.errors import UsageError, command

# Settings that name a file or folder; written from where the user is.
PLACES = frozenset(f"pictures.{name}" for name in ("root", "val", "cache_dir", "labels_file", "second_test")) | {
    "data.trusted",
    "features.weights",
    "pretrained",
}
SPECS = {"data.noise": ("matrix:", "file:", "cifar-n:"), "training.prior": ("file:",)}


def parse_settings(pairs: Sequence[str]) -> dict[str, str]:
    """`key=value` texts as a table by full key."""
    table = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f'--set "{pair}" has no value; write it as key=value, for example --set training.lr=0.01')
        table[full_key(key.strip())] = value.strip()
    return table


def given_by(options: Mapping[str, Any] | None, settings: Sequence[str]) -> dict[str, Any]:
    """What was said, by full key: options as dotted keys, None where not given, and over them single settings.

    Places are absolute, so that the run can be taken up from any folder.
    """
    given = {full_key(key): value for key, value in (options or {}).items() if value is not None} | parse_settings(settings)
    return {key: _from_anywhere(key, value) for key, value in given.items()}


def _from_anywhere(key: str, value: Any) -> Any:
    """A value that names a place, or has one behind a word and a colon, with the place made whole."""
    text = str(value)
    if key in PLACES and text.lower() not in ("", "none", "null") and (key, text) != ("pretrained", "zoo"):
        return whole_path(value)
    return whole_spec(text) if text.startswith(SPECS.get(key, ())) else value


def source_of(text: Path | str, base: Config, given: Mapping[str, Any]) -> str:
    """A data set's name, or a path that is looked at with what was said of its pictures; a run folder is neither."""
    refuse_run(str(text))
    said = {key: value for key, value in given.items() if key.startswith("pictures.")}
    return source_at(str(text), picture_options(override(base, said).pictures))


def refuse_run(text: str) -> None:
    """A `UsageError` where what should be data is a run: its issues.csv has paths and labels, and would be taken for them."""
    path = Path(text).expanduser()
    if (path / "config.yaml").is_file() and ((path / "checkpoint").is_dir() or (path / "slim").is_dir()):
        raise UsageError(
            f"{text}: this is a run folder, not data; resume it with {command('resume', path)}, train its next round with "
            f"`labelsieve train --decisions {shlex.quote(str(path))} --out NEXT`, or name the data"
        )


def resolve(
    source: Path | str,
    *,
    named: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> Config:
    """The configuration for `source`: a path, or a known data set such as `digits` or `cifar10:PATH`.

    `options` are settings by their dotted keys, None where not given; `settings` are texts, key=value.
    """
    given = given_by(options, settings)
    source = source_of(source, Config(), given)
    check_heeded(source, given)
    named_settings = preset(named) if named else {}
    noise = str(given.get("data.noise", named_settings.get("data.noise", "none")))
    method = str(given.get("method", named_settings.get("method", "cpc")))
    starts = defaults_for(source, made_as(noise), given.get("features.use") == "frozen") | named_settings
    config = override(Config(), starts | cell_settings(method, named, source, made_as(noise)))
    if named:  # it stands for a whole recipe, whatever network is put into it
        config = mixed_as_published(config)
    if "cleaner" not in given and method != Config().method:
        given["cleaner"] = cleaner_of(method)
    config = override(config, {"data.source": source} | given)
    config = override(config, _following(config, given.keys() | named_settings.keys(), is_own(source)))
    if config.training.quick:
        check_quick(given.keys())
    validate(config)
    return config


def resolve_next(
    base: Config,
    source: Path | str | None = None,
    *,
    named: str | None = None,
    options: Mapping[str, Any] | None = None,
    settings: Sequence[str] = (),
) -> Config:
    """The configuration of a next round: that of the reviewed run, and what was said this time in place of it.

    In a shorter run the warm-up is shortened with it, so that there is something left to find wrong labels in.
    """
    given = given_by(options, settings)
    said = (preset(named) if named else {}) | given
    if "cleaner" not in said and str(said.get("method", "cpc")) != Config().method:
        said["cleaner"] = cleaner_of(str(said["method"]))
    config = override(base if source is None else moved_to(base, source_of(source, base, given)), said)
    check_heeded(config.data.source, {"pictures.val": config.pictures.val} | given)
    epochs, before = config.training.epochs, base.training.epochs
    if "training.warmup" not in said and epochs is not None and (before is None or epochs < before):
        config = override(config, {"training.warmup": min(config.training.warmup, max(1, epochs // 3))})
    if config.training.quick:
        check_quick(given.keys())
    validate(config)
    return config


def _following(config: Config, said: Set[str], own: bool) -> dict[str, Any]:
    """What follows from other settings where nothing was said about it.

    One's own data are warmed up for 8 epochs, in short runs for a third of them, so that there is something left to find
    wrong labels in. Weights that have learnt already are changed with a tenth of the learning rate.
    """
    found: dict[str, Any] = {}
    if own and "training.warmup" not in said and config.training.epochs is not None:
        found["training.warmup"] = min(config.training.warmup, max(1, config.training.epochs // 3))
    if config.pretrained is not None and "training.lr" not in said:
        found["training.lr"] = config.training.lr / 10
    return found
