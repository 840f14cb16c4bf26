"""DivideMix as a plain loop, to hold a run against: torch's layers and optimiser, scikit-learn's mixture, nothing of ours.

`python -m studies.plain_loop DATA --preset cifar100-sym90 --until 45 --table FILE.csv` shares only the pictures,
the noisy labels, the network's layers and the settings with `labelsieve train --method dividemix`. No engine, no views made in
bulk, no compilation or capture, float32 (convolutions as torch rounds them). Where it goes another way than a run of the same
settings, one of them is wrong. It is slow on purpose.
"""

import csv
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import torch.nn.functional as F
import typer
from sklearn.metrics import roc_auc_score
from sklearn.mixture import GaussianMixture
from torch import Tensor

from labelsieve import nets
from labelsieve.benchmark.against_cleanlab import check_some_wrong, right_labels
from labelsieve.config.method_settings import settings_for
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config, value_at
from labelsieve.engine.device import choose_device
from labelsieve.errors import ToolError, UsageError
from labelsieve.runs.rows import Rows, rows_for
from labelsieve.terminal.console import as_command, check_new, console
from labelsieve.train.build import prior_for, training_for
from studies.known import held_pictures

COLUMNS = ("epoch", "accuracy", "accuracy_1", "accuracy_2", "cross_entropy", "X_1", "X_2", "precision", "auc")
# What a run would do by these settings, this loop does not: only so it goes the way of a run of the same settings.
ONLY: dict[str, Any] = {"training.train_unlabelled": True, "training.epoch_batches": 0, "training.norm_devices": 1}
ONLY |= {"cleaning.mixture_range": "all", "cleaning.least_clean": (None, 0.0), "training.mixed": (None, True)}


def check_heeded(config: Config) -> None:
    """A `UsageError` for a setting that would make a run, and not this loop, go another way."""
    for key, value in ONLY.items():
        known, found = value if isinstance(value, tuple) else (value,), value_at(config, key)
        if found not in known:
            raise UsageError(f"{key} is {found}, and the plain loop does as if it were {known[-1]}; set it so in both")


