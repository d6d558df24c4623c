"""What every engine promises: results in order, few items taken ahead, errors in their turn, nothing left behind."""

import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from multiprocessing import spawn

import numpy as np
import pytest

from maxrr.errors import WorkerLostError
from maxrr.parallel import Processes, processes
from maxrr.parallel.engine import InProcess, Threads, cores, single_threaded_blas
from maxrr.parallel.processes import AHEAD, Parcel, close, staying, without_the_script
from tests.cases import some
from tests.parallel import work

ENGINES = {
    "in-process": InProcess(), "thread": Threads(1), "threads": Threads(3), "process": Processes(1),
    "processes": Processes(2),
}  # fmt: skip


def most_of(tried):
    """Items that may be under way or waiting for the caller."""
    if isinstance(tried, InProcess):
        return 1
    return tried.count + (tried.count if isinstance(tried, Threads) else AHEAD)


def left_behind():
    gc.collect()
    threads = [thread.name for thread in threading.enumerate() if "PoolExecutor" in thread.name]
    return threads + multiprocessing.active_children()


@pytest.fixture(autouse=True)
def nobody_idle():
    """No processes stay after other tests, or after these."""
    end_all_idle()
    yield
    end_all_idle()


def end_all_idle():
    for workers, timer in list(processes._idle):
        timer.cancel()
        processes.end_idle(workers)
    assert not processes._idle


@pytest.fixture(params=[pytest.param(name, marks=[pytest.mark.long] * (name == "process")) for name in ENGINES])
def tried(request):
    yield ENGINES[request.param]
    assert left_behind() == []


def test_results_in_the_order_of_the_items(tried):
    assert list(tried.map(work.slow_first, range(9), 10)) == list(range(0, 90, 10))


def test_no_items(tried):
    assert list(tried.map(work.scaled, [], 1)) == []


def test_few_items_are_taken_ahead_in_the_callers_thread(tried):
    taken, threads = [], set()

    def items():
        for number in range(1000):
            taken.append(number)
            threads.add(threading.get_ident())
            yield number

    with closing(tried.map(work.scaled, items(), 1)) as results:
        assert not taken
        for given in range(1, 6):
            next(results)
            assert given <= len(taken) < given + most_of(tried)
    assert threads == {threading.get_ident()}


def test_an_error_comes_in_its_turn(tried):
    results = tried.map(work.refuse_three, range(100))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(work.BrokenError, match="three"):
        next(results)


def test_an_error_in_the_items_comes_at_once(tried):
    def items():
        yield 1
        raise work.BrokenError("no more")

    with pytest.raises(work.BrokenError, match="no more"):
        list(tried.map(work.scaled, items(), 1))


def test_closing_leaves_nothing_behind(tried):
    results = tried.map(work.scaled, range(100), 1)
    next(results)
    results.close()
    assert left_behind() == []
    with pytest.raises(StopIteration):
        next(results)


def test_arrays_of_items_and_shared_ones(tried):
    rng = np.random.default_rng(0)
    items = [(rng.normal(size=(50, 4)), rng.random(50) < 0.5, f"item {number}") for number in range(3)]
    weights = rng.normal(size=4)
    weights.flags.writeable = False
    expected = [(name, 2.0 * float(np.sum(X[mask] @ weights))) for X, mask, name in items]
    assert list(tried.map(work.summed, items, weights, 2.0)) == expected


@pytest.mark.parametrize("tried", [Processes(2)])
def test_workers_are_kept_for_several_maps(tried):
    with tried._kept() as kept:
        assert list(kept.map(work.scaled, [1, 2], 3)) == [3, 6]
        assert list(kept.map(work.scaled, [4], 3)) == [12]
    assert left_behind() == []


def process_ids(engine):
    return set(engine.map(work.process_of, range(8)))


def test_processes_stay_for_the_next_who_asks():
    with staying("maxrr.parallel") as first:
        ids = process_ids(first)
        with staying("maxrr.parallel") as second:
            assert not ids & process_ids(second)
        with staying("maxrr.parallel") as third:
            assert third is second
    with staying("maxrr.parallel") as again:
        assert again is first
        assert process_ids(again) <= {process.pid for process in first.context.started}


def test_processes_end_when_nobody_asks_or_something_went_wrong(monkeypatch):
    monkeypatch.setattr(processes, "STAY", 0.0)
    with staying("maxrr.parallel") as first:
        process_ids(first)
    for _ in range(100):
        if not processes._idle:
            break
        time.sleep(0.05)
    with pytest.raises(WorkerLostError), staying("maxrr.parallel") as second:
        list(second.map(work.end_itself, [1]))
    assert not processes._idle
    for process in first.context.started + second.context.started:
        process.join(30.0)
        assert not process.is_alive()


# Threads


def test_long_work_is_asked_to_stop():
    stop = threading.Event()
    results = Threads(2, stop).map(lambda item: stop.wait(600.0 if item else 0.0), [0, 1, 1, 1])
    next(results)
    results.close()
    assert left_behind() == []


