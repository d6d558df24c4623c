"""What worker processes can import."""

import os
import signal
import time

import numpy as np
from threadpoolctl import threadpool_info


class BrokenError(Exception):
    """Raised by work."""


def scaled(item, factor):
    return item * factor


def slow_first(item, factor):
    """The first item takes longest."""
    time.sleep(0.05 if item == 0 else 0.0)
    return item * factor


def refuse_three(item):
    if item == 3:
        raise BrokenError("three")
    return item


def summed(item, weights, factor):
    X, mask, name = item
    assert not weights.flags.writeable or weights.size == 0
    return name, factor * float(np.sum(X[mask] @ weights))


def process_of(item):
    return os.getpid()


def blas_threads(item):
    return {found["num_threads"] for found in threadpool_info() if found["user_api"] == "blas"}


def environment(item):
    return os.environ.get("RAY_AUTH_MODE"), os.environ.get("OMP_NUM_THREADS")


def knows_the_key(item):
    return "MAXRR_SIGNING_KEY" in os.environ


def end_itself(item):
    os.kill(os.getpid(), signal.SIGKILL)


def sleep_but_first(item):
    time.sleep(600.0 if item else 0.0)
    return item


def many_bytes(item):
    return np.zeros(10**6, dtype=np.uint8)
