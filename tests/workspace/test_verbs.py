"""Every verb does in a folder what it does in memory, to the byte, and opening the folder again finds that."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from maxrr.core import Frozen, HashCore
from maxrr.data import DataError, Dataset
from maxrr.errors import NetworkMissing, Refused, UnknownRecords
from maxrr.nets import MLP, Recipe
from maxrr.nets.naming import NamedNetwork
from maxrr.unlearning import MaxRR, replay
from maxrr.workspace import Workspace, WorkspaceError
from tests.unlearning.problems import fresh
from tests.workspace.problems import (
    HASHED,
    NEW,
    NEWCOMERS,
    as_in_memory,
    belongs,
    cases,
    contents,
    copied,
    facts,
    fixed_key,
    given,
    kinds,
    like,
    model_facts,
    pretrained,
    receipt_facts,
    reopened,
    wide,
    with_replaced,
)  # fmt: skip


class Both:
    """A model in memory and a workspace of the same, asked the same, and compared after every request."""

    def __init__(self, case, folder):
        self.records, unfitted = cases()[case]
        with fixed_key():
            self.model = copy.deepcopy(unfitted).fit(self.records)
        self.folder, self.network = folder, unfitted.network
        self.receipts = []
        self.check("to begin with")

    def do(self, verb, *args, source=False, **options):
        """`source`: the workspace needs the raw records for it."""
        receipt = getattr(self.model, verb)(*args, **options)
        self.receipts.append(receipt_facts(receipt))
        read = (lambda: self.records) if source else None
        with Workspace.open(self.folder, records=read, network=self.network) as workspace:
            kept = getattr(workspace.model, verb)(*args, **options)
            self.agree(workspace, kept.guarantee)
        assert receipt_facts(kept) == self.receipts[-1]
        self.check(kept.guarantee)
        return kept

    def check(self, after):
        with Workspace.open(self.folder, network=self.network) as workspace:
            self.agree(workspace, f"reopened, {after}")

    def agree(self, workspace, when):
        expected = model_facts(self.model, self.records) | {"receipts": self.receipts}
        seen = facts(workspace, self.records)
        assert {name for name in expected if expected[name] != seen[name]} == set(), when


def moved(extractor, core, leaving, heads):
    """A technique: the same layers with other weights."""
    with torch.no_grad():
        for weights in extractor.parameters():
            weights.mul_(1 + 1e-3 * len(leaving))
    return extractor


VARIANTS = {  # of cases beside them
    "hash, words", "hash, ids around zero", "hash, two of three classes", "full, no subjects", "frozen, float64",
}  # fmt: skip


@pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=[pytest.mark.long] * (name in VARIANTS)) for name in cases() if name != "digits"],
)
def test_every_verb_is_that_of_the_model_in_memory(template, tmp_path, case):
    both = Both(case, copied(template(case), tmp_path / "workspace"))
    core, influential, free = kinds(both.model)
    if len(free):
        assert both.do("unlearn", free[:2]).guarantee == "exact-untouched"
    if len(influential):
        assert both.do("unlearn", influential[:2]).guarantee == "exact-refit"
        assert both.do("replace", influential[2].item(), NEW).guarantee == "exact-refit"
        both.records = with_replaced(both.records, influential[2], NEW)
    if len(core):
        assert both.do("unlearn", core[:2], core_policy="keep-extractor").guarantee == "approximate-refit"
        assert both.do("unlearn", core[2:5], core_policy="retrain", source=True).guarantee == "exact-retrain"
        policy = "keep-extractor" if both.model._fitted.blueprint.sharding.count > 1 else moved  # a technique makes one
        both.do("unlearn", core[5:6], core_policy=policy, source=True)
        assert both.do("replace", core[6].item(), NEW, "kind 1", core_policy="retrain", source=True).core == 1
        both.records = with_replaced(both.records, core[6], NEW, 1)
    fitted = both.model._fitted
    shaping = fitted.records.ids[fitted.heads.support_][:4]
    both.do("unlearn", shaping[:1], core_policy="keep-extractor")
    both.do("unlearn", shaping[1:3], source=True, core_policy="keep-extractor")
    if both.records.subjects is not None:
        people, counts = np.unique(both.model._fitted.records.retained().subjects, return_counts=True)
        person = people[counts.argmax()].item()
        assert both.do("unlearn", subjects=[person], core_policy="keep-extractor").requested > 1
    assert both.do("unlearn", shaping[:3], core_policy="keep-extractor").already_forgotten == 3


def test_a_class_that_was_forgotten_is_not_known_any_more(template, tmp_path):
    """Its name is gone; it comes back with another fit alone."""
    both = Both("hash", copied(template("hash"), tmp_path / "workspace"))
    both.do("unlearn", both.records.ids[both.records.labels == 1], core_policy="keep-extractor")
    other = both.records.ids[both.records.labels == 2][0].item()
    with Workspace.open(both.folder) as workspace, pytest.raises(DataError, match="no class 'kind 1'"):
        workspace.model.replace(other, NEW, "kind 1", core_policy="keep-extractor")
    both.do("replace", other, NEW, "kind 2", core_policy="keep-extractor")
    assert both.model.classes_.tolist() == ["kind 0", "kind 2"]


@pytest.mark.parametrize("case", ["hash", "full, words", "frozen, words"])
def test_a_class_that_is_forgotten_loses_its_head(template, tmp_path, case):
    both = Both(case, copied(template(case), tmp_path / "workspace"))
    both.do("unlearn", both.records.ids[both.records.labels == 1], core_policy="keep-extractor")
    assert both.model.classes_.tolist() == ["kind 0", "kind 2"]
    with Workspace.open(both.folder) as workspace:
        assert workspace.status().classes == ["kind 0", "kind 2"]
        assert workspace.model.kind_.class_names == ("kind 0", "(forgotten class 1)", "kind 2")
        assert set(workspace.model.predict(both.records).tolist()) <= {"kind 0", "kind 2"}
    both.do("unlearn", both.records.ids[both.records.labels == 2][:2], core_policy="keep-extractor")


@pytest.mark.parametrize("case", ["hash", "full, words", "frozen, words", "frozen, float64"])
def test_fitting_again_is_fitting_in_memory_without_the_forgotten(template, tmp_path, case):
    records, unfitted = cases()[case]
    folder = copied(template(case), tmp_path / "workspace")
    gone = records.ids[:3]
    with Workspace.open(folder, network=wide if case == "frozen, float64" else None) as workspace:
        workspace.model.unlearn(gone, core_policy="keep-extractor")
        before = facts(workspace, records)
        with pytest.raises(ValueError, match="3 of the"):
            workspace.model.fit(records)
        assert facts(workspace, records) == before
        workspace.model.fit(records.without(gone))
        expected = copy.deepcopy(unfitted).fit(records.without(gone))
        assert workspace.model.model_hash_ == expected.model_hash_
        assert workspace.model.content_hash_ == expected.content_hash_
        assert len(list(workspace.receipts())) == 1
        with pytest.raises(ValueError, match="3 of the"):
            workspace.model.fit(records)
        assert workspace.model.unlearn(gone, core_policy="keep-extractor").already_forgotten == 3
        after = facts(workspace, records)
    assert reopened(folder, records, wide if case == "frozen, float64" else None) == after


def test_a_folder_can_be_fitted_with_another_model(folder, records):
    other = fresh(HashCore(0.3, key="other"), records, MLP(5, 3, hidden=(6, 4)), C=0.2)
    with Workspace.open(folder) as workspace:
        like(workspace, other).fit(records, source={"file": "b.csv"})
        assert workspace.model.model_hash_ == copy.deepcopy(other).fit(records).model_hash_
        workspace.model.fit(records)  # as before, which now is the other model
        assert workspace.model.model_hash_ == other.fit(records).model_hash_
    with Workspace.open(folder) as workspace:
        assert workspace.model.model_hash_ == other.model_hash_
        assert workspace.sources[0] == workspace.status().sources[0] == {"file": "b.csv"}
        assert workspace.model.core == other.core


def test_without_the_raw_records_nothing_changes(workspace, records):
    core, _, _ = kinds(workspace.model)
    before = facts(workspace, records)
    for act in (
        lambda: workspace.model.unlearn(core[:1], core_policy="retrain"),
        lambda: workspace.model.unlearn(core[:1], core_policy=moved),
        lambda: workspace.model.replace(core[0].item(), NEW, core_policy="retrain"),
    ):
        with pytest.raises(DataError, match="needs the raw"):
            act()
        assert facts(workspace, records) == before
    folder = workspace.folder
    workspace.close()
    assert reopened(folder, records) == before


def test_other_records_than_the_fitted_ones_are_refused_with_their_number(workspace, records):
    core, _, _ = kinds(workspace.model)
    before = facts(workspace, records)
    changed = with_replaced(with_replaced(records, records.ids[3], NEW), records.ids[4], NEW)
    renamed = replace(records, class_names=("a", "b", "c"))
    for brought, words in (
        (records.without(records.ids[:5]), "5 of the 80"),
        (changed, "2 of the 80"),
        (renamed, "class 'a'"),
    ):
        with pytest.raises(DataError, match=words):
            given(workspace, brought).model.unlearn(core[:1], core_policy="retrain")
        with pytest.raises(DataError, match=words):
            given(workspace, brought).model.replace(core[0].item(), NEW, core_policy="retrain")
        assert facts(workspace, records) == before


def test_records_may_come_in_any_order_and_with_the_forgotten_among_them(workspace, records):
    core, _, free = kinds(workspace.model)
    workspace.model.unlearn(free[:3])
    turned = records.select(np.sort(records.ids)[::-1])
    receipt = given(workspace, turned).model.unlearn(core[:1], core_policy="retrain")
    assert (receipt.guarantee, receipt.records_after) == ("exact-retrain", 76)


def test_a_technique_may_change_weights_and_not_layers(workspace, records):
    core, _, _ = kinds(workspace.model)
    before = facts(workspace, records)
    for technique in (
        lambda extractor, *_: nn.Sequential(extractor, nn.ReLU()),
        lambda extractor, *_: extractor.double(),
        lambda extractor, *_: Alike(extractor),
    ):
        with pytest.raises(DataError, match="other layers"):
            given(workspace, records).model.unlearn(core[:1], core_policy=technique)
        assert facts(workspace, records) == before
    assert reopened_beside(workspace, records) == before


class Alike(nn.Module):
    """Other layers that look the same when printed."""

    def __init__(self, extractor):
        super().__init__()
        self.inner = extractor

    def forward(self, records):
        return self.inner(records)

    def __repr__(self):
        return repr(self.inner)


def reopened_beside(workspace, records):
    """What the disk says, while the workspace is open: of a copy."""
    folder = copied(workspace.folder, workspace.folder.with_name("beside"))
    return reopened(folder, records)


@pytest.mark.usefixtures("here")
def test_a_proof_from_the_source(workspace, records):
    core, _, free = kinds(workspace.model)
    first = workspace.model.unlearn(free[:1])
    receipt = given(workspace, records).model.unlearn(core[:2], core_policy="retrain")
    replayed = replay(receipt, workspace.model, records)
    assert (replayed.outcome, replayed.made_again) == ("identical", "extractor and heads")
    with pytest.raises(DataError, match="in this data"):
        replay(receipt, workspace.model, records.without(records.ids[:5]))
    assert first.model_after != receipt.model_after


@pytest.mark.parametrize("copied_by", [copy.copy, copy.deepcopy, lambda model: copy.copy(copy.deepcopy(model))])
def test_a_copy_of_the_model_predicts_and_plans_and_makes_no_receipts(workspace, records, copied_by):
    """Its receipts would have the numbers of others."""
    _, influential, free = kinds(workspace.model)
    before = facts(workspace, records)
    played = copied_by(workspace.model)
    assert np.array_equal(played.predict_proba(records), workspace.model.predict_proba(records))
    plan = played.plan(free[:2])
    for act in (
        lambda: played.unlearn(free[:2]), lambda: played.execute(plan), lambda: played.add(NEWCOMERS),
        lambda: played.replace(influential[0].item(), NEW),
    ):  # fmt: skip
        with pytest.raises(WorkspaceError, match="makes no receipts"):
            act()
    played.network = None
    assert facts(workspace, records) == before
    workspace.model.execute(plan)
    assert facts(workspace, records) == reopened_beside(workspace, records)
    assert model_facts(played, records)["held"] == before["held"]


def test_a_clone_of_the_model_is_another_one(workspace, records):
    """It has the parameters alone: what it forgets is forgotten in memory, with receipts under a key of its own."""
    before = facts(workspace, records)
    other = clone(workspace.model).fit(records)
    assert other.unlearn(kinds(other)[2][:1]).number == 1
    assert other.model_hash_ == workspace.model.model_hash_
    assert facts(workspace, records) == before


def test_the_model_is_one_object_for_life(folder, records):
    with Workspace.open(folder, records=lambda: records) as workspace, Workspace.open(folder, read_only=True) as reader:
        model, read = workspace.model, reader.model
        core, _, free = kinds(model)
        model.unlearn(core[:1], core_policy="retrain")
        model.fit(records.without(core[:1]))
        model.unlearn(free[:1])
        assert reader.reload()
        assert (workspace.model, reader.model) == (model, read)
        assert read.model_hash_ == model.model_hash_


def test_what_load_returns_is_taken_as_the_records(folder, records, tmp_path):
    def loaded():
        return records, records.select(records.ids[:1])

    with Workspace.open(folder, records=loaded) as workspace:
        core = kinds(workspace.model)[0]
        assert workspace.model.unlearn(core[:1], core_policy="retrain").guarantee == "exact-retrain"
        again = workspace.model
        with Workspace.create(tmp_path / "other", again, lambda: (records.without(core[:1]), records)) as other:
            assert other.model.model_hash_ == again.model_hash_


def test_raw_records_are_asked_for_only_where_they_are_needed_and_dropped(folder, records):
    asked = []
    with Workspace.open(folder, records=lambda: asked.append(1) or records) as workspace:
        core, influential, free = kinds(workspace.model)
        model = workspace.model
        model.unlearn(np.concatenate([influential[:2], free[:2]]))
        model.unlearn(core[:1], core_policy="keep-extractor")
        model.replace(influential[2].item(), NEW)
        for wrong in (lambda: model.unlearn(core[1:2]), lambda: model.unlearn([3], core_policy="retrain")):
            with pytest.raises(Refused):
                wrong()
        assert (model.predict_proba(records).shape[0], asked) == (len(records), [])
        model.replace(influential[2].item(), records.select(influential[2:3]).inputs[0], allow_copies="as it was")
        model.unlearn(core[1:2], core_policy="retrain")
        assert (asked, model._fitted.records.inputs) == ([1], None)
        model.refit()
        assert (asked, model._fitted.records.inputs) == ([1, 1], None)


def test_in_memory_nobody_keeps_where_records_come_from(records):
    model = fresh(HASHED, records)
    with pytest.raises(ValueError, match="only the model"):
        model.fit(records, source={"name": "a.csv"})
    model.fit(records)
    for act in (
        lambda: model.add(NEWCOMERS, source={"name": "b.csv"}),
        lambda: model.execute(model.plan(add=NEWCOMERS), source={"name": "b.csv"}),
    ):
        with pytest.raises(ValueError, match="only the model"):
            act()
    assert model._fitted.requests == 0


@pytest.mark.parametrize("change", [nn.Module.double, nn.Module.half, lambda net: net[1].requires_grad_(False)])
def test_a_network_that_its_maker_does_not_give_comes_back_as_it_was(tmp_path, records, change):
    network = MLP(5, 3, hidden=(12,))
    change(network)
    with Workspace.create(tmp_path / "workspace", fresh(HASHED, records, network, lr=1e-5), records) as workspace:
        before = facts(workspace, records)
    with Workspace.open(tmp_path / "workspace") as workspace:
        check_without_network(workspace, records)
    assert reopened(tmp_path / "workspace", records, network) == before


def check_without_network(workspace, records):
    """What needs the network asks for it, and changes nothing."""
    before = workspace.model.model_hash_, workspace.model.content_hash_, contents(workspace.folder)
    someone = records.ids[0].item()
    for act in (
        lambda: workspace.model.predict(records), lambda: workspace.model.predict_proba(records),
        lambda: workspace.model.replace(someone, NEW, core_policy="keep-extractor"),
        lambda: workspace.model.fit(records),
    ):  # fmt: skip
        with pytest.raises(NetworkMissing):
            act()
    assert workspace.model.plan([someone], core_policy="keep-extractor").refusal is None
    assert (workspace.model.model_hash_, workspace.model.content_hash_, contents(workspace.folder)) == before


def three_layers():
    return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 3))


def test_much_is_possible_without_the_network(tmp_path, records):
    """Forgetting, too, where nothing is embedded or trained."""

    folder = tmp_path / "workspace"
    with fixed_key(), Workspace.create(folder, fresh(HASHED, records, three_layers), records) as workspace:
        in_memory = as_in_memory(workspace, records)
    core, influential, free = kinds(in_memory)
    for ids in (free[:2], influential[:2], core[:2]):
        expected = in_memory.unlearn(ids, core_policy="keep-extractor")
        with Workspace.open(folder) as workspace:
            assert receipt_facts(workspace.model.unlearn(ids, core_policy="keep-extractor")) == receipt_facts(expected)
    with Workspace.open(folder) as workspace:
        check_without_network(workspace, records.without(np.concatenate([free[:2], influential[:2], core[:2]])))
        with pytest.raises(NetworkMissing):
            given(workspace, records).model.unlearn(core[2:3], core_policy="retrain")
    with Workspace.open(folder, network=three_layers) as workspace:
        assert model_facts(workspace.model, records) == model_facts(in_memory, records)
        given(workspace, records).model.unlearn(core[2:3], core_policy="retrain")
        in_memory.unlearn(core[2:3], core_policy="retrain")
        assert workspace.model.model_hash_ == in_memory.model_hash_


def test_the_callers_network_is_left_as_it_is(tmp_path, records):
    with Workspace.create(tmp_path / "workspace", fresh(Frozen(), records, wide()), records) as workspace:
        before = facts(workspace, records)
    mine = wide()
    for weights in mine.parameters():
        weights.data.zero_()
    with Workspace.open(tmp_path / "workspace", network=mine) as workspace:
        assert facts(workspace, records) == before
    assert not any(weights.any() for weights in mine.parameters())
    with Workspace.open(tmp_path / "workspace") as workspace:
        check_without_network(workspace, records)
    with pytest.raises(ValueError, match="other layers"):
        Workspace.open(tmp_path / "workspace", network=nn.Sequential(nn.Linear(5, 7).double()))


def test_a_frozen_extractor_stays_the_same_when_fitted_again(template, tmp_path):
    records, _ = cases()["frozen, words"]
    with Workspace.open(copied(template("frozen, words"), tmp_path / "workspace")) as workspace:
        before = workspace.model.model_hash_
        workspace.model.fit(records)
        assert workspace.model.model_hash_ == before


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
def test_even_if_it_has_fewer_outputs_than_there_are_classes(tmp_path, records):
    """`refit` put a network in its place that was drawn from the seed."""
    Workspace.create(tmp_path / "ws", MaxRR(MLP(5, 2), Frozen(), device="cpu"), records).close()
    with Workspace.open(tmp_path / "ws") as workspace:
        before = workspace.model.model_hash_
        assert given(workspace, records).model.refit().model_hash_ == before


@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # its weights are drawn
def test_what_a_model_has_forgotten_stays_so_in_the_workspace_that_is_made_of_it(tmp_path, records):
    ids = np.sort(records.ids)[::2]
    model = MaxRR.adopt(pretrained(), trained_on=ids, train=Recipe(epochs=1), device="cpu")
    model.fit(records).unlearn(ids[:1], core_policy="keep-extractor")
    retained = records.without(ids[:1])
    with Workspace.create(tmp_path / "own", model, retained) as workspace:
        assert workspace.status().core_left_in_extractor == 0
        with pytest.raises(DataError, match="not come back"):
            like(workspace, model).fit(records)


def test_features_that_came_later_are_kept_exactly(tmp_path, records):
    network = nn.Sequential(nn.Linear(5, 5, bias=False).double())
    network[0].weight.data.copy_(torch.eye(5))
    whole = Dataset(np.round(records.inputs * 4).astype(np.float64), records.labels, records.class_names, records.ids)
    with Workspace.create(tmp_path / "workspace", fresh(Frozen(), whole, network), whole) as workspace:
        workspace.model.replace(
            whole.ids[0].item(), np.full(5, 0.1), core_policy="keep-extractor"
        )  # which float32 has not
        before = facts(workspace, whole)
    assert reopened(tmp_path / "workspace", whole, network) == before


class Chosen:
    """A core of the caller's own making."""

    def choose(self, network, dataset, **options):
        return HASHED.choose(network, dataset, **options)