class PlainLoop:
    """Two networks and what they have seen; `epochs` trains them, a row of measures each."""

    def __init__(self, config: Config, rows: Rows) -> None:
        if rows.data.are_vectors:
            raise ToolError(f"{config.data.source}: these are vectors; the plain loop takes pictures")
        check_heeded(config)
        check_some_wrong(rows)
        self.right, held = right_labels(rows).numpy(), held_pictures(rows)
        self.config, self.device = config, choose_device(config.device)
        self.recipe, self.training = settings_for(config), training_for(config)
        torch.manual_seed(1000 + config.seed)
        self.draws = np.random.default_rng(config.seed)
        self.images, self.labels = rows.data.images.to(self.device), rows.data.labels.to(self.device)
        self.held, self.held_labels = held.images.to(self.device), held.labels.to(self.device)
        self.classes, self.mirror = len(rows.data.classes), rows.collection.mirror
        self.mean, self.std = (
            torch.tensor(values, device=self.device).view(1, -1, 1, 1) for values in (rows.collection.mean, rows.collection.std)
        )
        shape, r = rows.data.shape, self.training
        made = [nets.build(config.network, shape[0], self.classes, 2 * config.seed + number, shape) for number in (0, 1)]
        self.nets = [net.to(self.device).to(memory_format=torch.channels_last) for net in made]  # type: ignore[call-overload]
        self.optimisers = [
            torch.optim.SGD(net.parameters(), lr=r.lr, momentum=r.momentum, weight_decay=r.weight_decay) for net in self.nets
        ]
        self.prior = prior_for(config, rows.data).to(self.device)
        self.losses: list[list[Tensor]] = [[], []]

    def plain(self, pictures: Tensor) -> Tensor:
        seen = (pictures.float() / 255 - self.mean) / self.std
        return seen.contiguous(memory_format=torch.channels_last)

    def view(self, rows: Tensor) -> Tensor:
        """A crop after padding by an eighth of the side (under 16 px: as it is), mirrored or not: one draw a picture."""
        pictures = self.images[rows]
        count, _, height, width = pictures.shape
        pad = round(min(height, width) / 8) if min(height, width) >= 16 else 0
        padded = F.pad(pictures, (pad, pad, pad, pad))
        top, left = (torch.randint(0, 2 * pad + 1, (count, 1), device=self.device) for _ in range(2))
        down, across = top + torch.arange(height, device=self.device), left + torch.arange(width, device=self.device)
        flipped = torch.rand(count, 1, device=self.device) < (0.5 if self.mirror else 0.0)
        across = torch.where(flipped, across.flip(1), across)
        each = torch.arange(count, device=self.device)[:, None, None]
        return self.plain(padded[each, :, down[:, :, None], across[:, None, :]].permute(0, 3, 1, 2))

    def logits(self, r: int, pictures: Tensor) -> Tensor:
        found: Tensor = self.nets[r](pictures)[0]
        return found

    @torch.no_grad()
    def all_logits(self, r: int, pictures: Tensor) -> Tensor:
        self.nets[r].eval()
        return torch.cat([self.logits(r, self.plain(some)) for some in pictures.split(500)])

    def shuffled(self, rows: Tensor, size: int) -> tuple[Tensor, ...]:
        return rows[torch.randperm(len(rows), device=self.device)].split(size)

    def step(self, r: int, loss: Tensor) -> None:
        self.optimisers[r].zero_grad()
        loss.backward()
        self.optimisers[r].step()

    def warm_up(self, r: int) -> float:
        self.nets[r].train()
        batches = self.shuffled(torch.arange(len(self.labels), device=self.device), self.training.warmup_batch)
        total = torch.zeros((), device=self.device)
        for rows in batches:
            logits = self.logits(r, self.view(rows))
            loss = F.cross_entropy(logits, self.labels[rows])
            if self.recipe.entropy_penalty:
                loss = loss + (logits.softmax(1) * logits.log_softmax(1)).sum(1).mean()
            self.step(r, loss)
            total += loss.detach()
        return float(total) / len(batches)

    def divide(self, r: int) -> np.ndarray:
        """By scikit-learn: the chance of the component with the smaller mean."""
        losses = F.cross_entropy(self.all_logits(r, self.images), self.labels, reduction="none").cpu()
        self.losses[r].append((losses - losses.min()) / (losses.max() - losses.min()))
        memory = self.config.cleaning.mixture_memory or 1
        seen = torch.stack(self.losses[r][-memory:]).mean(0).reshape(-1, 1).numpy()
        mixture = GaussianMixture(2, max_iter=10, tol=1e-2, reg_covar=5e-4, random_state=self.config.seed).fit(seen)
        chances: np.ndarray = mixture.predict_proba(seen)[:, mixture.means_.argmin()]
        return chances

    def mixed(self, r: int, chances: Tensor, epoch: int) -> None:
        """One epoch of MixMatch on the peer's division: a pass a view to guess, short last batches, as published."""
        recipe, clean = self.recipe, chances > self.recipe.mixture_threshold
        labelled, unlabelled = torch.nonzero(clean).flatten(), torch.nonzero(~clean).flatten()
        batches = self.shuffled(labelled, self.training.batch)
        others = (some for _ in repeat(None) for some in self.shuffled(unlabelled, self.training.batch))
        self.nets[r].train()
        self.nets[1 - r].eval()
        for number, (x, u) in enumerate(zip(batches, others)):
            x_views, u_views = [self.view(x), self.view(x)], [self.view(u), self.view(u)]
            with torch.no_grad():
                guesses = [self.logits(who, view).softmax(1) for who in (r, 1 - r) for view in u_views]
                guessed = self.sharp(torch.stack(guesses).mean(0))
                own = torch.stack([self.logits(r, view).softmax(1) for view in x_views]).mean(0)
                w = chances[x][:, None]
                refined = self.sharp(w * F.one_hot(self.labels[x], self.classes) + (1 - w) * own)
            share = float(self.draws.beta(recipe.beta, recipe.beta))
            share = max(share, 1 - share)
            inputs, targets = torch.cat(x_views + u_views), torch.cat([refined, refined, guessed, guessed])
            other = torch.randperm(len(inputs), device=self.device)
            blended = share * inputs + (1 - share) * inputs[other]
            targets = share * targets + (1 - share) * targets[other]
            logits = self.logits(r, blended.contiguous(memory_format=torch.channels_last))
            cut = 2 * len(x)
            fit_x = -(F.log_softmax(logits[:cut], 1) * targets[:cut]).sum(1).mean()
            fit_u = ((logits[cut:].softmax(1) - targets[cut:]) ** 2).mean()
            mean = logits.softmax(1).mean(0)
            penalty = recipe.prior_weight * torch.xlogy(self.prior, self.prior / mean).sum()
            grown = np.clip((epoch + number / len(batches) - recipe.warmup) / max(recipe.ramp_epochs, 1e-9), 0, 1)
            self.step(r, fit_x + recipe.lambda_u * float(grown) * fit_u + penalty)

    def sharp(self, p: Tensor) -> Tensor:
        powered = p ** (1 / self.recipe.temperature)
        return powered / powered.sum(1, keepdim=True)

    def measured(self, epoch: int, **more: Any) -> dict[str, Any]:
        logits = [self.all_logits(r, self.held) for r in (0, 1)]
        both, first, second = (
            100 * float((found.argmax(1) == self.held_labels).float().mean()) for found in (logits[0] + logits[1], *logits)
        )
        return {"epoch": epoch + 1, "accuracy": both, "accuracy_1": first, "accuracy_2": second} | more

    def epochs(self, until: int) -> Iterator[dict[str, Any]]:
        for epoch in range(min(until, self.training.epochs)):
            for group in (one for optimiser in self.optimisers for one in optimiser.param_groups):
                group["lr"] = self.training.lr_at(epoch)
            if epoch < self.recipe.warmup:
                yield self.measured(epoch, cross_entropy=float(np.mean([self.warm_up(r) for r in (0, 1)])))
                continue
            chances = [self.divide(r) for r in (0, 1)]
            taken = [found > self.recipe.mixture_threshold for found in chances]
            if any(one.all() or not one.any() for one in taken):
                raise ToolError(
                    f"epoch {epoch + 1}: all labels or none are taken as clean, so there is nothing to mix; try more noise"
                )
            found = {
                "X_1": int(taken[0].sum()),
                "X_2": int(taken[1].sum()),
                "precision": float(np.mean([self.right[one].mean() for one in taken])),
                "auc": float(np.mean([roc_auc_score(self.right, one) for one in chances])),
            }
            for r in (0, 1):
                self.mixed(r, torch.tensor(chances[1 - r], dtype=torch.float32, device=self.device), epoch)
            yield self.measured(epoch, **found)


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`: pictures, true labels known, with a test set.")],
    table: Annotated[Path, typer.Option(help="The CSV file to write, every epoch's measures; it must not exist.")],
    until: Annotated[int, typer.Option(help="Stop after so many epochs.")],
    preset: Annotated[str | None, typer.Option(help="A named group of settings.")] = None,
    noise: Annotated[str | None, typer.Option(help="Wrong labels to make on purpose.")] = None,
    seed: Annotated[int, typer.Option(help="Of noise, weights and draws.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
) -> None:
    """Train without the engine, and print every epoch."""
    check_new("--table", table)
    options = {"data.noise": noise, "seed": seed, "method": "dividemix", "cleaner": "gmm-agn"}
    config = resolve(data, named=preset, options=options, settings=settings or ())
    loop = PlainLoop(config, rows_for(config))
    with table.open("x", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        rows.writeheader()
        for row in loop.epochs(until):
            rows.writerow({key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()})
            file.flush()
            console.print(
                "  ".join(f"{key} {value:.3f}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items())
            )


if __name__ == "__main__":
    as_command(main)
