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


def in_parallel(work: Callable[[T], R], items: list[T], samples: Samples) -> list[R]:
    """Each item on a thread of its own with a single-threaded BLAS: better than each small product on all threads.

    Tensors are left to their own library's threads, or device.
    """
    if len(items) == 1 or not is_numpy(samples.X):
        return list(map(work, items))
    with BLAS.limit(limits=1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(work, items))
