"""The examples in docstrings run as they stand; importing labelsieve stays light."""

import doctest
import subprocess
import sys
from importlib import import_module

import pytest

import labelsieve

MODULES = (
    "labelsieve.api.classifier",
    "labelsieve.api.find",
    "labelsieve.methods.parts.mixture",
    "labelsieve.methods.parts.prototypes",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    result = doctest.testmod(import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_all_that_is_promised_is_there() -> None:
    assert set(labelsieve.HOMES) | {"__version__"} == set(labelsieve.__all__)
    assert all(getattr(labelsieve, name) is not None for name in labelsieve.__all__)
    assert set(labelsieve.__all__) <= set(dir(labelsieve))
    with pytest.raises(AttributeError, match="no attribute 'classifier'"):
        labelsieve.classifier  # noqa: B018


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, labelsieve; print({'torch', 'sklearn', 'numpy'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"
