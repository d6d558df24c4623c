"""A cluster that is reached from outside, through its Ray Client port."""

import json
import os
import secrets
import socket
import subprocess
import sys

import pytest

from tests.cluster.conftest import ROOT, STORE

CLUSTER = f"""
import sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={{
    "num_cpus": 2, "object_store_memory": {STORE}, "include_dashboard": False,
    "ray_client_server_port": int(sys.argv[1]),
}})
print("up", flush=True)
sys.stdin.read()
cluster.shutdown()
"""

DRIVER = """
import json, sys, time
import numpy as np
from tests.parallel import work
from maxrr.core import rank
from maxrr.data import load
from maxrr.errors import WorkerLostError
from maxrr.nets import MLP, Recipe
from maxrr.parallel import Ray, ray_cluster

address, found = sys.argv[1], {}
training, _ = load("digits")
digits, network, recipe = training.select(training.ids[:200]), MLP(64, 10, hidden=(16,)), Recipe(epochs=12, lr=0.01)
with Ray(address)._kept() as engine:
    found["map"] = list(engine.map(work.slow_first, range(5), 10))
    try:
        list(engine.map(work.refuse_three, range(5)))
    except work.BrokenError as error:
        found["error"] = str(error)
    try:
        ray_cluster.RETRIES = 0
        list(engine.map(work.end_itself, ["a"]))
    except WorkerLostError as error:
        found["lost"] = str(error)[:40]
    results = engine.map(work.sleep_but_first, range(3))
    next(results)
    started = time.monotonic()
    results.close()
    found["closed"] = time.monotonic() - started < 25
    there = rank(network, digits, range(2), recipe=recipe, engine=engine)
here = rank(network, digits, range(2), recipe=recipe)
found["same"] = bool(np.array_equal(here.votes, there.votes))
print(json.dumps(found))
"""


@pytest.mark.long
def test_work_from_outside():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    environment = {**os.environ, **token, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    cluster = subprocess.Popen(
        [sys.executable, "-c", CLUSTER, port], cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert cluster.stdout.readline() == b"up\n"
        driver = subprocess.run(
            [sys.executable, "-c", DRIVER, f"ray://127.0.0.1:{port}"], cwd=ROOT, env=environment, capture_output=True,
            check=True, timeout=300, text=True,
        )  # fmt: skip
    finally:
        cluster.communicate()
    assert json.loads(driver.stdout.splitlines()[-1]) == {
        "map": [0, 10, 20, 30, 40], "error": "three",
        "lost": "item 0, 'a': its worker was lost 1 times", "closed": True, "same": True,
    }  # fmt: skip
