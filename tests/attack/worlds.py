"""What is attacked: small data sets of every kind that is read, and run folders, as dictionaries of files.

They are made once, and handed to many processes as bytes.
"""

import contextlib
import io
import json
import os
import pickle
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits

from attack.case import HERE, World
from cli import own
from runs.tiny import SETTINGS, arrays_file

TINY = tuple(word for key, value in SETTINGS.items() for word in ("--set", f"{key}={value}"))
CLASSES = ("cat", "dog", "cow")
BACKBONE = "test_efficientnet"  # of timm: the smallest that has weights of its own
FROZEN = ("--backbone", BACKBONE, "--size", "32", "--device", "cpu")
CACHED = ("--cache-dir", "cache")


def command(*words: str) -> None:
    """The command line, in this process, which must end well."""
    from labelsieve.cli.main import main

    said, argv = io.StringIO(), sys.argv
    sys.argv = ["labelsieve", *words]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            main()
    except SystemExit as end:
        if end.code:
            raise AssertionError(f"labelsieve {' '.join(words)}: {said.getvalue()}") from None
    finally:
        sys.argv = argv


def saved_as(kind: str, number: int, mode: str = "RGB", **how: object) -> bytes:
    stream = io.BytesIO()
    own.striped(number, number % 3).convert(mode).save(stream, kind, **how)
    return stream.getvalue()


def photos() -> None:
    """One folder per class, a format per file."""
    formats = (("PNG", "png"), ("JPEG", "jpg"), ("WEBP", "webp"), ("TIFF", "tif"), ("GIF", "gif"), ("BMP", "bmp"), ("PPM", "ppm"))
    for label, name in enumerate(CLASSES):
        (Path("pics") / name).mkdir(parents=True)
        for k, (kind, end) in enumerate(formats):
            (Path("pics") / name / f"{k}.{end}").write_bytes(saved_as(kind, 30 * k + label))
    for k, (mode, kind, end) in enumerate(
        (("P", "PNG", "png"), ("RGBA", "PNG", "png"), ("I;16", "PNG", "png"), ("CMYK", "JPEG", "jpg"))
    ):
        (Path("pics") / "cat" / f"mode{k}.{end}").write_bytes(saved_as(kind, 300 + k, mode))
    (Path("pics") / "dog" / "lzw.tif").write_bytes(saved_as("TIFF", 61, compression="tiff_lzw"))
    (Path("pics") / "dog" / "loss.webp").write_bytes(saved_as("WEBP", 62, lossless=True))
    (Path("pics") / "cow" / "16.tif").write_bytes(saved_as("TIFF", 63, "I;16"))