def test_the_interpreter_does_not_wait_for_long_work():
    code = (
        "import threading\n"
        "from maxrr.parallel.engine import Threads\n"
        "stop = threading.Event()\n"
        "results = Threads(2, stop=stop).map(lambda item: stop.wait(600.0 if item else 0.0), [0, 1, 1])\n"
        "next(results)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_blas_with_one_thread():
    with single_threaded_blas():
        assert work.blas_threads(None) == {1}


# Processes


def test_other_processes_with_one_thread_of_blas():
    found = set(Processes(2).map(work.process_of, range(8)))
    assert os.getpid() not in found
    assert len(found) <= 2
    assert list(Processes(1).map(work.blas_threads, [None])) == [{1}]


def test_a_worker_that_is_killed():
    with pytest.raises(WorkerLostError, match="ended early"):
        list(Processes(2).map(work.end_itself, range(5)))
    assert left_behind() == []


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no such memory here")
def test_the_memory_of_arrays_is_given_back():
    """Also where a worker dies, or the caller goes."""
    before = len(os.listdir("/proc/self/fd"))
    arrays = (np.ones(1000) for _ in range(10))
    with pytest.raises(WorkerLostError):
        list(Processes(1).map(work.end_itself, arrays))
    with closing(Processes(1).map(work.scaled, (np.ones(1000) for _ in range(10)), 2.0)) as results:
        assert next(results).tolist() == [2.0] * 1000
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_closing_does_not_wait_for_the_others():
    begun = time.monotonic()
    with closing(Processes(2).map(work.sleep_but_first, range(4))) as results:
        next(results)
    assert time.monotonic() - begun < 60.0
    assert left_behind() == []


def test_closing_while_results_are_sent():
    """Larger than what a pipe holds."""
    for _ in some(1, range(3)):
        with closing(Processes(2).map(work.many_bytes, range(50))) as results:
            next(results)
    assert left_behind() == []


CALLER = """
from tests.parallel import work
from maxrr.parallel import Processes

results = Processes(2).map(work.sleep_but_first, range(4))
print(next(results), flush=True)
next(results)
"""


CALLER_OF_ONE = """
from tests.parallel import work
from maxrr.parallel.processes import call_in_fresh_process

print(call_in_fresh_process(work.scaled, 1, 0), flush=True)
call_in_fresh_process(work.sleep_but_first, 1)
"""


@pytest.mark.parametrize(
    ("how", "code"),
    [
        pytest.param("Ctrl-C", CALLER, id="Ctrl-C-many"),
        pytest.param("Ctrl-C", CALLER_OF_ONE, id="Ctrl-C-one", marks=pytest.mark.long),
        pytest.param("interrupted alone", CALLER, id="interrupted-alone-many", marks=pytest.mark.long),
        pytest.param("interrupted alone", CALLER_OF_ONE, id="interrupted-alone-one"),
        pytest.param("killed", CALLER, id="killed-many"),
        pytest.param("killed", CALLER_OF_ONE, id="killed-one", marks=pytest.mark.long),
    ],
)
def test_no_process_outlives_the_caller(how, code):
    """Ctrl-C reaches all of them, another interruption the caller alone; one that is killed cannot tell its workers."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a pytest in the background ignores it
    caller = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    signal.signal(signal.SIGINT, before)
    try:
        assert caller.stdout.readline() == "0\n", caller.stderr.read()
        time.sleep(0.3)
        if how == "Ctrl-C":
            os.killpg(caller.pid, signal.SIGINT)
        else:
            caller.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
        _, error = caller.communicate(timeout=60)  # ends when all that hold its pipes have
        assert caller.returncode != 0
        if how != "killed":
            assert error.rstrip().endswith("KeyboardInterrupt")
            assert error.count("Traceback") == 1
    finally:
        if caller.poll() is None:
            os.killpg(caller.pid, signal.SIGKILL)


def test_worker_processes_do_not_run_the_script_that_started_them(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from maxrr.parallel import Processes\nprint('script')\nprint(list(Processes(1).map(abs, [-1, -2])))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "script\n[1, 2]\n"


def test_only_processes_of_the_thread_that_asks_are_kept_from_the_script(monkeypatch):
    """Other threads see the script in its place, and start processes that import it."""
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", None)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "/script.py", raising=False)

    def told():
        found = spawn.get_preparation_data("a process")
        return [key for key in found if key.startswith("init_main_from")]

    def seen():
        return sys.modules["__main__"], told()

    script = sys.modules["__main__"]
    with ThreadPoolExecutor(1) as pool, without_the_script():
        assert told() == []
        assert sys.modules["__main__"] is script
        assert pool.submit(seen).result() == (script, ["init_main_from_path"])
        with without_the_script():
            assert told() == []
        assert told() == []
    assert told() == ["init_main_from_path"]


def test_cores():
    assert 1 <= cores() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="no such memory here")
def test_arrays_with_several_fields_arrive_as_they_are():
    array = np.zeros(4, [("mask", "?", (2,)), ("tokens", "<i8", (3,))])
    array["tokens"] = np.arange(12).reshape(4, 3)
    parcel = Parcel.of(array)
    try:
        found = parcel.opened()
        assert (found.dtype, found.tobytes()) == (array.dtype, array.tobytes())
    finally:
        close(parcel)
