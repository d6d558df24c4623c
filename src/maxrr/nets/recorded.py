"""The steps of one network on CUDA, recorded once and replayed, so that nothing waits for Python.

A step of a deep network is hundreds of short operations, and Python needs longer to ask for them than a GPU to do them.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from maxrr.nets.inputs import Inputs, each

Step = Callable[[Inputs, Tensor], None]
"""What is done with a batch and its labels, on weights that stay where they are in memory."""

WARM_UP = 3  # steps before recording, so that libraries have chosen their kernels and have their memory


def recorded(step: Step, network: nn.Module, inputs: Inputs, labels: Tensor) -> Step:
    """Return a step that replays a recorded graph for batches like this one; other sizes go to `step`.

    Where a step cannot be recorded, because the network looks at numbers as it goes or draws some on the CPU, that is
    `step` itself. The network's state is afterwards as before; its gradients are not.
    """
    mine, names = each(laid_out, inputs), labels.clone()
    state = [(value, value.clone()) for value in network.buffers()]
    graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
    before = drawn_on_the_cpu()
    try:
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                step(mine, names)
        torch.cuda.current_stream().wait_stream(side)
        if drawn_on_the_cpu() != before:
            return step
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            step(mine, names)
    except RuntimeError:
        numbers = torch.cuda.default_generators[labels.device.index or 0]
        numbers.graphsafe_set_state(numbers.clone_state())  # which takes itself for recorded still
        return step
    finally:
        with torch.no_grad():
            for value, kept in state:
                value.copy_(kept)

    def replay(inputs: Inputs, labels: Tensor) -> None:
        if labels.shape != names.shape:
            step(inputs, labels)
            return
        for held, new in zip(parts(mine), parts(inputs), strict=True):
            held.copy_(new)
        names.copy_(labels)
        graph.replay()

    return replay


def laid_out(part: Tensor) -> Tensor:
    """A copy of an input; of images with the channels of a pixel side by side, which makes convolutions faster.

    It takes seconds until kernels are compiled for a batch of one size so, and so it is only for those recorded.
    """
    return part.clone(memory_format=torch.channels_last if part.ndim == 4 else torch.preserve_format)


def parts(inputs: Inputs) -> list[Tensor]:
    """The tensors of one input, or of several."""
    return [inputs] if isinstance(inputs, Tensor) else list(inputs.values())


def drawn_on_the_cpu() -> tuple[Any, ...]:
    """Return the states of all random numbers on the CPU: a graph would repeat those of the recorded step."""
    numbers: Any = np.random.get_state()  # noqa: NPY002 (networks use it)
    return bytes(torch.get_rng_state().numpy()), random.getstate(), numbers[1].tobytes(), numbers[2]
