"""Several heads at once on the processor's cores."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from maxrr.svm.arrays import is_numpy
from maxrr.svm.problem import Samples

T = TypeVar("T")
R = TypeVar("R")

BLAS = ThreadpoolController()


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_threads = cores()


def alone() -> None:
    """From now on one thread in this process: it is one of many that share the cores."""
    global _threads
    _threads = 1
    BLAS.limit(limits=1)


def on_threads(work: Callable[[T], R], items: list[T], samples: Samples, side_by_side: bool = True) -> list[R]:
    """Each item with a single-threaded BLAS, several items at once if asked for and X is NumPy's.

    The products here are small, and waking other threads for each costs more than they give, a lot more when the
    processor is busy. Tensors are left to their own library's threads, or device.
    """
    with BLAS.limit(limits=1, user_api="blas"):
        if len(items) == 1 or _threads == 1 or not side_by_side or not is_numpy(samples.X):
            return list(map(work, items))
        with ThreadPoolExecutor(_threads) as pool:
            return list(pool.map(work, items))
