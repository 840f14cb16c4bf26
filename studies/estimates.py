"""The noise estimate held against known noise: `python -m studies.estimates DATA [--noise SPEC ...]`.

Warms the networks up on made noise, estimates, and prints what was really wrong beside it, with the rule's lambda_u.
"""

from typing import Annotated

import typer

from labelsieve.benchmark.against_cleanlab import wrong_labels
from labelsieve.config.resolve import resolve
from labelsieve.config.schema import Config
from labelsieve.methods.epochs import learn
from labelsieve.methods.parts.estimate import NoiseEstimate, estimate_noise
from labelsieve.runs.rows import rows_for
from labelsieve.terminal.console import console
from labelsieve.terminal.ending import as_command
from labelsieve.train.build import parts_for
from labelsieve.train.decide import lambda_by
from labelsieve.train.start import settled

NOISES = ["none", "sym:0.05", "sym:0.2", "sym:0.4", "sym:0.6", "sym:0.8", "pair:0.2", "pair:0.4"]


def estimate_after_warm_up(config: Config) -> tuple[float, NoiseEstimate]:
    """The share that is really wrong, and what is estimated of it."""
    rows = rows_for(config)
    parts = parts_for(settled(config, rows)[0], rows)
    for _ in learn(parts.method, parts.engine, stop=parts.method.c.warmup):
        pass
    wrong = float(wrong_labels(rows).mean())
    return wrong, estimate_noise([parts.engine.evidence(net) for net in parts.method.nets])


def main(
    data: Annotated[str, typer.Argument(help="As for `labelsieve train`.")],
    noise: Annotated[list[str] | None, typer.Option(help="Noise to make; repeatable. Default: eight kinds.")] = None,
    limit: Annotated[int | None, typer.Option(help="Train on a fixed subset of this size.")] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order, views and noise.")] = 0,
    settings: Annotated[list[str] | None, typer.Option("--set", help="KEY=VALUE, any setting.")] = None,
) -> None:
    """A line for each kind of noise: really wrong, estimated, interval, lambda_u by the rule."""
    console.print("noise      really wrong  estimated  interval          lambda_u")
    for spec in noise or NOISES:
        options = {"data.noise": spec, "data.limit": limit, "seed": seed}
        config = resolve(data, options=options, settings=settings or ())
        wrong, found = estimate_after_warm_up(config)
        rule = lambda_by(found)
        console.print(f"{spec:10s} {wrong:12.3f} {found.share:10.3f}  {found.low:.3f} to {found.high:.3f}    {rule:g}")


if __name__ == "__main__":
    as_command(main)