def test_a_core_of_the_callers_own(tmp_path, records):
    with Workspace.create(tmp_path / "workspace", fresh(Chosen(), records), records) as workspace:
        before = facts(workspace, records)
    with Workspace.open(tmp_path / "workspace") as workspace:
        assert facts(workspace, records) == before
        _, _, free = kinds(workspace.model)
        assert workspace.model.unlearn(free[:1]).guarantee == "exact-untouched"
        with pytest.raises(ValueError, match="core"):
            workspace.model.fit(records.without(free[:1]))
        like(workspace, fresh(Chosen(), records)).fit(records.without(free[:1]))
        assert workspace.status().records == 79


def test_digits(template, tmp_path):
    both = Both("digits", copied(template("digits"), tmp_path / "workspace"))
    core, influential, free = kinds(both.model)
    both.do("unlearn", free[:3])
    both.do("unlearn", influential[:3])
    both.do("replace", influential[4].item(), np.full((1, 8, 8), 7))
    both.do("unlearn", core[:3], core_policy="keep-extractor")


def test_status_says_what_is_held_and_why(workspace, records):
    core, influential, free = kinds(workspace.model)
    status = workspace.status()
    assert (status.records, status.core, status.influential, status.free) == (80, *map(len, (core, influential, free)))
    assert status.facts["kept of these"] == "nothing was forgotten yet"
    receipt = workspace.model.unlearn([core[0], influential[0], free[0]], core_policy="keep-extractor")
    status = workspace.status()
    assert (status.records, status.forgotten, status.requests, status.core_left_in_extractor) == (77, 3, 1, 1)
    assert "three HMACs" in status.facts["kept of these"]
    assert (status.model_hash, status.commitment) == (workspace.model.model_hash_, receipt.commitment_after)


