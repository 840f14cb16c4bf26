"""Features of pictures by a backbone: those that are known already from the store, the others computed and put there."""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from labelsieve.backbones.backbone import Backbone
from labelsieve.backbones.pictures import ArrayPictures, Block, FeatureStore, FilePictures, Pictures
from labelsieve.data.noisy_data import Collection, Held, vector_statistics
from labelsieve.data.pictures.cache import locked
from labelsieve.data.pictures.decoding import Plan, Progress, Taken
from labelsieve.data.pictures.listing import Listing
from labelsieve.data.pictures.looks import of_arrays
from labelsieve.data.pictures.presence import lost
from labelsieve.engine.device import callers_settings_kept, usable_cores
from labelsieve.errors import ToolError, UsageError

KEPT = 128  # pictures whose features are put on the disk together: a kill loses no more
AREA = 2 * 224 * 224  # pixels that a CPU core looks at in one go: more take memory and are no faster
GPU_BLOCK = 128  # pictures, the same of a GPU
MOST_THREADS = 16
Tell = Callable[[Backbone, Path, int, int], None]  # the backbone, the store's folder, how many are known, how many there are


@dataclass(frozen=True)
class Embedder:
    """Makes features by one backbone on one device, and keeps them in a folder of `cache`.

    `by_content` knows a file by its content rather than by its place, size and time.
    """

    backbone: Backbone
    device: torch.device
    cache: Path
    threads: int = 0
    by_content: bool = False
    tell: Tell | None = None

    def store(self) -> FeatureStore:
        return FeatureStore(self.cache / f"features-{self.backbone.key}")

    def of_listing(
        self,
        listing: Listing,
        plan: Plan,
        folder: Path,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Taken:
        """What `decoded` gives of pixels: features (N - unreadable, D), with looks. `folder` is named in errors only."""

        def check(missing: Sequence[int]) -> None:
            absent = sorted(set(listing.gone_rows()) & set(missing))
            if absent:
                raise lost(listing, absent, folder)

        pictures = FilePictures(listing.origin, plan.white, self.by_content, workers)
        found = self.of(pictures, progress, check)
        if not found.reasons:
            return found
        keep = [row for row in range(len(found.values)) if row not in found.reasons]
        return Taken(found.values[keep], found.reasons, None if found.looks is None else found.looks[keep])

    def passing(
        self, listing: Listing, plan: Plan, folder: Path, workers: int | None = None, progress: Progress | None = None
    ) -> Taken:
        """The same, kept only in `folder`, which goes when its pictures have been looked at."""
        return replace(self, cache=folder).of_listing(listing, plan, folder, workers, progress)

    def of_arrays(self, images: Tensor, place: str, progress: Progress | None = None) -> Tensor:
        """Features (N, D) of pictures (N, C, H, W)."""
        return torch.from_numpy(self.of(ArrayPictures(images, place), progress).values)

    def of_collection(self, found: Collection, progress: Progress | None = None) -> Collection:
        """The collection with features in place of pictures, its test sets too; one that has vectors is refused."""
        if found.train.are_vectors:
            raise UsageError(f"{found.name}: these are vectors and no pictures; train on them without --backbone")

        def held(some: Held | None) -> Held | None:
            if some is None:
                return None
            looks = torch.from_numpy(of_arrays(some.images))
            return replace(some, images=self.of_arrays(some.images, found.name, progress), looks=looks)

        values = self.of_arrays(found.train.images, found.name, progress)
        mean, std = vector_statistics(values)
        also = {name: replace(some, images=self.of_arrays(some.images, name, progress)) for name, some in found.also.items()}
        train = replace(found.train, images=values, looks=torch.from_numpy(of_arrays(found.train.images)))
        return replace(found, train=train, test=held(found.test), mean=mean, std=std, also=also)

    def of(
        self, pictures: Pictures, progress: Progress | None = None, check: Callable[[Sequence[int]], None] = lambda missing: None
    ) -> Taken:
        """Features (N, D), zeros where a picture cannot be read, and looks. `check` may object to what is missing."""
        keys, store = pictures.keys(), self.store()
        with locked(store.folder):
            store.sweep()
            store.read()
            features, looks, missing = store.gather(keys, self.width)
            if self.tell is not None:
                self.tell(self.backbone, store.folder, len(keys) - len(missing), len(keys))
            check(missing)
            found = Taken(features, {}, looks)
            return self._compute(pictures, missing, keys, store, found, progress) if missing else found

    @property
    def width(self) -> int:
        return self.backbone.width

    def _compute(
        self,
        pictures: Pictures,
        missing: Sequence[int],
        keys: Sequence[bytes],
        store: FeatureStore,
        found: Taken,
        progress: Progress | None,
    ) -> Taken:
        """Fill in the rows that are missing, and put them into the store as they come."""
        features, looks, reasons = found.values, found.looks, found.reasons
        assert looks is not None
        waiting: list[int] = []
        done = len(keys) - len(missing)
        try:
            blocks = pictures.blocks(missing, self.backbone.sight.frame, self.block, store.folder)
            for block, seen, faces in self._looked_at(blocks):
                good = [place for place in range(len(block.rows)) if place not in block.reasons]
                rows = [block.rows[place] for place in good]
                features[rows], looks[rows] = seen[good], faces[good]
                reasons |= {block.rows[place]: why for place, why in block.reasons.items()}
                waiting += rows
                if len(waiting) >= max(KEPT, self.block):
                    store.add([keys[row] for row in waiting], features[waiting], looks[waiting])
                    waiting = []
                done += len(block.rows)
                if progress is not None:
                    progress("embedding", done, len(keys))
        finally:
            # An interrupted run keeps what it has.
            store.add([keys[row] for row in waiting], features[waiting], looks[waiting])
        return found

    @property
    def block(self) -> int:
        """Pictures in one go: always so many, so that a picture's features do not depend on its neighbours."""
        if self.device.type != "cpu":
            return GPU_BLOCK
        frame = self.backbone.sight.frame
        return max(1, AREA // (frame.height * frame.width))

    def _looked_at(self, blocks: Iterator[Block]) -> Iterator[tuple[Block, NDArray[np.float32], NDArray[np.uint8]]]:
        """Each block with its features (M, D) and looks (M, LOOK), in order. Blocks are decoded while others are looked at."""
        if self.device.type != "cpu":
            for block in blocks:
                yield block, *self._seen(block)
            return
        with callers_settings_kept(), ThreadPoolExecutor(self._thread_count(), initializer=_one_thread) as pool:
            queue: deque[tuple[Block, Future[tuple[NDArray[np.float32], NDArray[np.uint8]]]]] = deque()
            try:
                for block in blocks:
                    queue.append((block, pool.submit(self._seen, block)))
                    if len(queue) > self._thread_count():
                        first, future = queue.popleft()
                        yield first, *future.result()
                while queue:
                    first, future = queue.popleft()
                    yield first, *future.result()
            finally:
                for _, future in queue:
                    future.cancel()

    def _thread_count(self) -> int:
        """Each looks at a block of its own: one block's layers are too small to be shared well."""
        told = os.environ.get("OMP_NUM_THREADS", "")
        return self.threads or (int(told) if told.isdigit() and int(told) else min(usable_cores(), MOST_THREADS))

    def _seen(self, block: Block) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        with torch.inference_mode():
            pixels = block.pixels
            if len(pixels) < self.block:
                pixels = torch.cat((pixels, pixels.new_zeros(self.block - len(pixels), *pixels.shape[1:])))
            pixels = pixels.to(self.device).contiguous(memory_format=torch.channels_last)
            looks = of_arrays(pixels[: len(block.pixels)])
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
                found = self.backbone(pixels)
            kept: NDArray[np.float32] = found[: len(block.pixels)].cpu().numpy()
        bad = [place for place in range(len(kept)) if place not in block.reasons and not np.isfinite(kept[place]).all()]
        if bad:
            raise ToolError(f"{self.backbone.name}: features that are not finite; its weights are damaged or need more precision")
        return kept, looks


def _one_thread() -> None:
    torch.set_num_threads(1)


def placed(backbone: Backbone, device: torch.device) -> Backbone:
    """The backbone on the device, laid out as its convolutions are fastest."""
    backbone.to(device)
    backbone.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return backbone
