"""A plan in a folder: made by anybody who can read it, carried out once, by whoever works in it, if nothing changed."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from maxrr.data import DataError
from maxrr.errors import MaxRRError, NotHere, Refused, Stale, WorkspaceError
from maxrr.unlearning import Action
from maxrr.workspace import Workspace
from tests.workspace.problems import NEW, contents, copied, facts, fixed_key, given, kinds, receipt_facts, reopened


def test_executing_a_plan_is_the_request_itself(folder, tmp_path, records, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")  # two copies go on, which nobody must notice
    with fixed_key():
        other = copied(folder, tmp_path / "other")
    read = {"records": lambda: records}
    with Workspace.open(folder, **read) as workspace, Workspace.open(other, **read) as twin:
        core, influential, free = kinds(workspace.model)
        for plan, verb, args in (
            (workspace.model.plan(free[:1]), twin.model.unlearn, (free[:1],)),
            (lambda: workspace.model.plan(core[:1], core_policy="retrain"), twin.model.unlearn, (core[:1],)),
            (
                lambda: workspace.model.plan(influential[0].item(), inputs=NEW),
                twin.model.replace,
                (influential[0].item(), NEW),
            ),
        ):
            made = plan() if callable(plan) else plan
            options = {"core_policy": "retrain"} if made.trains else {}
            assert receipt_facts(workspace.model.execute(made)) == receipt_facts(verb(*args, **options))
        assert facts(workspace, records) == facts(twin, records)


def test_a_snapshots_plan_is_carried_out_by_the_writer_until_something_changes(folder, records):
    with Workspace.open(folder, read_only=True) as reader:
        _, influential, free = kinds(reader.model)
        first, second = reader.model.plan(free[:1]), reader.model.plan(influential[0].item(), inputs=NEW)
        with pytest.raises(WorkspaceError, match="for reading only"):
            reader.model.execute(first)
    with Workspace.open(folder) as workspace:
        assert workspace.model.execute(first).guarantee == "exact-untouched"
        before = facts(workspace, records)
        for plan in (first, second):
            with pytest.raises(Stale, match="plan again"):
                workspace.model.execute(plan)
        assert facts(workspace, records) == before
    assert reopened(folder, records) == before


def test_a_plan_survives_closing_and_opening(folder):
    with Workspace.open(folder) as workspace:
        plan = workspace.model.plan(kinds(workspace.model)[1][:1])
    with Workspace.open(folder) as workspace:
        assert workspace.model.execute(plan).guarantee == "exact-refit"


def test_a_fit_makes_plans_stale(workspace, records):
    plan = workspace.model.plan(kinds(workspace.model)[2][:1])
    workspace.model.fit(records)
    with pytest.raises(Stale):
        workspace.model.execute(plan)


def test_of_two_threads_with_one_plan_each_one_is_stale(workspace):
    _, influential, free = kinds(workspace.model)
    plans = [workspace.model.plan(free[:1]), workspace.model.plan(influential[:1])]

    def answer(plan):
        try:
            return workspace.model.execute(plan).number
        except Stale:
            return "stale"

    with ThreadPoolExecutor(2) as pool:
        assert sorted(map(str, pool.map(answer, plans))) == ["1", "stale"]
    assert len(list(workspace.receipts())) == 1


def test_what_a_plan_needs_is_asked_for_and_nothing_changes_without_it(workspace, folder, records):
    core, _, _ = kinds(workspace.model)
    before = contents(folder)
    with pytest.raises(Refused) as caught:
        workspace.model.unlearn(core[:1])
    retrain, keep = caught.value.plans
    with pytest.raises(DataError, match="needs the raw"):
        workspace.model.execute(retrain)
    with pytest.raises(NotHere):
        workspace.model.unlearn([3])
    assert contents(folder) == before
    assert (retrain.action, keep.action) in {(Action.retrain, Action.move), (Action.retrain, Action.erase)}
    assert given(workspace, records).model.execute(retrain).guarantee == "exact-retrain"


def test_errors_have_one_base(folder):
    with pytest.raises(MaxRRError):
        Workspace.open(folder / "nowhere")
