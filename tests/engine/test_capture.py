"""What a captured step refuses before it touches a device; that it computes the same is tested on GPUs, in test_fast.py."""

from typing import Any

import pytest
import torch
from torch import Tensor

from labelsieve.engine.fast import Captured


class Replayed:
    """Stands for a recorded graph."""

    count = 0

    def replay(self) -> None:
        self.count += 1


def recorded(*shapes: tuple[int, ...]) -> tuple[Captured, Replayed]:
    step, graph = Captured(lambda *inputs: inputs[0], lambda: ()), Replayed()
    held: Any = graph
    step.graph, step.inputs, step.output = held, [torch.zeros(shape) for shape in shapes], torch.zeros(1)
    return step, graph


@pytest.mark.parametrize("given", [((1, 3), (4,)), ((4, 3), (1,)), ((3,), (4,)), ((4, 3),), ((4, 3), (4,), (4,))])
def test_another_shape_is_refused_and_nothing_is_run(given: tuple[tuple[int, ...], ...]) -> None:
    step, graph = recorded((4, 3), (4,))
    with pytest.raises(RuntimeError, match=r"recorded for inputs of the shapes \[\(4, 3\), \(4,\)\] and is called with"):
        step(*(torch.ones(shape) for shape in given))
    assert graph.count == 0 and all(not buffer.any() for buffer in step.inputs)


def test_inputs_of_the_recorded_shapes_reach_the_buffers() -> None:
    step, graph = recorded((4, 3), (4,))
    answer: Tensor = step(torch.ones(4, 3), torch.ones(4))
    assert graph.count == 1 and all(bool(buffer.all()) for buffer in step.inputs) and answer is not step.output
