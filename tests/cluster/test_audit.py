"""Shadow models that a cluster's workers make: the findings of this machine, to the byte."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest

from maxrr.audit import audit
from maxrr.audit import auditing as auditing_module
from maxrr.audit.case import make_case
from maxrr.audit.shadows import Maker, Shadows, shadow_models, with_and_without
from maxrr.parallel.engine import InProcess
from tests.audit.problems import FEW, TRAINING, asked, contents, core
from tests.cluster.test_training import Watched
from tests.small_networks import one_thread  # noqa: F401

pytestmark = pytest.mark.usefixtures("cluster", "few_models")

CORE_IDS = core()[[1, 3, 5]]
OTHER_IDS = np.setdiff1d(TRAINING.ids, core())[:4]
NETWORKS = FEW + 2  # of an audit of core records


def files(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*.npz")}


@pytest.fixture
def not_deleted(monkeypatch):
    """An audit keeps its folder."""
    monkeypatch.setattr(auditing_module.shutil, "rmtree", lambda *_, **__: None)


@pytest.mark.parametrize(
    ("ids", "kind", "engine"),
    [
        pytest.param(CORE_IDS, "hash", "processes", id="core-processes", marks=pytest.mark.long),
        pytest.param(CORE_IDS, "hash", "ray", id="core-ray", marks=pytest.mark.long),
        pytest.param(OTHER_IDS, "hash", "processes", id="not-processes", marks=pytest.mark.long),
        pytest.param(OTHER_IDS, "hash", "ray", id="not-ray", marks=pytest.mark.long),
        pytest.param(core("shards")[[1, 3]], "shards", "processes", id="shards-processes", marks=pytest.mark.long),
        pytest.param(core("shards")[[1, 3]], "shards", "ray", id="shards-ray"),
    ],
    indirect=["engine"],
)
def test_has_the_findings_of_this_machine(engine, tmp_path, not_deleted, ids, kind):
    now = asked(ids, kind)
    here = audit(*now, shadows=FEW, device="cpu", folder=tmp_path / "here")
    there = audit(*now, shadows=FEW, device="cpu", folder=tmp_path / "there", engine=engine)
    assert contents(here) == contents(there)
    assert files(tmp_path / "here") == files(tmp_path / "there") != {}


@pytest.mark.parametrize("engine", ["ray"], indirect=True)
def test_what_is_done_is_not_done_again(engine, tmp_path, not_deleted):
    """Interrupted on an engine, gone on with here, and all of it read by another."""
    now, told, folder = asked(CORE_IDS), [], tmp_path / "audit"

    def stop(what, done, total, **numbers):
        told.append((done, total))
        if done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit(*now, shadows=FEW, device="cpu", folder=folder, progress=stop, engine=engine)
    assert told == [(count, NETWORKS) for count in range(5)]
    first = files(folder)
    assert len(first) >= 4
    local = Watched(InProcess())
    found = audit(*now, shadows=FEW, device="cpu", folder=folder, engine=local)
    done = {int(name.split("-")[1].removesuffix(".npz")) for name in first}
    assert not done & {seed for batch in local.items for seed in batch.seeds}
    assert len(local.items) == NETWORKS - len(done)
    again = Watched(engine)
    assert contents(audit(*now, shadows=FEW, device="cpu", folder=folder, engine=again)) == contents(found)
    assert again.items == []
    assert first.items() <= files(folder).items()


@dataclass(frozen=True)
class Failing(InProcess):
    """An engine of which the work for one seed fails."""

    seed: int

    def map(self, function, items, *shared):
        def work(batch, *rest):
            if self.seed in batch.seeds:
                raise ArithmeticError("not this one")
            return function(batch, *rest)

        return super().map(work, items, *shared)


@pytest.mark.parametrize("kept", [True, False])
def test_a_model_that_fails_ends_the_work_and_those_before_are_kept(tmp_path, kept):
    case = make_case(*asked(CORE_IDS))
    wanted = shadow_models(case, *with_and_without(FEW))
    seed = wanted[1][1][1]
    maker = Shadows(case, "cpu", tmp_path if kept else None, engine=Failing(seed))
    with pytest.raises(ArithmeticError, match="not this one"):
        maker.views(wanted)
    there = {view.stem.split("-")[1] for view in tmp_path.glob("*.npz")}
    asked_for = [one for _, seeds in wanted for one in seeds]
    assert there == {str(one) for one in asked_for[: asked_for.index(seed)] if kept}


def test_workers_get_no_key():
    now = asked(core("shards")[[1, 3]], "shards")
    fitted = now.model._fitted
    sent = pickle.dumps(Maker.of(make_case(*now), "cpu"))
    assert fitted.blueprint.sharding.key == b"house"
    assert [key for key in (fitted.key, fitted.secret, b"house") if key in sent] == []