def test_creating_where_something_is(folder, tmp_path, records):
    before = reopened(folder, records)
    with pytest.raises(WorkspaceError, match="there is a"):
        Workspace.create(folder, fresh(HASHED, records), records)
    assert reopened(folder, records) == before
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        Workspace.create(tmp_path / "file", fresh(HASHED, records), records)


MINE = (
    "notes.txt",
    "receipts/2023.json",
    "receipts/notes.txt",
    "ranking-7/thesis.tex",
    "rows-2024.bin",
    "heads-0123456789abcdef.safetensors",
    ".maxrr-mine.tmp",
    ".maxrr-0123456789abcdef.tmp.txt",
    "secrets-of-mine.json",
    "rows-2024-backup.bin",
    "heads-old.safetensors",
    "ranking-final/a.csv",
    "receipts.md",
)


def test_what_else_comes_into_the_folder_stays(folder, records):
    """Whatever it is called."""
    for name in MINE:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("mine")
    with Workspace.open(folder) as workspace:
        gone = kinds(workspace.model)[2][:1]
        workspace.model.unlearn(gone, core_policy="keep-extractor")
        workspace.model.fit(records.without(gone))
    Workspace.open(folder).close()
    assert {(folder / name).read_text() for name in MINE} == {"mine"}


def test_an_interrupted_ranking_goes_on_and_is_not_taken_for_another(template, tmp_path):
    def stop(*_, solved=0, **__):
        if solved:
            raise KeyboardInterrupt

    records, model = cases()["frequency"]
    folder = tmp_path / "workspace"
    with pytest.raises(KeyboardInterrupt):
        Workspace.create(folder, model, records, progress=stop)
    assert any("votes" in name for name in contents(folder))
    with pytest.raises(ValueError, match="with other C"):
        Workspace.create(folder, clone(model).set_params(C=0.2), records)
    with Workspace.create(folder, model, records) as workspace:
        found = workspace.model.model_hash_
    assert set(contents(folder)) == belongs(folder)
    with Workspace.open(template("frequency"), read_only=True) as workspace:
        assert workspace.model.model_hash_ == found


