"""How many threads PyTorch uses, for a while."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def restored_threads() -> Iterator[None]:
    """Inside, worker threads may each call `torch.set_num_threads` for themselves; afterwards it is as it was.

    OpenMP keeps that number for every thread, but the libraries below PyTorch keep parts of it for the whole process.
    """
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
