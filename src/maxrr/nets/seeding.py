"""What a seed decides: the first weights and every shuffle, the same on every device.

Each comes from a stream of its own below the seed (NumPy's `SeedSequence`), so that neither depends on how much the
other drew, and an epoch's shuffle does not depend on the epochs before it.
"""

import copy
import json
import operator
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

WEIGHTS, SHUFFLES, DRAWS = 0, 1, 2

Network = nn.Module | Callable[..., nn.Module]
"""A `torch.nn.Module`, or a function that makes one: without arguments, wherever it is not said otherwise."""
_one_at_a_time = threading.RLock()


def stream(seed: int, *path: int) -> np.random.SeedSequence:
    """Return the numbers for one purpose below a seed."""
    return np.random.SeedSequence(checked_seed(seed), spawn_key=path)


def checked_seed(seed: int) -> int:
    """Check a seed, and return it as an int."""
    try:
        number = operator.index(seed)
    except TypeError:
        number = -1
    if number < 0:
        raise ValueError(f"a seed is a whole number from 0 upwards, not {seed!r}")
    return number


def shuffle(seed: int, epoch: int, count: int) -> NDArray[np.int64]:
    """The order in which an epoch goes through the records.

    >>> shuffle(seed=0, epoch=1, count=5).tolist()
    [3, 4, 2, 1, 0]
    """
    return np.random.default_rng(stream(seed, SHUFFLES, epoch)).permutation(count)


@contextmanager
def drawing(seed: int, purpose: int) -> Iterator[None]:
    """Let PyTorch draw numbers of this stream; whatever it drew before goes on unchanged afterwards.

    There is one source for all threads: others that want to draw wait.
    """
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    # For devices that may be set up later, `torch.manual_seed` keeps a copy of the call stack, each time and for good.
    seeded = torch.manual_seed if torch.accelerator.is_available() else torch.default_generator.manual_seed
    with _one_at_a_time, torch.random.fork_rng(devices):
        seeded(int(stream(seed, purpose).generate_state(1, np.uint64)[0]))
        yield


@contextmanager
def all_drawing(seed: int) -> Iterator[None]:
    """Seed PyTorch, NumPy and Python for a block, and restore what each would have drawn."""
    ours, theirs = random.getstate(), np.random.get_state()  # noqa: NPY002 (others use it)
    for_python, for_numpy = stream(seed, DRAWS, 0).generate_state(2, np.uint32).tolist()
    try:
        with drawing(seed, DRAWS):
            random.seed(for_python)
            np.random.seed(for_numpy)  # noqa: NPY002
            yield
    finally:
        random.setstate(ours)
        np.random.set_state(theirs)  # noqa: NPY002


def random_states(device: torch.device) -> list[object]:
    """What PyTorch, NumPy and Python would draw next: sources that a device, or this process, has one of each."""
    with _one_at_a_time:
        ours = torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
        theirs = np.random.get_state(legacy=False)  # noqa: NPY002 (others use it)
        return [ours.numpy().tobytes(), random.getstate(), json.dumps(theirs, default=operator.methodcaller("tolist"))]


def network_from(network: Network) -> nn.Module:
    """Return a network, made by its function if it is one."""
    return network if isinstance(network, nn.Module) else network()


def begin(network: Network, seed: int) -> nn.Module:
    """Copy a network, on the CPU and in training mode, with the first weights of this seed.

    A function is called for it; otherwise every layer draws its weights anew by its own `reset_parameters`. Frozen
    weights (`requires_grad` off) are kept, and layers that have no others stay in evaluation mode.
    """
    with drawing(seed, WEIGHTS):
        if isinstance(network, nn.Module):
            started = copy.deepcopy(network).cpu()
            for name, layer in started.named_modules():
                if not is_frozen(started, name):
                    reset(name, layer)
        else:
            started = copy.deepcopy(network()).cpu()
    if not any(weights.requires_grad for weights in started.parameters()):
        raise ValueError("the network has no weights to train; a frozen extractor needs no training: use embed")
    for name, layer in started.named_modules():
        layer.training = not is_frozen(started, name)
    return started


