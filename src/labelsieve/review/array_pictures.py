"""Serves pictures of data that are arrays: a function from an id to an encoded picture. Loads torch."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from PIL import Image

from labelsieve.config.moved import to_show
from labelsieve.config.schema import Config
from labelsieve.errors import ToolError
from labelsieve.review.encoding import CHANGED, encode

Encoded = Callable[[str, int], tuple[bytes, str]]


def encoded_from_arrays(config: Config, given: dict[str, str], classes: tuple[str, ...]) -> Encoded:
    """A `ToolError` where the data are gone, have no pictures, or are not those of the run: `given` is {id: label}."""
    from labelsieve.runs.rows import rows_for

    data = rows_for(replace(to_show(config), device="cpu")).data
    if data.are_vectors:
        raise ToolError("the samples are vectors, which have no pictures")
    labels = (data.classes[k] for k in data.labels.tolist())
    if dict(zip(data.ids, labels)) != given or tuple(data.classes) != classes:
        raise ToolError(f"{CHANGED} ({config.data.source})")
    rows, images = {name: row for row, name in enumerate(data.ids)}, data.images.numpy()

    def read(name: str, at_most: int) -> tuple[bytes, str]:
        image = images[rows[name]]
        pixels = image[:3].transpose(1, 2, 0) if len(image) >= 3 else image[0]
        return encode(Image.fromarray(np.ascontiguousarray(pixels)), at_most)

    return read
