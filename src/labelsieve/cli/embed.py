"""`labelsieve embed DATA --backbone NAME --out FILE.npz`: the features of pictures by a pretrained network, with their labels."""

from pathlib import Path
from typing import Annotated

import typer

from labelsieve.cli.picture_options import OPTIONS, Said, reads_data

SHARED = tuple(name for name in OPTIONS if name not in ("second_test", "no_mirror"))


@reads_data(*SHARED)
def embed(
    data: Annotated[str, typer.Argument(help="Labelled pictures in any form that `train` reads.")],
    backbone: Annotated[str, typer.Option(help="A timm network, such as tf_efficientnet_lite0 or vit_small_patch14_dinov2.")],
    out: Annotated[Path, typer.Option(help="The .npz file to write, which must not exist.")],
    weights: Annotated[
        Path | None,
        typer.Option(help="A safetensors or torch file with its weights; default: timm's own, downloaded unless they are here."),
    ] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Download nothing.")] = False,
    limit: Annotated[int | None, typer.Option(help="Use a fixed subset of this many training pictures.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:N.")] = "auto",
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Only the Ith of N parts of the pictures, on this machine; --merge joins them."),
    ] = None,
    merge: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Join the parts in this folder, and look at no picture.")
    ] = None,
    *,
    said: Said,
) -> None:
    """Turn pictures into features of a network. For `train FILE.npz` and `find_label_issues`; work that is done is not redone."""
    from labelsieve.backbones.shards import shard_of
    from labelsieve.config.resolve import resolve
    from labelsieve.errors import UsageError
    from labelsieve.runs.embed import embed_data, embed_part, merge_parts
    from labelsieve.runs.features import FROZEN
    from labelsieve.terminal.console import check_new, console
    from labelsieve.terminal.looking import Looking

    if out.suffix.lower() != ".npz":
        raise UsageError(f"--out {out}: features are written as .npz; end the name so")
    check_new("--out", out)
    if shard is not None and merge is not None:
        raise UsageError("--shard makes a part and --merge joins them all; give one of the two")
    part = None if shard is None else shard_of(shard)
    said.of_data("embed")
    options = said.options | {
        "features.use": FROZEN,
        "features.backbone": backbone,
        "features.weights": weights,
        "features.offline": offline or None,
        "data.limit": limit,
        "device": device,
    }
    config = resolve(data, options=options, settings=said.settings)
    with Looking().shown() as watch:
        if part is not None:
            made = embed_part(config, *part, out, watch)
        else:
            made = embed_data(config, out, watch) if merge is None else merge_parts(config, merge, out, watch)
    for line in made.words:
        console.print(line)