def is_frozen(network: nn.Module, name: str) -> bool:
    """Whether a layer has only frozen weights. A layer without weights counts as the part of the network around it."""
    weights = list(network.get_submodule(name).parameters(recurse=False))
    while not weights and name:
        weights = list(network.get_submodule(name).parameters())
        name = name.rpartition(".")[0]
    return not any(value.requires_grad for value in weights or network.parameters())


def reset(name: str, layer: nn.Module) -> None:
    """Draw a layer's weights anew, but for frozen ones, and forget what it counted."""
    own = list(layer.parameters(recurse=False))
    frozen = [(weights, weights.detach().clone()) for weights in own if not weights.requires_grad]
    renew = getattr(layer, "reset_parameters", None)
    if callable(renew):
        renew()
    elif own:
        raise ValueError(
            f"the layer {name or 'at the top'} ({type(layer).__name__}) has weights but no reset_parameters() to draw "
            "them anew for each seed: give it one, or pass a function that makes the network"
        )
    for weights, before in frozen:
        weights.data.copy_(before)


# Settings of PyTorch that a whole process shares, and that bytes depend on: pinned while something is computed.
#
# OpenMP keeps the number of threads for every thread, but the libraries below PyTorch keep parts of it for the process.
# And on a processor without bfloat16 a single product in that type makes PyTorch do without oneDNN from then on, in
# every other network, too. So a caller that computes with another number of threads waits, and the last to leave
# restores it.


_changed = threading.Condition()
_inside: list[int] = []  # the threads of Python that are inside, as often as they are
_number = 0
_restored = ExitStack()


@contextmanager
def pinned(number: int) -> Iterator[None]:
    """Fix the number of threads for a block: worker threads may set this number for themselves, and nobody another one.

    PyTorch computes with oneDNN where it has it, and with all bits of float32, whatever `set_float32_matmul_precision`
    was told before. A thread that is inside does not wait.
    """
    global _number
    me = threading.get_ident()
    with _changed:
        while _inside and _number != number and me not in _inside:
            _changed.wait()
        if not _inside:
            _number = number
            _restored.callback(torch.set_num_threads, torch.get_num_threads())
            _restored.callback(torch.backends.mkldnn.set_flags, torch.backends.mkldnn.set_flags(True)[0])
            with suppress(RuntimeError):  # it was set by PyTorch's newer names, beside which these do not work
                _restored.callback(torch.set_float32_matmul_precision, torch.get_float32_matmul_precision())
                torch.set_float32_matmul_precision("highest")
        _inside.append(me)
    try:
        yield
    finally:
        with _changed:
            _inside.remove(me)
            if not _inside:
                _restored.close()
            _changed.notify_all()


def as_asked(device: torch.device) -> AbstractContextManager[object]:
    """Let products be computed as this library or a recipe says, where the caller has `torch.autocast` switched on."""
    return torch.autocast(device.type, enabled=False) if torch.is_autocast_enabled(device.type) else nullcontext()


@contextmanager
def full_precision() -> Iterator[None]:
    """Use all 24 bits of float32 on CUDA, and one fixed algorithm for a convolution."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    try:
        with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_float32_matmul_precision(before)


@contextmanager
def repeatable() -> Iterator[None]:
    """Use full precision, and of every operation on CUDA the form that gives the same bytes each time.

    PyTorch warns of an operation that has no such form. Networks read no memory that nobody wrote, so that it is not
    filled first.
    """
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    settings: Any = torch.utils.deterministic
    fills = settings.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    settings.fill_uninitialized_memory = False
    try:
        with full_precision():
            yield
    finally:
        settings.fill_uninitialized_memory = fills
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
