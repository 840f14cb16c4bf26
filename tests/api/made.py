"""Small vectors and pictures with known wrong labels."""

import numpy as np
from numpy.typing import NDArray


def blobs(count: int = 300, classes: int = 3, dimensions: int = 6, wrong: float = 0.2, seed: int = 0) -> tuple[NDArray, ...]:
    """Vectors (count, dimensions) around their class's centre, given labels of which a share is wrong, true labels."""
    rng = np.random.default_rng(seed)
    truth = np.arange(count) % classes
    vectors = 4 * np.eye(classes, dimensions)[truth] + rng.normal(size=(count, dimensions))
    given = np.where(rng.random(count) < wrong, (truth + rng.integers(1, classes, count)) % classes, truth)
    return vectors.astype(np.float32), given, truth


def stripes(count: int = 64, seed: int = 0) -> tuple[NDArray, NDArray]:
    """Pictures (count, 8, 8) as bytes with a bright stripe above or below, and their labels."""
    labels = np.arange(count) % 2
    images = np.random.default_rng(seed).integers(0, 60, (count, 8, 8)).astype(np.uint8)
    for image, label in zip(images, labels):
        image[4 * label : 4 * label + 4] += 150
    return images, labels
