"""Out-of-sample probabilities as people make them for cleanlab: fold by fold, by the run's own network, a small CNN or a head.

The CNN is what a tutorial would write: three convolutions, 20 epochs at a one-cycle rate, flips and shifts. Nothing of
labelsieve's training is in it, so that a comparison is not with ourselves.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from labelsieve.config.schema import Config, override
from labelsieve.engine.device import choose_device, set_threads
from labelsieve.errors import UsageError
from labelsieve.runs.rows import Rows
from labelsieve.train.held import out_of_fold
from labelsieve.train.start import settled

EPOCHS = 10  # of the run's own network
CNN_EPOCHS, LR, BATCH, SHIFT, WIDTHS = 20, 0.1, 128, 3, (32, 64, 128)
SMALLEST = 8  # pixels a side that are still halved


def same_network(config: Config, rows: Rows, folds: int, epochs: int | None) -> Tensor:
    """Plain cross-entropy on weak views, with the run's network and settings."""
    settings = {"method": "ce", "cleaner": "gmm-agn", "training.epochs": epochs or EPOCHS, "cleaning.judge": "auto"}
    config, _ = settled(override(config, settings), rows)
    return out_of_fold(config, rows, fold_numbers(rows, folds, config.seed), {})


def small_cnn(config: Config, rows: Rows, folds: int, epochs: int | None) -> Tensor:
    """Pictures only."""
    if rows.data.are_vectors:
        raise UsageError("--folds-network cnn takes pictures, and these are vectors; use logistic")
    device, labels = choose_device(config.device), rows.data.labels
    fold, probs = fold_numbers(rows, folds, config.seed), torch.zeros(len(labels), len(rows.data.classes))
    set_threads(config.engine.threads, BATCH * rows.data.images[0].numel())
    pictures = rows.data.images.float()
    pictures = (pictures - pictures.mean((0, 2, 3), keepdim=True)) / pictures.std((0, 2, 3), keepdim=True).clamp_min(1e-6)
    for number in range(folds):
        taken, held = (torch.nonzero(each).flatten() for each in (fold != number, fold == number))
        generator = torch.Generator().manual_seed(1_000 * config.seed + number)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(1_000 * config.seed + number)
            network = cnn(pictures.shape[1], pictures.shape[2], probs.shape[1]).to(device)
        fit(network, pictures[taken], labels[taken], epochs or CNN_EPOCHS, rows.collection.mirror, generator)
        network.eval()
        with torch.no_grad():
            probs[held] = torch.cat([network(some.to(device)).softmax(1).cpu() for some in pictures[held].split(256)])
    return probs


def cnn(channels: int, side: int, classes: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for narrow, wide in zip((channels, *WIDTHS), WIDTHS):
        layers += [nn.Conv2d(narrow, wide, 3, 1, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU()]
        if side >= SMALLEST:
            layers.append(nn.MaxPool2d(2))
            side //= 2
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTHS[-1], classes))


def fit(network: nn.Module, pictures: Tensor, labels: Tensor, epochs: int, mirror: bool, generator: torch.Generator) -> None:
    device = next(network.parameters()).device
    steps = len(list(batches(len(labels), generator)))
    optimiser = torch.optim.SGD(network.parameters(), LR, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, LR, total_steps=max(steps * epochs, 2))
    network.train()
    for _ in range(epochs):
        for rows in batches(len(labels), generator):
            loss = F.cross_entropy(network(varied(pictures[rows], mirror, generator).to(device)), labels[rows].to(device))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()


def batches(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    """BatchNorm cannot do with one picture, so a last one is left to the next epoch."""
    return (rows for rows in torch.randperm(count, generator=generator).split(BATCH) if len(rows) > 1)


def varied(pictures: Tensor, mirror: bool, generator: torch.Generator) -> Tensor:
    """Flipped by chance, and shifted by up to 3 px with a reflected edge; tiny pictures are not shifted."""
    count, channels, height, width = pictures.shape
    if mirror:
        flipped = torch.rand(count, generator=generator) < 0.5
        pictures = torch.where(flipped[:, None, None, None], pictures.flip(3), pictures)
    if min(height, width) < 2 * SMALLEST:
        return pictures
    padded = F.pad(pictures, (SHIFT,) * 4, mode="reflect")
    down, right = (torch.randint(0, 2 * SHIFT + 1, (count, 1), generator=generator) for _ in range(2))
    rows, columns = (down + torch.arange(height))[:, None, :, None], (right + torch.arange(width))[:, None, None, :]
    return padded[torch.arange(count)[:, None, None, None], torch.arange(channels)[:, None, None], rows, columns]


def logistic(config: Config, rows: Rows, folds: int, epochs: int | None) -> Tensor:
    """Logistic regression on vectors, as cleanlab's own examples have it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not rows.data.are_vectors:
        raise UsageError("--folds-network logistic takes vectors, and these are pictures; use cnn, or --backbone NAME")
    vectors, labels = rows.data.images.numpy(), rows.data.labels.numpy()
    fold, probs = fold_numbers(rows, folds, config.seed).numpy(), np.zeros((len(labels), len(rows.data.classes)))
    for number in range(folds):
        head = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        head.fit(vectors[fold != number], labels[fold != number])
        probs[np.ix_(fold == number, head.classes_)] = head.predict_proba(vectors[fold == number])
    return torch.from_numpy(probs)


def fold_numbers(rows: Rows, folds: int, seed: int) -> Tensor:
    """(N,) which fold holds each row out, classes spread evenly."""
    from sklearn.model_selection import StratifiedKFold

    number = torch.zeros(len(rows.data), dtype=torch.int64)
    splits = StratifiedKFold(folds, shuffle=True, random_state=seed).split(np.zeros(len(number)), rows.data.labels)
    for place, (_, held) in enumerate(splits):
        number[torch.from_numpy(held)] = place
    return number


COMPARATORS: dict[str, Callable[[Config, Rows, int, int | None], Tensor]] = {
    "same": same_network,
    "cnn": small_cnn,
    "logistic": logistic,
}