def test_a_network_by_name_or_by_function(tmp_path, records):
    for number, network in enumerate([NamedNetwork("maxrr.nets:MLP", (5, 3, (12,))), MLP(5, 3, hidden=(12,))]):
        folder = tmp_path / str(number)
        with Workspace.create(folder, MaxRR(network, HASHED, epochs=2, device="cpu"), records) as workspace:
            before = facts(workspace, records)
        assert reopened(folder, records) == before


def test_a_network_that_brings_other_weights_along_is_refused(tmp_path, records):
    """They would enter the next training as if they had been drawn."""

    def pretrained():
        network = three_layers()
        with torch.no_grad():
            network[0].weight.copy_(torch.arange(30.0).reshape(6, 5))
        return network

    folder = tmp_path / "workspace"
    Workspace.create(folder, fresh(HASHED, records, three_layers), records).close()
    with pytest.raises(WorkspaceError, match="brings along other"):
        Workspace.open(folder, network=pretrained)
    Workspace.open(folder, network=three_layers).close()


def test_what_a_model_has_forgotten_stays_forgotten_in_its_workspace(tmp_path, records):
    model = fresh(HASHED, records).fit(records)
    model.unlearn(records.ids[:2], core_policy="keep-extractor")
    with pytest.raises(ValueError, match="2 of the"):
        Workspace.create(tmp_path / "one", model, records)
    with Workspace.create(tmp_path / "two", model, records.without(records.ids[:2])) as workspace:
        assert workspace.status().forgotten == 2
        assert workspace.model.unlearn(records.ids[:1], core_policy="keep-extractor").already_forgotten == 1
    with Workspace.open(tmp_path / "two") as workspace:
        assert [receipt.number for receipt in workspace.receipts()] == [1]


