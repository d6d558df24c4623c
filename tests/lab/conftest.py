"""Every part and every study, measured once with the tiny profile."""

from collections.abc import Mapping

import pytest
import torch

from lab import core_epochs, readings
from lab.parts import PARTS, STUDIES
from tests.cases import THOROUGH
from tests.lab.problems import in_this_process, ranked_by_hand, tiny_lab, with_ranking
from tests.small_networks import one_thread, solved_here  # noqa: F401


@pytest.fixture(scope="session", autouse=not THOROUGH)
def small_grids():
    """Fewer readings, and fewer rankings for trainings of several lengths."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readings, "EPOCHS", (3, 5))
        patch.setattr(readings, "BATCHES", (32,))
        patch.setattr(readings, "GRID", [one for one in readings.GRID if one.batch_size == 32 and one.epochs <= 5])
        patch.setattr(core_epochs, "RANKINGS", {"ranking 1": 1, "ranking 2": 2})
        yield


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """Where `measured` was measured. Nothing may be changed in its folder."""
    torch.set_num_threads(1)  # as in the tests; `one_thread` has not come yet
    lab = tiny_lab(tmp_path_factory.mktemp("lab") / "tiny")
    return with_ranking(lab, ranked_by_hand(lab))


class Measured(Mapping):
    """The results of all parts and studies, by name; each is measured when somebody asks for it.

    The choice of a core trains more networks than all others: it is among them in `make long`.
    """

    def __init__(self, lab):
        self.lab, self.parts, self.found = lab, {**PARTS, **STUDIES}, {}
        if not THOROUGH:
            del self.parts["core-choice"]

    def __getitem__(self, name):
        if name not in self.found:
            with in_this_process():
                self.found[name] = self.parts[name].measure(self.lab)
        return self.found[name]

    def __iter__(self):
        return iter(self.parts)

    def __len__(self):
        return len(self.parts)


@pytest.fixture(scope="session")
def measured(lab):
    return Measured(lab)
