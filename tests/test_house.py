"""The house's rules, held by reading the source: imports go down only, nothing below runs/ prints."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import labelsieve

PACKAGE = Path(labelsieve.__file__ or "").parent
FILES = sorted(PACKAGE.rglob("*.py"))
PURE = ("losses", "mixmatch", "mixture", "evidence", "streams", "momentum")
UPPER = ("runs", "cli", "terminal", "report", "issues", "review", "benchmark", "exports", "decisions", "reproduce")
# What each room of the lower house may import of ours, besides itself and labelsieve.errors.
BELOW = {"methods": (), "nets": (), "data": ("doors",), "engine": ("data", "methods")}
# And each upper room, besides itself and the top floor, as ARCHITECTURE.md lists it. The command line may import all.
TOP_FLOOR = ("errors", "disk", "doors", "locks", "version")
ABOVE = {
    "config": (),
    "decisions": (),
    "runs": (*BELOW, "decisions", "issues", "report"),
    "issues": ("decisions",),
    "report": ("issues",),
    "exports": ("decisions", "issues", "runs", "data"),
    "review": ("decisions", "issues", "report", "runs", "data"),
    "benchmark": (*BELOW, "issues", "report", "runs", "terminal"),
    "reproduce": ("runs", "issues", "report", "benchmark", "engine", "methods"),
    "api": ("runs", "issues", "terminal", *BELOW),
    "terminal": ("runs", "issues", "data"),
}
