"""A snapshot of a workspace predicts, holds no record, keeps nobody out, and follows."""

import gc
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from maxrr.core import HashCore
from maxrr.errors import WorkspaceError
from maxrr.serving import snapshot
from maxrr.workspace import NetworkMissing, Workspace
from tests.serving.models import own
from tests.unlearning.problems import fresh, table

SOME = table(count=20, seed=1).inputs


@pytest.fixture
def folder(tmp_path):
    Workspace.create(tmp_path / "ws", fresh(HashCore(0.5, key="house"), table(), epochs=4), table()).close()
    return tmp_path / "ws"


def agree(served, workspace):
    assert np.allclose(served.decision_function(SOME), workspace.model.decision_function(SOME), rtol=0, atol=1e-5)
    assert np.allclose(served.predict_proba(SOME), workspace.model.predict_proba(SOME), rtol=0, atol=1e-5)
    assert (served.model_hash, served.classes) == (workspace.model.model_hash_, workspace.model._fitted.head_classes)


def test_it_follows_a_workspace_that_somebody_works_in(folder):
    with Workspace.open(folder) as workspace:
        served = snapshot(folder)
        agree(served, workspace)
        assert (served.export, served.requests, served.reload()) == (None, 0, False)
        workspace.model.unlearn(workspace.model.influential_ids()[:3], core_policy="keep-extractor")
        assert served.requests == 0
        assert (served.reload(), served.reload(), served.requests) == (True, False, 1)
        agree(served, workspace)


def test_and_not_another_that_takes_its_place(folder):
    served = snapshot(folder)
    before = served.model_hash
    shutil.rmtree(folder)
    with Workspace.create(folder, fresh(HashCore(0.5, key="other"), table(), epochs=1), table()) as other:
        for _ in range(2):  # with as many commits, and with more
            with pytest.raises(WorkspaceError, match="holds another workspace now"):
                served.reload()
            assert served.model_hash == before
            other.model.unlearn(other.model.influential_ids()[:1], core_policy="keep-extractor")


WRITER = """
import sys
from maxrr.workspace import Workspace
with Workspace.open(sys.argv[1]) as workspace:
    print(workspace.model.unlearn(workspace.model.influential_ids()[:1], core_policy="keep-extractor").number)
"""


@pytest.mark.long
def test_another_process_unlearns_while_it_is_there(folder):
    """This failed when a reader kept the folder locked."""
    served = snapshot(folder)
    done = subprocess.run(
        [sys.executable, "-c", WRITER, folder],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert (done.stdout, served.reload(), served.requests) == ("1\n", True, 1)


def reachable(root):
    """All arrays that an object holds, however deep."""
    seen, todo, arrays = set(), [root], []
    while todo:
        thing = todo.pop()
        if id(thing) in seen or isinstance(thing, (type, type(sys))):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            arrays.append(thing)
        if not callable(thing) or hasattr(thing, "parameters"):
            todo += [each for each in gc.get_referents(thing) if type(each).__name__ != "function"]
    return arrays


def test_it_holds_no_record(folder):
    served = snapshot(folder)
    assert not any(len(table()) in array.shape or array.dtype.names for array in reachable(served._loaded))
    with Workspace.open(folder, read_only=True) as workspace:
        assert any(len(table()) in array.shape for array in reachable(workspace.model))  # the search would find some


def test_a_network_of_ones_own_is_given(tmp_path):
    Workspace.create(tmp_path / "ws", fresh(HashCore(0.5, key="house"), table(), own, epochs=2), table()).close()
    with pytest.raises(NetworkMissing):
        snapshot(tmp_path / "ws")
    with Workspace.open(tmp_path / "ws", network=own) as workspace:
        agree(snapshot(tmp_path / "ws", own), workspace)
