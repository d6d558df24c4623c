"""How Hypothesis runs here, and a ranking that several tests look at."""

import os
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from maxrr.core import rank
from tests.cases import THOROUGH
from tests.core.problems import RECIPE, SEEDS, C, network, records
from tests.small_networks import one_thread, solved_here  # noqa: F401

settings.register_profile(
    "core",
    deadline=None, derandomize=True, print_blob=True, max_examples=50 if THOROUGH else 10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("core")


@pytest.fixture(scope="session")
def reports():
    """What `undisturbed` reported."""
    return []


@pytest.fixture(scope="session")
def undisturbed(reports):
    """The ranking that nothing came between, without a folder."""

    def progress(*now, **numbers):
        reports.append((*now, numbers))

    return rank(network(), records(), SEEDS, C=C, recipe=RECIPE, device="cpu", progress=progress)


@pytest.fixture(scope="session")
def written():
    """What was opened for writing by name, made or renamed during `again`."""
    return []


@pytest.fixture(scope="session")
def again(undisturbed, written):
    """Two of the runs once more, with the records in order. What PyTorch does only once was done for `undisturbed`."""
    watching, names = True, ("os.mkdir", "os.rename", "os.link", "os.symlink")

    def hook(event, arguments):
        named = event == "open" and not isinstance(arguments[0], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        if watching and (named or event in names):
            written.append((event, arguments))

    sys.addaudithook(hook)  # for good, but silent soon
    try:
        in_order = records().select(np.sort(records().ids))
        return rank(network, in_order, SEEDS[1:3], C=C, recipe=RECIPE, device="cpu")
    finally:
        watching = False