def test_receipts_of_a_workspace_are_not_taken_for_those_of_the_model_that_it_was_made_of(tmp_path, records, here):
    """A replay called the first one false: it did not name the person whom the model's first receipt had named."""
    model = MaxRR.on_features().fit(records)
    person, other = np.unique(records.subjects)[:2].tolist()
    model.unlearn(subjects=[person])
    retained = records.without(records.ids[records.subjects == person])
    Workspace.create(tmp_path / "ws", model, retained).close()
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model.plan(subjects=[person]).already_forgotten == 1
        receipts = workspace.model.unlearn(retained.ids[:1]), workspace.model.unlearn(subjects=[other])
        assert workspace.model.has_forgotten(subjects=person)
        assert not any(receipt.number in workspace.find(subject=person).receipts for receipt in receipts)
        replays = [replay(receipt, workspace.model, retained) for receipt in receipts]
        assert [replayed.contradictions for replayed in replays] == [[], []]
        assert replays[-1].outcome == "identical"
        assert "receipt 2" in workspace.model.unlearn(subjects=[other]).reason


class OwnHash(HashCore):
    """Somebody's own."""


def test_a_core_of_somebodys_own_class_can_be_opened_again(tmp_path, records):
    Workspace.create(tmp_path / "ws", fresh(OwnHash(0.5, key="k"), records), records).close()
    with Workspace.open(tmp_path / "ws") as workspace:
        assert "code chose" in workspace.status().conditions[0]


