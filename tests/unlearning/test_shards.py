"""The core in shards: bytes are those of a fit without the records, and only extractors that saw them are trained.

`tests.unlearning.test_machine` asks the same after every step of requests that are drawn.
"""

import copy
import functools
import itertools
import warnings
from collections import Counter
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch

from maxrr.core import FrequencyCore, FullCore, HashCore, MiddleCore
from maxrr.core.choice import Choice
from maxrr.core.shards import Sharding, UntrainedShardsWarning, sharding_of
from maxrr.data import Dataset
from maxrr.errors import DataError, Refused
from maxrr.nets import MLP
from maxrr.unlearning import Bundle, MaxRR, replay
from maxrr.unlearning import blueprint as blueprint_module
from tests.cases import some, thinned
from tests.unlearning import trainings
from tests.unlearning.problems import (
    FIRST_ID,
    core_of,
    decided_by,
    everything,
    fit_again,
    fresh,
    joined,
    key_of,
    parts,
    parts_of,
    seed_of,
    shard_of,
    table,
    train_again,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # of few records
QUICK = {"epochs": 2, "batch_size": 16}
NEW = np.random.default_rng(3).normal(size=(9, 5)).astype(np.float32)
KINDS = ("hash", "full", "middle")
CASES = some(4, [("hash", 4), ("full", 2), ("middle", 4), ("hash", 1), ("full", 1), ("middle", 2), ("full", 4)])


def core(kind, shards):
    return {
        "hash": HashCore(0.5, key="house", shards=shards, by="record"),
        "full": FullCore(shards, key="house"),
        "middle": MiddleCore(40, runs=2, shards=shards),
    }[kind]


@functools.cache
def fitted(kind, shards):
    return fresh(core(kind, shards), table(), **QUICK).fit(table())


def model_of(kind, shards):
    return copy.deepcopy(fitted(kind, shards))


def in_shard(model, shard):
    """Its core records, by the rule written out."""
    rule = model.core
    core = core_of(model)
    names = decided_by(rule, model._fitted.records.retained(), core)
    return np.array(
        [id_ for id_, name in zip(core, names, strict=True) if shard_of(name, key_of(rule), rule.shards) == shard]
    )


def never_saw(kind, shards, records, core_ids):
    """A new model, fitted on these records; a ranked core is given."""
    choice = Choice(np.sort(core_ids), False, "given", {"kind": "given", "k": len(core_ids)})
    given = mock.patch.object(MiddleCore, "choose", return_value=choice)
    with given, warnings.catch_warnings():
        warnings.simplefilter("ignore", UntrainedShardsWarning)
        return fresh(core(kind, shards), records, **QUICK).fit(records)


# Bytes


@pytest.mark.parametrize(("kind", "shards"), CASES)
def test_a_fit_trains_each_shard_alone_and_one_head_per_class_on_their_features_in_a_row(kind, shards):
    model = model_of(kind, shards)
    extractor = train_again(model, table(), core_of(model))
    assert parts_of(model) == parts(extractor, fit_again(extractor, table()), table().class_names)


@pytest.mark.parametrize("strings", [False, True])
def test_which_shard_and_which_seed(strings):
    ids = table(strings=strings).ids
    for count in (2, 3, 4, 7):
        sharding = Sharding(count, b"house")
        assert sharding.of(ids).tolist() == [shard_of(id_, b"house", count) for id_ in ids.tolist()]
        assert sharding.seed(5, 1) == seed_of(5, 1)
    assert Sharding().of(ids).tolist() == [0] * len(ids)
    assert Sharding().seed(5, 0) == 5


@pytest.mark.parametrize("seed", [0, 5, 2**70])
def test_seeds_are_all_different_and_such_as_numpy_takes(seed):
    seeds = [Sharding(3_000).seed(seed, shard) for shard in range(3_000)]
    assert len(set(seeds)) == 3_000
    assert 0 <= min(seeds) <= max(seeds) < 2**32


class Story:
    """A model that was asked for all sorts of things, and the records that it should know now."""

    def __init__(self, kind, shards, seed):
        self.kind, self.shards = kind, shards
        self.model, self.records = model_of(kind, shards), table()
        self.random, self.later = np.random.default_rng([seed, shards]), itertools.count(1)
        self.new = iter(np.random.default_rng(seed).normal(size=(20, 5)).astype(np.float32))
        self.asked = []

    def draw(self, what, count):
        fitted, core_ids = self.model._fitted, core_of(self.model)
        shaping = fitted.records.ids[fitted.heads.support_]
        others = np.setdiff1d(self.records.ids, core_ids)
        influential, free = np.intersect1d(others, shaping), np.setdiff1d(others, shaping)
        found = {"core": core_ids, "influential": influential, "free": free}[what]
        return self.random.choice(found, min(count, len(found)), replace=False)

    def tell(self, step):
        self.asked.append(step)
        getattr(self, step)()

    def forget(self, ids, **how):
        if len(ids):
            self.model.unlearn(ids, **how)
            self.records = self.records.without(ids)

    def retrain(self):
        self.forget(np.concatenate([self.draw("core", 2), self.draw("free", 1)]), core_policy="retrain")

    def keep(self):
        self.forget(self.draw("core", 1), core_policy="keep-extractor")

    def person(self):
        whose = self.random.choice(self.records.subjects)
        self.model.unlearn(subjects=[whose], core_policy="retrain")
        self.records = self.records.without(self.records.ids[self.records.subjects == whose])

    def influential(self):
        self.forget(self.draw("influential", 1))

    def rectify(self):
        """Under either policy; a ranked core has the new record not before the next fit."""
        policy = "retrain" if self.random.random() < 0.5 else "keep-extractor"
        (id_,), inputs = self.draw("core", 1), next(self.new)
        self.model.replace(id_, inputs, core_policy=policy)
        contents = np.array(self.records.inputs)
        contents[self.records.ids == id_] = inputs
        self.records = replace(self.records, inputs=contents)

    def more(self):
        """Records that are not core by the rule: one that is would wait for the next fit."""
        rule = getattr(self.model.core, "is_core", lambda ids: np.zeros(len(ids), dtype=bool))
        ids = (FIRST_ID + 7 * k + 5_000 for k in self.later)
        if self.kind == "full":
            return
        id_ = next(id_ for id_ in ids if not rule(np.array([id_]))[0])
        new = Dataset(next(self.new)[None], [0], self.records.class_names, [id_], [999])
        self.model.add(new)
        self.records = joined(self.records, new)

    def end(self):
        """All that stays in extractors goes: whatever came before, the model is one that never knew the records."""
        self.retrain()
        core_ids = core_of(self.model)
        assert not self.model._fitted.in_extractor
        assert not self.model._fitted.stale
        return never_saw(self.kind, self.shards, self.records, core_ids)


STEPS = ("retrain", "keep", "person", "influential", "rectify", "more")


@pytest.mark.parametrize("seed", some(1, range(8)))
@pytest.mark.parametrize(("kind", "shards"), CASES)
def test_whatever_was_asked_before_a_retrained_model_is_one_that_never_saw_the_records(kind, shards, seed):
    story = Story(kind, shards, seed)
    for step in np.random.default_rng([seed, shards, KINDS.index(kind)]).permutation(STEPS)[:4]:
        story.tell(step)
    never = story.end()
    assert parts_of(story.model) == parts_of(never), story.asked
    assert story.model.content_hash_ == never.content_hash_ == story.records.content_hash()
    assert story.model.predict_proba(table()).tobytes() == never.predict_proba(table()).tobytes()


@pytest.mark.filterwarnings("ignore::maxrr.core.shards.UntrainedShardsWarning")  # by some orders sooner than by others
@pytest.mark.parametrize(("kind", "shards"), some(2, [("hash", 4), ("middle", 4), ("full", 2)]))
def test_any_order_and_grouping_ends_in_the_same_bytes(kind, shards):
    ids = np.random.default_rng(2).permutation(np.concatenate([core_of(fitted(kind, shards))[:4], table().ids[:2]]))
    ids, ends = np.unique(ids), []
    for order, groups in ((ids, 1), (ids[::-1], 3), (np.roll(ids, 4), len(ids))):
        model = model_of(kind, shards)
        for group in np.array_split(order, groups):
            model.unlearn(group, core_policy="retrain")
        ends.append(everything(model))
    assert ends[0] == ends[1] == ends[2]


def test_a_training_function_of_ones_own_sees_one_shard_at_a_time():
    """The bytes are those of calling it by hand."""

    def new(rule, seed=5):
        return MaxRR(MLP(5, 3, hidden=(12,)), rule, train=trainings.by_adamw, seed=seed, device="cpu")

    model = new(core("hash", 2)).fit(table())
    for shard, part in enumerate(model.extractor_.parts):
        alone = new(FullCore(), seed_of(5, shard)).fit(table().select(in_shard(model, shard))).extractor_.state_dict()
        assert all(torch.equal(alone[name], weights) for name, weights in part.state_dict().items())
    ids = in_shard(model, 1)[:2]
    model.unlearn(ids, core_policy="retrain")
    assert parts_of(model) == parts_of(new(core("hash", 2)).fit(table().without(ids)))


@pytest.mark.filterwarnings("error")
def test_a_training_function_may_seed_numpy():
    """Also when it is tried out twice, whatever the seed of the model."""
    network, rule = MLP(5, 3, hidden=(12,)), core("hash", 4)
    model = MaxRR(network, rule, train=trainings.by_seeding_numpy, device="cpu", seed=2**40).fit(table())
    ids = in_shard(model, 1)[:1]
    assert model.unlearn(ids, core_policy="retrain").guarantee == "exact-retrain"


def relabelled(records, id_, inputs, label):
    """The records with another in the place of one."""
    contents, labels = np.array(records.inputs), records.labels.copy()
    contents[records.ids == id_], labels[records.ids == id_] = inputs, label
    return replace(records, inputs=contents, labels=labels)


def with_outputs(kind, shards, records, outputs):
    """A new model, whose network is made for so many classes, fitted on these records."""
    return fresh(core(kind, shards), records, MLP(5, outputs, hidden=(12,)), **QUICK).fit(records)


@pytest.mark.parametrize(("kind", "shards"), some(2, [("hash", 4), ("full", 1), ("hash", 1), ("full", 4)]))
def test_a_class_that_goes_record_by_record_is_as_in_a_fit_before_and_after_another_fit(kind, shards):
    model = model_of(kind, shards)
    networks = [3] if shards == 1 else [2, 3, 5]
    leaving = np.intersect1d(table().ids[table().labels == 1], core_of(model))
    others = np.setdiff1d(table().ids[table().labels == 1], leaving[:4])
    model.unlearn(others, core_policy="retrain")
    records = table().without(others)
    for id_, inputs in zip(leaving[:4].tolist(), NEW, strict=False):
        model.replace(id_, inputs, "kind 0", core_policy="retrain")
        records = relabelled(records, id_, inputs, 0)
    for outputs in networks:
        assert parts_of(model) == parts_of(with_outputs(kind, shards, records, outputs))
    model.refit()
    for outputs in networks:
        assert parts_of(model) == parts_of(with_outputs(kind, shards, records, outputs))


# Work


class Worked:
    """What is trained on and embedded, in records, by extractor."""

    def __init__(self, patch):
        self.trained, self.embedded = Counter(), Counter()
        train_apart, embed = blueprint_module.train_apart, blueprint_module.embed

        def training(network, dataset, rows, *rest, **options):
            self.trained.update({seed: len(which) for seed, which in rows.items()})
            return train_apart(network, dataset, rows, *rest, **options)

        def embedding(extractor, dataset, **options):
            whole = type(extractor).__name__ == "SideBySide"
            self.embedded["whole" if whole else "parts"] += len(dataset)
            return embed(extractor, dataset, **options)

        patch.setattr(blueprint_module, "train_apart", training)
        patch.setattr(blueprint_module, "embed", embedding)


@pytest.mark.parametrize(("kind", "touched"), thinned(2, itertools.product(KINDS, [(2,), (0, 3)])))
def test_only_extractors_that_saw_the_records_are_trained_and_only_their_features_computed(kind, touched, monkeypatch):
    model = model_of(kind, 4)
    ids = np.concatenate([in_shard(model, shard)[:1] for shard in touched])
    left = {shard: len(in_shard(model, shard)) - 1 for shard in touched}
    before = [{n: v.clone() for n, v in part.state_dict().items()} for part in model.extractor_.parts]
    features = model._fitted.heads._features_of(model._fitted.records.rows(table().without(ids).ids))
    plan = model.plan(ids, core_policy="retrain")
    worked = Worked(monkeypatch)
    model.execute(plan)
    assert worked.trained == {seed_of(model.seed, shard): count for shard, count in left.items()}
    assert (plan.extractors, plan.trains) == (len(touched), sum(left.values()))
    assert f"{len(touched)} of 4 extractors {'is' if len(touched) == 1 else 'are'} trained again" in plan.reason
    retained = table().without(ids)
    assert worked.embedded == {"parts": len(touched) * len(retained)}
    assert plan.embeds == len(retained)
    after = model._fitted.heads._features_of(model._fitted.records.rows(retained.ids))
    for shard, (old, new) in enumerate(zip(before, model.extractor_.parts, strict=True)):
        same = all(torch.equal(old[name], value) for name, value in new.state_dict().items())
        block = slice(12 * shard, 12 * shard + 12)
        assert same == np.array_equal(features[:, block], after[:, block]) == (shard not in touched)


def test_extractors_that_kept_others_are_trained_too_and_the_plan_says_so(monkeypatch):
    model = model_of("hash", 4)
    kept, asked = in_shard(model, 1)[:1], in_shard(model, 3)[:1]
    model.unlearn(kept, core_policy="keep-extractor")
    assert model._fitted.stale == {1}
    plan = model.plan(asked, core_policy="retrain")
    assert plan.extractors == 2
    assert "2 of 4" in plan.reason
    worked = Worked(monkeypatch)
    model.execute(plan)
    assert set(worked.trained) == {seed_of(model.seed, shard) for shard in (1, 3)}
    assert sum(worked.trained.values()) == plan.trains
    assert model._fitted.stale == frozenset()


def test_a_record_that_is_forgotten_and_left_is_asked_for_again(monkeypatch):
    model = model_of("hash", 4)
    kept = in_shard(model, 2)[:1]
    model.unlearn(kept, core_policy="keep-extractor")
    plan = model.plan(kept, core_policy="retrain")
    assert (plan.guarantee, plan.extractors) == ("exact-retrain", 1)
    worked = Worked(monkeypatch)
    model.execute(plan)
    assert set(worked.trained) == {seed_of(model.seed, 2)}
    assert parts_of(model) == parts_of(never_saw("hash", 4, table().without(kept), []))


def test_a_technique_is_refused_where_there_are_several_extractors():
    model = model_of("hash", 4)
    plan = model.plan(in_shard(model, 0)[:2], core_policy=lambda extractor, *_: extractor)
    assert (plan.action, [other.guarantee for other in plan.alternatives]) == (
        "refuse", ["exact-retrain", "approximate-refit"],
    )  # fmt: skip


def test_an_extractor_in_a_type_that_numpy_lacks_is_refused():
    model = model_of("hash", 1)
    before = everything(model)
    with pytest.raises(ValueError, match="other layers"):
        model.unlearn(core_of(model)[:1], core_policy=lambda extractor, *_: extractor.bfloat16())
    assert everything(model) == before


# What is said meanwhile


@pytest.mark.parametrize("train", [trainings.by_adamw, None])
def test_progress_of_shards_that_differ_in_size_ends_at_all_of_them(train):
    model, said = MaxRR(MLP(5, 3, hidden=(12,)), core("hash", 4), train=train, device="cpu"), []
    model.fit(table(), progress=lambda what, done, total, **_: said.append((what, done, total)))
    done, total = [(done, total) for what, done, total in said if what == "training 4 networks"][-1]
    assert len({len(in_shard(model, shard)) for shard in range(4)}) > 1
    assert done == total == len(core_of(model)) * (1 if train else 18)


def told(work):
    """How often some work says that networks are trained one at a time."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        work()
    return sum("trained one at a time" in str(warning.message) for warning in said)


@pytest.mark.parametrize(
    "core", [HashCore(0.5, key="house", shards=4), FullCore(16, key="house"), MiddleCore(40, runs=2, shards=4)]
)
def test_that_networks_with_dropout_are_trained_one_at_a_time_is_said_once_and_by_fits_alone(core):
    network = torch.nn.Sequential(
        torch.nn.Linear(5, 12), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(12, 3)
    )
    model = fresh(core, table(), network, **QUICK)
    assert told(lambda: model.fit(table())) == 1
    assert told(lambda: model.unlearn(core_of(model)[:6], core_policy="retrain")) == 0
    assert told(model.refit) == 1


# Shards with too little in them


def test_a_shard_without_two_classes_keeps_its_first_weights_and_fit_says_so():
    small = table(24)
    with pytest.warns(UntrainedShardsWarning, match="16 shards") as seen:
        model = fresh(core("hash", 16), small, **QUICK).fit(small)
    assert [str(warning.filename) for warning in seen] == [__file__]
    extractor = train_again(model, small, core_of(model))
    assert parts_of(model) == parts(extractor, fit_again(extractor, small), small.class_names)


@pytest.mark.parametrize("what", ["empty", "of one class"])
def test_a_shard_that_loses_its_records_is_planned_and_is_what_a_fit_gives(what):
    model = model_of("hash", 4)
    mine = in_shard(model, 1)
    labels = table().labels[table().rows(mine)]
    ids = mine if what == "empty" else mine[labels != labels[0]]
    plan = model.plan(ids, core_policy="retrain")
    assert "two classes" in plan.reason
    assert (plan.extractors, plan.trains, plan.guarantee) == (1, 0, "exact-retrain")
    with pytest.warns(UntrainedShardsWarning, match="1 of the") as seen:
        receipt = model.execute(plan)
    assert [str(warning.filename) for warning in seen] == [__file__]
    assert receipt.unconditional
    assert receipt.reason == plan.reason
    retained = table().without(ids)
    assert parts_of(model) == parts_of(never_saw("hash", 4, retained, []))
    model.unlearn(in_shard(model, 2)[:1], core_policy="retrain")  # and goes on, without saying it again
    for id_ in in_shard(model, 1)[:1]:
        model.unlearn([id_], core_policy="retrain")


def test_a_shard_that_has_records_again_is_trained_and_one_may_lose_them_twice():
    """A record that is replaced brings a second class back."""
    model = model_of("hash", 4)
    mine = in_shard(model, 1)
    labels = table().labels[table().rows(mine)]
    with pytest.warns(UntrainedShardsWarning):
        model.unlearn(mine[labels != labels[0]], core_policy="retrain")
    id_ = mine[labels == labels[0]][0]
    assert model._fitted.untrained == {1}
    model.replace(id_, NEW[0], f"kind {(labels[0] + 1) % 3}", core_policy="retrain")
    assert model._fitted.untrained == frozenset()
    with pytest.warns(UntrainedShardsWarning):
        model.unlearn([id_], core_policy="retrain")


def test_a_class_that_goes_altogether():
    ids = table().ids[table().labels == 1]
    model = model_of("hash", 4)
    model.unlearn(ids, core_policy="retrain")
    assert parts_of(model) == parts_of(never_saw("hash", 4, table().without(ids), []))


def test_a_core_of_one_class_is_refused_as_without_shards():
    model = model_of("hash", 4)
    labels = table().labels[table().rows(core_of(model))]
    before = everything(model)
    with pytest.raises(Refused, match="two classes"):
        model.unlearn(core_of(model)[labels != 0], core_policy="retrain")
    assert everything(model) == before


# What is refused


@pytest.mark.parametrize(
    "made",
    [
        lambda shards: HashCore(0.5, key="house", shards=shards, by="record"),
        lambda shards: FullCore(shards=shards),
        lambda shards: MiddleCore(40, shards=shards),
        lambda shards: FrequencyCore(40, shards=shards),
    ],
)
@pytest.mark.parametrize("shards", [0, -1, "4", 2.5, None])
def test_what_is_no_number_of_shards(made, shards):
    with pytest.raises(ValueError, match="whole number"):
        made(shards)


def test_a_network_from_elsewhere_is_one_extractor():
    with pytest.raises(DataError, match="shard, not 3"):
        MaxRR.adopt(MLP(5, 3), core("hash", 3), trained_on=[1, 2], train=trainings.by_adamw)


class Odd(HashCore):
    """A caller's own core."""


def test_a_core_of_ones_own_is_one_shard():
    with pytest.raises(DataError, match="of this library"):
        fresh(Odd(0.5, key="house", shards=2), table(), **QUICK).fit(table())
    assert fresh(Odd(0.5, key="house"), table(), **QUICK).fit(table())


# Bundles and replays


def test_a_bundle_knows_the_shards_and_a_replay_says_identical(here, tmp_path):
    model = model_of("hash", 4)
    kept, gone = in_shard(model, 1)[:1], in_shard(model, 3)[:2]
    receipt = model.unlearn(kept, core_policy="keep-extractor")
    model.bundle().save(tmp_path / "left.bundle")
    left = Bundle.load(tmp_path / "left.bundle")
    assert left.facts.stale == {1}
    assert replay(receipt, left, table().without(kept)).outcome == "identical in part"
    receipt = model.unlearn(gone, core_policy="retrain")
    model.bundle().save(tmp_path / "model.bundle")
    bundle = Bundle.load(tmp_path / "model.bundle")
    assert (bundle.facts.model_hash, bundle.facts.stale) == (model.model_hash_, frozenset())
    assert bundle.blueprint.sharding == sharding_of(model.core)
    replayed = replay(receipt, bundle, table().without([*kept, *gone]))
    assert (replayed.outcome, replayed.made_again) == ("identical", "extractor and heads")
    assert receipt.core_details == {"kind": "hash", "fraction": 0.5, "by": "record", "shards": 4}


@pytest.mark.parametrize("kind", KINDS)
def test_of_one_shard_nothing_is_said_but_that_there_is_one(kind, tmp_path):
    model = model_of(kind, 1)
    receipt = model.unlearn(core_of(model)[:1], core_policy="keep-extractor")
    model.bundle().save(tmp_path / "model.bundle")
    bundle = Bundle.load(tmp_path / "model.bundle")
    assert (bundle.facts.shards, bundle.facts.stale, bundle.facts.untrained) == (1, frozenset(), frozenset())
    assert not any("parts." in name for name in bundle.extractor)
    assert "shard" not in receipt.to_json()
