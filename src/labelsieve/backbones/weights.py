"""Files of weights (safetensors or torch state dicts), and networks that start from them. Nothing in such a file is run.

The classifier stays new, for the classes are others.
"""

import io
import pickletools
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from labelsieve.doors import Damage, open_plain, why
from labelsieve.errors import ToolError

NESTS = ("state_dict", "model_state_dict", "model", "network", "net", "weights")
PREFIXES = ("", "module.", "_orig_mod.", "model.", "body.", "backbone.", "encoder.", "network.", "0.network.", "module.model.")
PICKLED = (b"PK", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # as torch.save begins: a zip, or in old days a pickle
PICKLES = 5  # of the old form: a magic number, a version, facts of the machine, the content, the names of what lies behind
LARGEST = 2**28  # bytes of pickle in the new one, where the numbers lie elsewhere
PARTS = 10_000  # values in a tuple, with all that its tuples hold: shapes and options have a few
OWN_PREFIXES = ("model.", "body.")  # what our wrappers put before a wrapped network's names


def read_weights(path: Path, option: str = "--pretrained") -> dict[str, Tensor]:
    """{name: tensor} of the file that `option` names, in its order, or a `ToolError` that says why not."""
    if not path.is_file():
        raise ToolError(f"{path}: no such file of weights; check what {option} names")
    try:
        with open_plain(path, follow=True) as stream:
            head = stream.read(2)
        if path.suffix.lower() == ".safetensors":
            return load_file(path)
        if head not in PICKLED:
            raise Damage("it is neither a zip nor a pickle")
        check_pickles(path)
        with warnings.catch_warnings(action="ignore"):  # of old forms, which are read all the same
            found = torch.load(path, map_location="cpu", weights_only=True)
    except OSError as error:
        raise ToolError(f"{path}: {why(error)}; check what {option} names") from None
    except SafetensorError as error:
        raise ToolError(f"{path}: not a whole safetensors file ({error}); write or fetch it again") from None
    except Exception as error:  # the reader fails in many ways on what is no file of its own
        if "weights_only" in str(error) or "WeightsUnpickler" in str(error):
            raise ToolError(
                f"{path}: it holds more than weights, and running what a file says is not done here; save the weights alone: "
                f"safetensors.torch.save_file(model.state_dict(), FILE)"
            ) from None
        said = " ".join(str(error).split())[:120] or type(error).__name__
        raise ToolError(f"{path}: not readable as weights ({said}); give a .safetensors file or a torch state dict") from None
    return _unwrapped(found, path)


def check_pickles(path: Path) -> None:
    """A `Damage` where torch's reader of weights would not come to an end, or fill the memory.

    It hashes keys: the hash of a tuple that names another one twice, and so on sixty levels deep, is never done.
    """
    with open_plain(path, follow=True) as stream:
        for content in _pickles(stream):
            _check_tuples(content)


def _pickles(stream: BinaryIO) -> Iterator[BinaryIO]:
    """Each stands at its beginning."""
    if not zipfile.is_zipfile(stream):
        stream.seek(0)
        for _ in range(PICKLES):
            yield stream
        return
    with zipfile.ZipFile(stream) as archive:
        for entry in archive.infolist():
            if entry.filename.rpartition("/")[2] == "data.pkl":
                if entry.file_size > LARGEST:
                    raise Damage(f"its pickle unpacks to {entry.file_size:,} bytes")
                yield io.BytesIO(archive.read(entry))


def _check_tuples(stream: BinaryIO) -> None:
    """Follow the sizes of what lies on the pickle's stack, a tuple's being that of all it holds; anything else counts as one."""
    stack: list[int] = []
    memo: dict[Any, int] = {}
    mark = -1
    for opcode, argument, _ in pickletools.genops(stream):
        if opcode.name == "GLOBAL" and str(argument).endswith(" bytearray"):  # of any size
            raise Damage("it asks for a bytearray, which weights have no use for")
        if opcode.name.endswith("GET"):
            stack.append(memo.get(argument, 1))
        elif opcode.name.endswith("PUT") or opcode.name == "MEMOIZE":
            memo[len(memo) if argument is None else argument] = stack[-1]
        elif opcode.name == "MARK":
            stack.append(mark)
        else:
            parts = _taken(stack, opcode, mark)
            if "TUPLE" in opcode.name:
                stack.append(1 + sum(parts))
                if stack[-1] > PARTS:
                    raise Damage("tuples in tuples without end")
            else:
                stack += [1] * len(opcode.stack_after)


def _taken(stack: list[int], opcode: pickletools.OpcodeInfo, mark: int) -> list[int]:
    """What the opcode takes from the stack: all after a mark, or as many as it says."""
    wanted = [one.name for one in opcode.stack_before]
    count = len(wanted)
    if "mark" in wanted:
        count = wanted.index("mark") + 1 + next(k for k, size in enumerate(reversed(stack)) if size == mark)
    if count > len(stack):
        raise Damage("values are missing")
    parts = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return [size for size in parts if size != mark]


def _unwrapped(found: Any, path: Path) -> dict[str, Tensor]:
    for name in NESTS:
        if isinstance(found, Mapping) and isinstance(found.get(name), Mapping):
            found = found[name]
    tensors = {str(k): v for k, v in found.items() if isinstance(v, Tensor)} if isinstance(found, Mapping) else {}
    if not tensors:
        raise ToolError(f"{path}: it holds no table of tensors; save model.state_dict()")
    unreal = next((name for name, value in tensors.items() if not _is_whole(value)), None)
    if unreal is not None:
        raise ToolError(f'{path}: "{unreal}" is larger than what the file holds of it; save model.state_dict()')
    return tensors


def _is_whole(value: Tensor) -> bool:
    """Each of its numbers lies in memory: a shape that repeats one number without end would fill it when it is copied."""
    if value.layout is not torch.strided or value.is_meta:
        return False
    return value.numel() * value.element_size() <= value.untyped_storage().nbytes()


def start_from(network: nn.Module, tensors: Mapping[str, Tensor], place: str) -> int:
    """Put the tensors into the network, all but its classifier's; how many were used. What is missing is an error.

    A first convolution for three channels serves one channel by its sum.
    """
    wanted = _wanted(network)
    given = unprefixed(wanted, tensors)
    missing = _missing(wanted, given)
    if missing:
        raise ToolError(
            f'{place}: {len(missing)} of {len(wanted)} weights of this network are not in it, the first is "{missing[0]}"; '
            f"choose the --network that the weights were made for"
        )
    used = {name: _fitting(given[name], target, name, place) for name, target in wanted.items() if name in given}
    with torch.no_grad():
        for name, value in used.items():
            wanted[name].copy_(value)
    return len(used)


def unprefixed(wanted: Iterable[str], tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors less the prefix under which most of the wanted names are found."""
    names = set(wanted)
    return max(
        ({name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)} for prefix in PREFIXES),
        key=lambda named: len(named.keys() & names),
    )


def _missing(wanted: Iterable[str], given: Mapping[str, Tensor]) -> list[str]:
    return [name for name in wanted if name not in given and not name.endswith("num_batches_tracked")]


def matching(wanted: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], list[str], list[str]]:
    """What of the file has a wanted name, the names that it lacks, and in words those whose shapes are others."""
    given = unprefixed(wanted, tensors)
    found = {name: given[name] for name in wanted if name in given}
    misfits = [
        f'"{name}" is {tuple(value.shape)} there, and {tuple(wanted[name].shape)} in this network'
        for name, value in found.items()
        if value.shape != wanted[name].shape
    ]
    return found, _missing(wanted, given), misfits


def _wanted(network: nn.Module) -> dict[str, Tensor]:
    """The network's tensors by the names that files use, less those of its classifier."""
    classifier = getattr(network, "classifier", None)
    new = {id(value) for value in classifier.parameters()} if isinstance(classifier, nn.Module) else set()
    named = [(name, value) for name, value in (*network.named_parameters(), *network.named_buffers()) if id(value) not in new]
    for prefix in OWN_PREFIXES:
        if named and all(name.startswith(prefix) for name, _ in named):
            return {name.removeprefix(prefix): value.data for name, value in named}
    return {name: value.data for name, value in named}


def _fitting(value: Tensor, target: Tensor, name: str, place: str) -> Tensor:
    if value.shape == target.shape:
        return value
    if value.ndim == 4 and target.ndim == 4 and target.shape[1] == 1 and value.shape[0] == target.shape[0]:
        summed = value.sum(1, keepdim=True)
        if summed.shape == target.shape:
            return summed
    raise ToolError(
        f'{place}: "{name}" is {tuple(value.shape)}, and this network has {tuple(target.shape)} there; choose the --network '
        f"(and --size) that the weights were made for"
    )