def tables() -> None:
    """The same pictures listed in every form of table."""
    import pyarrow as pa
    import pyarrow.parquet

    own.folder(Path("pics"), each=4)
    rows = [(f"{name}/{k}.png", name) for name in CLASSES for k in range(4)]
    for end, mark in (("csv", ","), ("tsv", "\t")):
        Path(f"list.{end}").write_text("".join(mark.join(row) + "\n" for row in (("path", "label"), *rows)))
    Path("list.jsonl").write_text("".join(json.dumps({"path": path, "label": label}) + "\n" for path, label in rows))
    columns = {"path": [path for path, _ in rows], "label": [label for _, label in rows], "split": ["train"] * 9 + ["val"] * 3}
    pa.parquet.write_table(pa.table(columns), "list.parquet")
    Path("classes.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    Path("trusted.txt").write_text("cat/0.png\ndog/1.png\n")
    Path("prior.csv").write_text("class,frequency\ncat,0.5\ndog,0.25\ncow,0.25\n")


def arrays() -> None:
    arrays_file(Path("pictures.npz"))
    rng = np.random.default_rng(0)
    labels = np.arange(40) % 4
    vectors = rng.normal(size=(40, 6)).astype(np.float32) + labels[:, None]
    np.savez(Path("vectors.npz"), features=vectors, labels=labels, ids=np.array([f"v{k}" for k in range(40)]))
    np.savez_compressed(Path("packed.npz"), features=vectors, labels=labels, classes=np.array(["a", "b", "c", "d"]))
    np.save(Path("alone.npy"), vectors)
    np.save(Path("alone_labels.npy"), labels)
    import pyarrow as pa
    import pyarrow.parquet

    table = pa.table({"embedding": vectors.tolist(), "label": [f"class {k}" for k in labels], "id": [f"v{k}" for k in range(40)]})
    pa.parquet.write_table(table, "vectors.parquet")


def noises() -> None:
    """What `--noise` reads, for digits' ten classes."""
    matrix = np.full((10, 10), 0.02) + 0.8 * np.eye(10)
    np.save(Path("matrix.npy"), matrix)
    Path("matrix.json").write_text(json.dumps(matrix.tolist()))
    Path("matrix.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in matrix))
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 10, 1348)
    np.save(Path("labels.npy"), labels)
    Path("labels.json").write_text(json.dumps(labels.tolist()))
    np.savez(Path("labels.npz"), labels=labels)
    np.savez(Path("votes.npz"), counts=9 * np.eye(10, dtype=np.int64)[load_digits().target] + rng.integers(0, 5, (1797, 10)))
    Path("prior.csv").write_text("class,frequency\n" + "".join(f"{k},0.1\n" for k in range(10)))
    Path("trusted.txt").write_text("00003\n00007\n")


def cifar() -> None:
    """CIFAR-10 with a few pictures, and a file of people's labels beside it."""
    folder = Path("cifar-10-batches-py")
    folder.mkdir()
    rng = np.random.default_rng(0)
    every = []
    for number in range(5):
        labels = [(4 * number + k) % 10 for k in range(4)]
        every += labels
        pixels = rng.integers(0, 256, (4, 3072), dtype=np.uint8)
        (folder / f"data_batch_{number + 1}").write_bytes(pickle.dumps({b"data": pixels, b"labels": labels}, 2))
    held = {b"data": rng.integers(0, 256, (3, 3072), dtype=np.uint8), b"labels": [1, 2, 3]}
    (folder / "test_batch").write_bytes(pickle.dumps(held, 2))
    (folder / "batches.meta").write_bytes(pickle.dumps({b"label_names": [f"c{k}".encode() for k in range(10)]}, 2))
    with tarfile.open("packed.tar.gz", "w:gz") as archive:
        archive.add(folder, arcname=folder.name)
    clean = np.array(every)
    kinds = ("aggre_label", "worse_label", "random_label1", "random_label2", "random_label3")
    content = {"clean_label": clean} | {kind: (clean + k) % 10 for k, kind in enumerate(kinds)}
    torch.save(content, Path("human.pt"))
    torch.save(content, Path("older.pt"), _use_new_zipfile_serialization=False)


def saved_sets() -> None:
    """Data sets as the Hub has them, and as `datasets` saves them."""
    from data.pictures.test_saved import cells, saved
    from data.pictures.test_shards import hub

    saved(Path("saved"), cells(6), [0, 1, 2, 0, 1, 2], shards=2)
    hub(Path("hub"))


def web_sets() -> None:
    from data.pictures.made_websets import clothing1m, imagenet_flat, webvision

    clothing1m(Path("clothing"), train=12, held=3)
    webvision(Path("web"), train=9, held=3)
    imagenet_flat(Path("val"), each=1)


def fashion() -> None:
    import gzip

    rng = np.random.default_rng(0)
    for part, count in (("train", 20), ("t10k", 10)):
        images, labels = rng.integers(0, 256, (count, 28, 28), dtype=np.uint8), (np.arange(count) % 10).astype(np.uint8)
        head = np.array([0x803, count, 28, 28], ">i4").tobytes()
        Path(f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes(), mtime=0))
        Path(f"{part}-labels-idx1-ubyte").write_bytes(np.array([0x801, count], ">i4").tobytes() + labels.tobytes())


def array_run() -> None:
    """A run that is done, on arrays; and decisions to bring in."""
    arrays_file(Path("stripes.npz"))
    command("train", "stripes.npz", "--out", "run", *TINY)
    decided(Path("run"))


def decided(run: Path) -> None:
    """A few decisions in the run's log, and files of more."""
    from labelsieve.runs.folder import RunFolder

    rows = RunFolder.open(run).read_issues()
    one = [row["id"] for row in rows[:8]]
    label = rows[0]["suggested_label"]
    Path("in.csv").write_text(f"id,action,label\n{one[0]},drop,\n{one[1]},relabel,{label}\n{one[2]},keep,\n{one[3]},accept,\n")
    command("decisions", str(run), "--from", "in.csv", "--reviewer", "ada")
    Path("more.csv").write_text(
        f"id,action,label,who,when\n{one[4]},drop,,ben,2026-11-15T00:00:00Z\n{one[5]},keep,,ben,2026-11-15T00:00:00Z\n"
    )
    command("decisions", str(run), "--to", "labelstudio", "--out", "tasks.json")


def picture_run_decided() -> None:
    own.folder(Path("pics"), each=6)
    quick = ("--set", "data.noise=none", "--cache-dir", "cache")
    command("train", "pics", "--out", "run", *TINY, *quick)
    decided(Path("run"))
    Path("stdin").write_text("".join(f"{path}\n" for path in sorted(Path("pics").rglob("*.png"))))
    Path("new.csv").write_text("path\npics/cat/0.png\npics/dog/1.png\n")


