"""Workers, nodes and drivers that are lost: the result is the same, and nothing that was finished is done again."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest

from maxrr.core import rank
from maxrr.data import load
from maxrr.nets.training_function import OwnTraining
from maxrr.parallel import Ray
from tests.cluster import work
from tests.cluster.conftest import ROOT, STORE

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def digits():
    training, _ = load("digits")
    return training.select(training.ids[:200])


def kill_at_work(folder, times, over):
    """Kill the worker of an item that is begun and not ended, so many times, each item twice at most."""
    killed = Counter()
    while sum(killed.values()) < times and not over.is_set():
        lines = work.notes(folder)
        ended = {item for word, item, _ in lines if word == "end"}
        at_work = {item: int(process) for word, item, process in lines if word == "begin" and item not in ended}
        for item, process in at_work.items():
            if killed[item] < 2 and sum(killed.values()) < times:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    continue
                killed[item] += 1
        time.sleep(0.05)
    return killed


@pytest.mark.parametrize("times", [2, pytest.param(10, marks=pytest.mark.long)])
def test_killed_workers_cost_what_they_worked_on(tmp_path, times):
    over, killed = threading.Event(), []
    killer = threading.Thread(target=lambda: killed.append(kill_at_work(tmp_path, times, over)))
    killer.start()
    delivered = {}
    try:
        for number, result in enumerate(Ray().map(work.slowly, range(4 * times), str(tmp_path))):
            delivered[number] = result, len(work.notes(tmp_path))
    finally:
        over.set()
        killer.join()
    assert {number: result for number, (result, _) in delivered.items()} == {n: n * n for n in range(4 * times)}
    assert sum(killed[0].values()) == times
    lines = work.notes(tmp_path)
    begun = Counter(item for word, item, _ in lines if word == "begin")
    assert sum(begun.values()) <= 4 * times + times  # one for each that was lost
    for number, (_, told_before) in delivered.items():  # what was delivered was never begun again
        assert not [line for line in lines[told_before:] if line[:2] == ["begin", str(number)]]


@pytest.mark.long
def test_a_node_that_leaves_costs_what_it_worked_on(cluster, tmp_path):
    node, delivered = cluster.add_node(num_cpus=1, object_store_memory=STORE), {}
    for number, result in enumerate(Ray().map(work.slowly, range(12), str(tmp_path))):
        delivered[number] = result
        if len(delivered) == 3:
            cluster.remove_node(node, allow_graceful=False)
    assert delivered == {number: number * number for number in range(12)}
    begun = Counter(item for word, item, _ in work.notes(tmp_path) if word == "begin")
    assert sum(begun.values()) <= 12 + 2  # what the node was working on, and what had just been sent to it


@pytest.mark.long
def test_a_node_that_leaves_during_a_ranking(cluster, digits, tmp_path):
    network, recipe, seeds = work.Counted(tmp_path, seconds=0.5), OwnTraining.by(work.train), range(6)
    expected = rank(network, digits, seeds, recipe=recipe)
    (tmp_path / "notes").unlink()
    node, gone = cluster.add_node(num_cpus=1, object_store_memory=STORE), []

    def leave(what, done, total, **numbers):
        if numbers.get("solved", 0) >= 1 and not gone:
            gone.append(len(work.notes(tmp_path)))
            cluster.remove_node(node, allow_graceful=False)

    found = rank(network, digits, seeds, recipe=recipe, engine=Ray(), folder=tmp_path / "runs", progress=leave)
    assert gone
    assert np.array_equal(found.votes, expected.votes)
    assert len(work.notes(tmp_path)) <= 6 + 2  # what the node was working on, and what had just been sent to it


DRIVER = """
import json, sys
from tests.cluster import work
from maxrr.core import rank
from maxrr.data import load
from maxrr.nets.training_function import OwnTraining
from maxrr.parallel import Ray

folder = sys.argv[1]
training, _ = load("digits")
digits = training.select(training.ids[:200])
network = work.Counted(folder, seconds=0.3)
rank(network, digits, range(8), recipe=OwnTraining.by(work.train), engine=Ray(), folder=folder + "/runs")
"""


@pytest.mark.long
def test_a_killed_driver_goes_on_where_it_stopped(cluster, digits, tmp_path):
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT, env=environment)
    stored, deadline = set(), time.monotonic() + 120
    while len(stored) < 2 and driver.poll() is None and time.monotonic() < deadline:
        stored = set((tmp_path / "runs").glob("votes-*"))
        time.sleep(0.05)
    driver.kill()
    driver.wait()
    stored = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("votes-*")}
    assert 2 <= len(stored) < 8
    begun = len(work.notes(tmp_path))
    network, recipe = work.Counted(tmp_path, seconds=0.3), OwnTraining.by(work.train)
    found = rank(network, digits, range(8), recipe=recipe, engine=Ray(), folder=tmp_path / "runs")
    again = [int(seed) for word, seed, _ in work.notes(tmp_path)[begun:]]
    done = {int(path.stem.removeprefix("votes-")) for path in stored}
    assert not done & set(again)
    assert {path: path.stat().st_mtime_ns for path in stored} == stored
    assert np.array_equal(found.votes, rank(network, digits, range(8), recipe=recipe).votes)
