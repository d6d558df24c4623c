"""How many threads PyTorch uses, for a while.

OpenMP keeps that number for every thread, but the libraries below PyTorch keep parts of it for the whole process, and
the bytes of a training depend on it. So whoever computes with another number waits, and the last to leave puts it back.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_changed = threading.Condition()
_inside: list[int] = []  # the threads of Python that are inside, as often as they are
_now = {"number": 0, "before": 0}


@contextmanager
def threads_of_torch(number: int) -> Iterator[None]:
    """Inside, PyTorch computes with so many threads; worker threads call `torch.set_num_threads` for themselves, too.

    One that is inside already goes on with the number that is there.
    """
    me = threading.get_ident()
    with _changed:
        while _inside and _now["number"] != number and me not in _inside:
            _changed.wait()
        if not _inside:
            _now["number"], _now["before"] = number, torch.get_num_threads()
            torch.set_num_threads(number)
        _inside.append(me)
    try:
        yield
    finally:
        with _changed:
            _inside.remove(me)
            if not _inside:
                torch.set_num_threads(_now["before"])
            _changed.notify_all()
