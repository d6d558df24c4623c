"""Every part and every study, measured once with the tiny profile."""

import pytest
import torch
from tests.experiments.problems import in_this_process, ranked_by_hand, tiny_lab, with_ranking
from tests.small_networks import one_thread  # noqa: F401

from maxrr.experiments import PARTS, STUDIES


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Where `measured` was measured. Nothing may be changed in its folder."""
    torch.set_num_threads(1)  # as in the tests; `one_thread` has not come yet
    lab = tiny_lab(tmp_path_factory.mktemp("lab") / "tiny")
    return with_ranking(lab, ranked_by_hand(lab))


@pytest.fixture(scope="session")
def measured(lab):
    """The results of all parts and studies, by name."""
    with in_this_process():
        return {name: part(lab) for name, part in {**PARTS, **STUDIES}.items()}
