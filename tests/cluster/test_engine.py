"""Ray keeps the promises of every engine, and its own: see tests/parallel/test_engines.py for the others."""

import gc
import threading
import time
from contextlib import closing

import numpy as np
import pytest

from maxrr.errors import EngineError, WorkerLostError
from maxrr.parallel import Ray, ray_cluster
from maxrr.parallel.engine import cores
from tests.cluster import work
from tests.parallel import work as other_work

pytestmark = pytest.mark.usefixtures("cluster")


def test_results_in_the_order_of_the_items():
    assert list(Ray().map(other_work.slow_first, range(9), 10)) == list(range(0, 90, 10))
    assert list(Ray().map(other_work.scaled, [], 1)) == []


def test_few_items_are_taken_ahead_in_the_callers_thread():
    taken, threads = [], set()

    def items():
        for number in range(1000):
            taken.append(number)
            threads.add(threading.get_ident())
            yield number

    with closing(Ray().map(other_work.scaled, items(), 1)) as results:
        assert not taken
        for given in range(1, 6):
            next(results)
            assert given <= len(taken) < given + 2 * 2  # two cores, and as many ahead
    assert threads == {threading.get_ident()}


def test_an_error_comes_in_its_turn_and_says_where_it_was_raised():
    results = Ray().map(other_work.refuse_three, range(100))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(other_work.BrokenError, match="three") as raised:
        next(results)
    where, traceback = raised.value.__notes__
    assert "Ray on node" in where
    assert "refuse_" in traceback


def test_arrays_are_shared_and_only_read():
    X, mask, weights = np.arange(12.0).reshape(4, 3), np.array([True, False, True, True]), np.ones(3)
    items = [(X, mask, "all"), (2 * X, mask, "twice")]
    assert list(Ray().map(other_work.summed, items, weights, 0.5)) == [("all", 27.0), ("twice", 54.0)]


def test_both_nodes_work_and_each_worker_keeps_to_its_core(tmp_path):
    assert len(set(Ray().map(work.meet, range(8), str(tmp_path)))) == 2
    assert set().union(*Ray().map(other_work.blas_threads, range(2))) == {1}
    assert list(Ray().map(count_cores, range(2))) == [1, 1]


def count_cores(item):
    return cores()


def test_a_worker_that_is_always_lost_is_an_error_that_names_its_item(monkeypatch):
    monkeypatch.setattr(ray_cluster, "RETRIES", 0)
    with pytest.raises(WorkerLostError, match="lost 1 times"):
        list(Ray().map(other_work.end_itself, ["a"]))


@pytest.mark.long
def test_closing_ends_the_work_under_way():
    started = time.monotonic()
    with closing(Ray().map(other_work.sleep_but_first, range(4))) as results:
        assert next(results) == 0
    assert time.monotonic() - started < 25  # of 600 seconds; it is cancelled, then ended, and ended again
    assert list(Ray().map(other_work.scaled, range(2), 1)) == [0, 1]  # the workers are free


@pytest.mark.long
def test_no_shared_input_is_kept_afterwards(ray):
    def free():
        return ray.available_resources().get("object_store_memory", 0)

    content = np.zeros(3_000_000, dtype=np.uint8)
    assert list(Ray().map(measured, range(2), content)) == [3_000_000] * 2
    gc.collect()
    deadline = time.monotonic() + 20
    while free() < ray.cluster_resources()["object_store_memory"] - 1_000_000 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert free() >= ray.cluster_resources()["object_store_memory"] - 1_000_000


def measured(item, content):
    return content.nbytes


def test_another_address_than_the_connected_one_is_refused():
    with pytest.raises(ValueError, match="not with address='ray://elsewhere:10001'"):
        list(Ray("ray://elsewhere:10001").map(other_work.scaled, [1], 1))


@pytest.mark.parametrize("asked", [{"gpus": 1}, {"cpus": 2}])
def test_more_than_any_node_has_is_refused(asked):
    with pytest.raises(ValueError, match="cores, 0 graphics"):
        list(Ray(**asked).map(other_work.scaled, [1], 1))


class Unspeakable(tuple):
    def __repr__(self):
        raise work.UnspeakableError


def test_items_that_may_hold_records_are_not_shown(monkeypatch):
    monkeypatch.setattr(ray_cluster, "RETRIES", 0)
    with pytest.raises(WorkerLostError, match=r"^item 0"):
        list(Ray().map(other_work.end_itself, [Unspeakable((np.full(5, 123.456),))]))


def test_nodes_with_other_versions_are_refused(monkeypatch):
    monkeypatch.setattr(ray_cluster, "versions", lambda: {"numpy": "1.0"})
    with pytest.raises(EngineError, match="results would not"):
        list(Ray().map(other_work.scaled, [1], 1))


@pytest.mark.parametrize("wrong", [{"cpus": 0}, {"gpus": -1}])
def test_what_no_engine_can_be(wrong):
    with pytest.raises(ValueError, match="not"):
        Ray(**wrong)


def gives_a_generator(item):
    return (number for number in range(item))


def test_what_cannot_be_sent_is_said_without_showing_it():
    with pytest.raises(TypeError, match="gives_a_generator"):
        list(Ray().map(gives_a_generator, [3]))
    results = Ray().map(other_work.scaled, [1, (123456, threading.Lock()), 3], 1)
    assert next(results) == 1
    with pytest.raises(TypeError, match="item 1") as raised:
        next(results)
    assert "123456" not in str(raised.value)
    with pytest.raises(TypeError, match="sent to workers") as raised:
        list(Ray().map(other_work.scaled, [1], (123456, threading.Lock())))
    assert "123456" not in str(raised.value)


def raise_a_strange_one(item):
    raise work.StrangeError("one", "two")


def test_an_error_that_cannot_be_made_again_is_told_in_words():
    with pytest.raises(RuntimeError, match="StrangeError"):
        list(Ray().map(raise_a_strange_one, [1]))
