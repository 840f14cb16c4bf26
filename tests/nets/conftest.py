"""timm where it can be had."""

from types import ModuleType

import pytest

from labelsieve.errors import ToolError
from labelsieve.nets.zoo import timm_library


@pytest.fixture(scope="session")
def timm() -> ModuleType:
    try:
        return timm_library()
    except ToolError as error:
        pytest.skip(f"the extra zoo is not installed: {error}")
