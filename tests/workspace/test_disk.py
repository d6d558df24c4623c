"""A full disk, a folder that cannot be written, Ctrl-C: said clearly, and the state is the old one or the new."""

import errno
import itertools
import warnings

import pytest

from maxrr.core import Frozen, HashCore
from maxrr.nets import MLP
from maxrr.workspace import Workspace, WorkspaceError
from tests.cases import some, stride
from tests.unlearning.problems import fresh
from tests.workspace.faults import NEEDING_SPACE, Points, broken, full, interrupt, read_only
from tests.workspace.problems import NEW, belongs, contents, copied, facts, kinds, like, reopened, wide


def acts(workspace, records):
    """What is done, by name."""
    _, influential, free = kinds(workspace.model)
    small = fresh(HashCore(0.3, key="other"), records, MLP(5, 3, hidden=(6,)), epochs=2)
    own = fresh(Frozen(), records, wide())
    return {
        "untouched": lambda w: w.model.unlearn(free[:2]),
        "refit": lambda w: w.model.unlearn(influential[:2]),
        "replace": lambda w: w.model.replace(free[0].item(), NEW),
        "fit again": lambda w: like(w, small).fit(records),
        "fit again, own network": lambda w: like(w, own).fit(records),
    }  # fmt: skip


AFFECTED = {
    full: NEEDING_SPACE, read_only: {"open", "mkdir", "replace"}, broken: {*NEEDING_SPACE, "replace", "truncate"},
}  # fmt: skip


@pytest.fixture
def states(template, tmp_path, records):
    """An act by name: how to do it, the state before, and after."""

    def of(name):
        with Workspace.open(copied(template("hash"), tmp_path / "before")) as workspace:
            act = acts(workspace, records)[name]
            old = facts(workspace, records)
            act(workspace)
            return act, old, facts(workspace, records)

    return of


def every_point(template, tmp_path, act, failure, **options):
    """Do it with a failure at one point after the other, and what came of each."""
    for at in itertools.count(1, stride(2)):
        points = Points(at, failure, **options)
        with Workspace.open(copied(template("hash"), tmp_path / "workspace")) as workspace:
            error = None
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                with points.patched():
                    try:
                        act(workspace)
                    except (OSError, KeyboardInterrupt) as raised:
                        error = raised
            if points.count < at:
                assert error is None
                return
            yield at, workspace, error, said


@pytest.mark.parametrize(
    ("failure", "name"),
    [(full, name) for name in some(2, ["fit again", "refit", "replace", "untouched"])]
    + [(other, name) for other in (read_only, broken) for name in some(1, ["replace", "refit"])],
)
def test_a_disk_that_cannot_be_written_leaves_the_old_state(template, tmp_path, records, states, failure, name):
    """At each thing that needs room, and at all after it. After the commit nothing needs any."""
    act, old, new = states(name)
    count = 0
    for at, workspace, error, said in every_point(
        template, tmp_path, act, failure, only=AFFECTED[failure], lasting=True
    ):
        count += 1
        if error is None:
            assert any("the request was carried out, but" in str(each.message) for each in said), at
            workspace.close()
            assert reopened(workspace.folder, records) == new, at
            continue
        assert isinstance(error, OSError), at
        assert str(workspace.folder) in str(error), f"{at}: {error} names no path"
        assert ".tmp" not in str(error), f"{at}: {error} names a file that means nothing to anybody"
        if failure is full:
            assert error.errno == errno.ENOSPC
            assert "space left" in str(error)
        assert facts(workspace, records) == old, at  # of the object that was there when it happened
        workspace.close()
        assert reopened(workspace.folder, records) == old, at
        assert set(contents(workspace.folder)) == belongs(workspace.folder), f"{at}: leftovers"
    assert count >= 4 // stride(2)


@pytest.mark.parametrize("name", some(2, ["refit", "untouched", "replace", "fit again, own network"]))
def test_interrupted_anywhere_the_object_goes_on_and_agrees_with_the_disk(template, tmp_path, records, states, name):
    act, old, new = states(name)
    outcomes = []
    for at, workspace, error, _ in every_point(template, tmp_path, act, interrupt):
        assert isinstance(error, KeyboardInterrupt), at
        seen = facts(workspace, records)
        assert seen in (old, new), at
        outcomes.append(seen == new)
        free = kinds(workspace.model)[2]
        workspace.model.unlearn(free[-1:])
        after = facts(workspace, records)
        workspace.close()
        network = wide() if seen == new and "own" in name else None
        assert reopened(workspace.folder, records, network) == after, at
        assert set(contents(workspace.folder)) == belongs(workspace.folder), f"{at}: leftovers"
    assert outcomes == sorted(outcomes)  # the old state until some point, and the new from there on
    assert False in outcomes
    assert True in outcomes


@pytest.mark.long
@pytest.mark.parametrize("name", some(1, ["replace", "refit"]))
def test_an_error_anywhere_else_leaves_one_of_the_two_states(template, tmp_path, records, states, name):
    """At one call alone, such as an fsync that fails, or a file that cannot be deleted."""
    act, old, new = states(name)
    for at, workspace, error, said in every_point(template, tmp_path, act, read_only):
        seen = facts(workspace, records)
        assert seen == new if error is None else seen in (old, new), at
        assert error is not None or said or seen == new, at
        workspace.model.unlearn(kinds(workspace.model)[2][-1:])
        after = facts(workspace, records)
        workspace.close()
        assert reopened(workspace.folder, records) == after, at
        assert set(contents(workspace.folder)) == belongs(workspace.folder), f"{at}: leftovers"


@pytest.mark.long
def test_creating_on_a_full_disk(tmp_path, records):
    """Nothing is left but an empty folder, and it works once there is room."""
    model, at = fresh(HashCore(0.5, key="house"), records, epochs=1), 1
    while True:
        points = Points(at, full, only=NEEDING_SPACE, lasting=True)
        folder = tmp_path / str(at)
        failure = None
        with points.patched():
            try:
                Workspace.create(folder, model, records).close()
            except OSError as error:
                failure = error
        if failure is None:
            break
        assert str(folder) in str(failure)
        with pytest.raises(WorkspaceError, match="not a workspace"):
            Workspace.open(folder)
        left = set(contents(folder)) if folder.exists() else set()
        assert {name.split("-")[0] for name in left} <= {".lock", "history"}, at
        Workspace.create(folder, model, records).close()
        assert set(contents(folder)) == belongs(folder)
        at += 1
    assert at > 10


def test_a_fit_that_is_interrupted_leaves_the_old_state(workspace, records):
    before = facts(workspace, records)

    def stop(*_, **__):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        workspace.model.fit(records, progress=stop)
    assert facts(workspace, records) == before
    folder = workspace.folder
    workspace.close()
    assert reopened(folder, records) == before
    assert set(contents(folder)) == belongs(folder)
