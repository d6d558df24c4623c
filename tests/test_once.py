"""Values that are kept, and nothing that a forked process could wait for."""

import os
import threading

from maxrr.once import once


class Slow:
    def __init__(self) -> None:
        self.begun, self.go, self.times = threading.Event(), threading.Event(), 0

    @once
    def value(self) -> int:
        """What it is."""
        self.times += 1
        self.begun.set()
        self.go.wait(10)
        return 7


def test_it_is_found_once() -> None:
    slow = Slow()
    slow.go.set()
    assert (slow.value, slow.value, slow.times) == (7, 7, 1)
    assert type(slow).value.__doc__ == "What it is."


def test_a_forked_process_does_not_wait_for_another_thread() -> None:
    """As `functools.cached_property` of Python 3.11 would: its lock is held by a thread that the child has not got."""
    slow, other = Slow(), Slow()
    other.go.set()
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    slow.begun.wait(10)
    child = os.fork()
    if child == 0:
        os._exit(0 if other.value == 7 else 1)
    slow.go.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
