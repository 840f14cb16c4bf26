"""timm's own weights: whether they are on this machine already, and how they get here once you have been told what is fetched.

Nothing is fetched in silence. `Weights.cached` looks at the disk only; `Weights.fetched` says first what it downloads, how
large it is and where it goes.
"""

import os
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from labelsieve.errors import ToolError
from labelsieve.nets.zoo import check_model
from labelsieve.texts import byte_count

Say = Callable[[str], None]
SAFE = {"pytorch_model.bin": "model.safetensors", "open_clip_pytorch_model.bin": "open_clip_model.safetensors"}
PATIENCE = 10.0  # seconds that a hub is waited for


@dataclass(frozen=True)
class Weights:
    """Where timm has a network's weights: a repository of the Hugging Face hub with the names they may have, or an address."""

    name: str
    repository: str | None
    files: tuple[str, ...]
    address: str | None

    def cached(self) -> Path | None:
        """The file on this machine, where it was fetched before by whatever program."""
        if self.repository is not None:
            from huggingface_hub import try_to_load_from_cache

            for file in self.files:
                found = try_to_load_from_cache(self.repository, file)
                if isinstance(found, str):
                    return Path(found)
        if self.address is not None and self._by_address().is_file():
            return self._by_address()
        return None

    def fetched(self, say: Say, offline: bool = False) -> Path:
        """The file, downloaded unless it is here; a `ToolError` says what to download where if that cannot be."""
        found = self.cached()
        if found is not None:
            return found
        if self.repository is None and self.address is None:
            raise ToolError(
                f"timm has no weights of {self.name} to download; name another backbone, or give a file: --weights FILE"
            )
        if offline or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "TRUE", "YES", "ON"):
            raise self._unreachable("this is offline")
        return self._from_hub(say) if self.repository is not None else self._from_address(say)

    def _from_hub(self, say: Say) -> Path:
        from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
        from huggingface_hub.constants import HF_HUB_CACHE
        from huggingface_hub.errors import EntryNotFoundError

        assert self.repository is not None
        for file in self.files:
            try:
                seen = get_hf_file_metadata(hf_hub_url(self.repository, file), timeout=PATIENCE)
                say(_telling(f"{self.repository}, {file}", seen.size, HF_HUB_CACHE))
                return Path(hf_hub_download(self.repository, file))
            except EntryNotFoundError:
                continue
            except Exception as error:  # the hub's client fails in the ways of each library that it stands on
                raise self._unreachable(_said(error)) from None
        raise self._unreachable(f"{self.repository} has none of {', '.join(self.files)}")

    def _from_address(self, say: Say) -> Path:
        assert self.address is not None
        place = self._by_address()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address, method="HEAD"), timeout=PATIENCE) as answer:
                size = answer.headers.get("Content-Length")
            say(_telling(self.address, None if size is None else int(size), str(place)))
            place.parent.mkdir(parents=True, exist_ok=True)
            torch.hub.download_url_to_file(self.address, str(place), progress=False)
        except (OSError, ValueError) as error:
            raise self._unreachable(_said(error)) from None
        return place

    def _by_address(self) -> Path:
        assert self.address is not None
        return Path(torch.hub.get_dir()) / "checkpoints" / self.address.rpartition("/")[2]

    def _unreachable(self, why: str) -> ToolError:
        return ToolError(
            f"the weights of {self.name} are not on this machine, and cannot be fetched ({why}); download {self.page()} where "
            f"you can, and give the file: --weights FILE"
        )

    def page(self) -> str:
        """What to download by hand."""
        if self.repository is None:
            return str(self.address)
        from huggingface_hub import hf_hub_url

        return hf_hub_url(self.repository, self.files[0])


def own_weights(name: str) -> Weights:
    """What timm says of the weights of `name`, a network with or without a tag."""
    config = check_model(name).get_pretrained_cfg(name)
    whole = name if config is None or not config.tag or "." in name else f"{name}.{config.tag}"
    if config is None or not (config.hf_hub_id or config.url):
        return Weights(whole, None, (), None)
    file = config.hf_hub_filename or "pytorch_model.bin"
    safe = [SAFE[file]] if file in SAFE else []
    files = (*safe, *([f"{file[:-4]}.safetensors"] if file.endswith(".bin") else []), file)
    return Weights(whole, _repository(config), tuple(dict.fromkeys(files)), config.url or None)


def _repository(config: Any) -> str | None:
    """timm writes its own ones as "timm/", to which the whole name is to be added."""
    return config.hf_hub_id.partition("@")[0] if config.hf_hub_id else None


def _telling(what: str, size: int | None, place: str) -> str:
    return f"downloading weights: {what} ({'size not told' if size is None else byte_count(size)}), once, into {place}"


def _said(error: Exception) -> str:
    return " ".join(str(error).split())[:160] or type(error).__name__
