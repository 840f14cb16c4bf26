"""What a run was made with: versions, device, threads. Facts for a bug report; no names of people or machines."""

import platform
import sys
from importlib import metadata
from typing import Any

import torch

from labelsieve.runs.source_commit import source_facts
from labelsieve.version import __version__

PACKAGES = ("torch", "numpy", "scikit-learn", "safetensors", "pyyaml", "typer", "rich", "pillow")

# Optional parts: extra -> the packages it brings. The same as in pyproject.toml; a test holds them together.
EXTRAS: dict[str, tuple[str, ...]] = {
    "tables": ("pyarrow",),
    "zoo": ("timm",),
    "onnx": ("onnx", "onnxscript", "onnxruntime"),
    "compare": ("cleanlab",),
    "frames": ("pandas",),
    "figures": ("matplotlib",),
    "review": ("fastapi", "uvicorn"),
}


def installed(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def environment(device: torch.device) -> dict[str, Any]:
    return {
        "labelsieve": __version__,
        **source_facts(),
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "packages": {name: installed(name) for name in PACKAGES},
        "device": describe(device),
        "threads": torch.get_num_threads(),
    }


def describe(device: torch.device) -> str:
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else "cpu"
