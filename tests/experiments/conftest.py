"""Every part and every study, measured once with the tiny profile."""

import pytest
from tests.experiments.problems import tiny_lab
from tests.small_networks import one_thread  # noqa: F401

from maxrr.experiments import PARTS, STUDIES


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Where `measured` was measured. Nothing may be changed in its folder."""
    return tiny_lab(tmp_path_factory.mktemp("lab") / "tiny")


@pytest.fixture(scope="session")
def measured(lab):
    """The results of all parts and studies, by name."""
    return {name: part(lab) for name, part in {**PARTS, **STUDIES}.items()}