def test_an_interruption_while_clearing_up_is_known(folder, records, monkeypatch):
    """The request is done; that something is left to erase is said, and the next opening does it."""
    with Workspace.open(folder) as workspace:
        free = kinds(workspace.model)[2][:1]

        def interrupt(*_):
            raise KeyboardInterrupt

        monkeypatch.setattr(workspace._store, "finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            workspace.model.unlearn(free)
        assert "old bytes" in workspace.unfinished
        assert workspace.status().requests == 1
    with Workspace.open(folder) as workspace:
        assert workspace.unfinished == ""
        assert workspace.status().requests == 1


def test_a_replay_refuses_records_that_the_model_never_had(workspace, records, here):
    gone = kinds(workspace)[2][:1]
    receipt = workspace.model.unlearn(gone)
    assert replay(receipt, workspace.model, records)  # a forgotten one is known
    stranger = records.select(records.ids[:1])
    stranger = replace(stranger, ids=np.array([records.ids.max() + 1]), inputs=stranger.inputs + 1)
    with pytest.raises(UnknownRecords, match="1 of the"):
        replay(receipt, workspace.model, records.join(stranger))


def test_parameters_that_were_changed_are_for_the_next_fit(workspace, records):
    """A request went on with those of the fit, and set them back without a word."""
    free = kinds(workspace.model)[2]
    workspace.model.set_params(C=0.123)
    with pytest.raises(WorkspaceError, match="of the model"):
        workspace.model.unlearn(free[:1])
    assert workspace.model.C == 0.123
    assert given(workspace, records).model.refit()._fitted.blueprint.C == 0.123
    workspace.model.unlearn(kinds(workspace.model)[2][:1])
