"""Settings of PyTorch that a whole process shares, and that bytes depend on: pinned while something is computed.

OpenMP keeps the number of threads for every thread, but the libraries below PyTorch keep parts of it for the process.
And on a processor without bfloat16 a single product in that type makes PyTorch do without oneDNN from then on, in every
other network, too. So a caller that computes with another number of threads waits, and the last to leave restores it.
"""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_changed = threading.Condition()
_inside: list[int] = []  # the threads of Python that are inside, as often as they are
_number = 0
_restored = ExitStack()


@contextmanager
def pinned(number: int) -> Iterator[None]:
    """Inside, worker threads may call `torch.set_num_threads(number)` for themselves, and none uses another number.

    PyTorch computes with oneDNN where it has it, whatever was set before. A thread that is inside does not wait.
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
        _inside.append(me)
    try:
        yield
    finally:
        with _changed:
            _inside.remove(me)
            if not _inside:
                _restored.close()
            _changed.notify_all()