def next_round() -> None:
    """A run, and the next round that was begun with its decisions."""
    array_run()
    command("train", "--decisions", "run", "--out", "next")


def half_run(**more: Any) -> None:
    """A run that was killed after its first epoch."""
    from labelsieve.train.loop import each_epoch
    from labelsieve.train.start import start
    from runs.tiny import tiny_config

    source = arrays_file(Path("stripes.npz"))
    run = start(Path("run"), tiny_config(source, **more))
    list(each_epoch(run, stop=lambda: run.epoch == 1))


def slim_run() -> None:
    """The same, copied over a narrow link: only its slim checkpoint is here."""
    half_run(output__slim_checkpoint=True)
    shutil.rmtree("run/checkpoint")


def weights() -> None:
    """Small photos, and a tiny network's weights in every form; features that were made of them."""
    from safetensors.torch import save_file

    from backbones import photos
    from labelsieve.nets.zoo import timm_library

    photos.folder(Path("pics"), each=4)
    tensors = timm_library().create_model(BACKBONE, num_classes=3).state_dict()
    torch.save({"epoch": 3, "state_dict": tensors}, "tiny.pth")
    torch.save(tensors, "older.pth", _use_new_zipfile_serialization=False)
    save_file(tensors, "tiny.safetensors")
    command("embed", "pics", *FROZEN, "--weights", "tiny.pth", "--out", "features.npz", "--cache-dir", "cache")


def frozen_run() -> None:
    """A run on a backbone's features, which are kept in its cache."""
    from backbones.frozen import OPTIONS

    weights()
    command("train", "pics", "--out", "run", *OPTIONS, "--features", "frozen", *FROZEN[:2], "--weights", "tiny.pth", *CACHED)


def probabilities() -> None:
    """Somebody's predictions as an archive and as tables; and measured speeds, as `bench --json` writes them."""
    import pyarrow as pa
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    values, labels = rng.dirichlet(np.ones(3), 30).round(3), [CLASSES[k % 3] for k in range(30)]
    values[:, 2] = 1 - values[:, 0] - values[:, 1]
    np.savez("probs.npz", pred_probs=values, labels=np.arange(30) % 3, ids=np.array([f"p{k}" for k in range(30)]))
    columns = {"id": [f"p{k}" for k in range(30)], "label": labels} | dict(zip(CLASSES, values.T.tolist()))
    pa.parquet.write_table(pa.table(columns), "probs.parquet")
    vectors = {"label": labels, "pred_probs": values.tolist()}
    pa.parquet.write_table(pa.table(vectors), "lists.parquet")
    rows = list(zip(*columns.values()))
    Path("probs.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in (tuple(columns), *rows)))
    Path("probs.jsonl").write_text("".join(json.dumps(dict(zip(columns, row))) + "\n" for row in rows))
    Path("classes.txt").write_text("".join(f"{name}\n" for name in CLASSES))
    small = ("--set", "training.batch=16", "--set", "training.warmup_batch=16", "--samples", "64")
    command("bench", "--device", "cpu", *small, "--json", "speed.json")


def sweep() -> None:
    """A sweep of the paper's experiments, which was begun."""
    import matplotlib.font_manager  # noqa: F401 - it looks for fonts once, which takes seconds

    from labelsieve.reproduce.sweep import open_sweep

    open_sweep(Path("sweep"), None)
    array_run()


WORLDS: dict[str, Callable[[], None]] = {
    "photos": photos,
    "tables": tables,
    "arrays": arrays,
    "noises": noises,
    "cifar": cifar,
    "saved": saved_sets,
    "web": web_sets,
    "fashion": fashion,
    "run": array_run,
    "pictures run": picture_run_decided,
    "next round": next_round,
    "half run": half_run,
    "slim run": slim_run,
    "weights": weights,
    "frozen run": frozen_run,
    "probabilities": probabilities,
    "sweep": sweep,
}


def made(names: tuple[str, ...] = tuple(WORLDS)) -> dict[str, World]:
    return {name: dict(_made(WORLDS[name])) for name in names}


def _made(make: Callable[[], None]) -> Iterator[tuple[str, bytes]]:
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as place:
        try:
            os.chdir(place)
            make()
            for path in sorted(Path().rglob("*")):
                if path.is_file():
                    yield str(path), path.read_bytes().replace(os.fsencode(place), HERE.encode())
        finally:
            os.chdir(before)
