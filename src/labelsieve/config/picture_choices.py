"""The options for reading your own pictures, taken from a configuration. Needs no torch."""

from pathlib import Path

from labelsieve.config.schema import PicturesConfig
from labelsieve.data.pictures.options import PictureOptions


def picture_options(config: PicturesConfig) -> PictureOptions:
    def path(text: str | None) -> Path | None:
        return None if text is None else Path(text).expanduser()

    return PictureOptions(
        image_column=config.image_column,
        label_column=config.label_column,
        id_column=config.id_column,
        split_column=config.split_column,
        root=path(config.root),
        outside=config.outside,
        encoding=config.encoding,
        classes=config.classes,
        skip_unlabelled=config.skip_unlabelled,
        size=config.size,
        white=config.white,
        fit=config.fit,
        cache_dir=path(config.cache_dir),
        by_content=config.by_content,
        strict=config.strict,
        workers=config.workers,
        mirror=config.mirror,
        labels_file=path(config.labels_file),
        second_test=path(config.second_test),
        incomplete=config.incomplete,
    )
