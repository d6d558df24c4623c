"""A real Ray cluster for all tests of this folder: two nodes on this machine, with one core each."""

import os
import secrets
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
STORE = 100 << 20  # bytes of shared memory for each node


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers that were killed have to import PyTorch again: the tests that kill them come last of this folder."""
    here = [number for number, item in enumerate(items) if item.path.parent == Path(__file__).parent]
    last = sorted((items[number] for number in here), key=lambda item: item.path.stem in ("test_engine", "test_faults"))
    for number, item in zip(here, last, strict=True):
        items[number] = item


@pytest.fixture(scope="session")
def ray() -> Any:
    """The module, told by its environment to ask for a token, and to let workers import tests."""
    os.environ.update(
        RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_raylet_start_wait_time_s="120",
        PYTHONPATH=os.pathsep.join([str(ROOT), *filter(None, sys.path)]), RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
        RAY_worker_niceness="0",  # by default they get what other processes leave, and the tests of others leave little
    )  # fmt: skip
    import ray

    return ray


@pytest.fixture(scope="session")
def cluster(ray: Any) -> Iterator[Any]:
    """Two nodes, to which this process is connected: `Ray()` works on them."""
    from ray.cluster_utils import Cluster

    found = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "object_store_memory": STORE, "include_dashboard": False},
    )
    found.add_node(num_cpus=1, object_store_memory=STORE)
    ray.init(address=found.address, log_to_driver=False, logging_level="error")
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.fixture(scope="session")
def beside() -> Iterator[Any]:
    """Two processes of this machine, for all tests: starting them takes longer than their work."""
    from maxrr.parallel import Processes

    with Processes(2)._kept() as kept:
        yield kept


@pytest.fixture(params=["processes", "ray"])
def engine(request: pytest.FixtureRequest) -> Any:
    """Each engine whose results are to be the same as without one."""
    from maxrr.parallel import Ray

    return request.getfixturevalue("beside") if request.param == "processes" else Ray()
