"""Every kind of request under every policy in every state: what the plan says is what is done, counted as it is done.

What is exact is compared with training and fitting without the records, bytes equal.
"""

import copy
import functools
import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from maxrr.errors import NotHere, Refused
from maxrr.svm import heads
from maxrr.unlearning import Action, Guarantee
from maxrr.unlearning import blueprint as blueprint_module
from tests.cases import some, stride, thinned
from tests.unlearning.problems import (
    CORES,
    core_of,
    everything,
    fit_again,
    parts,
    parts_of,
    table,
    table_model,
    train_again,
)  # fmt: skip

POLICIES = ("refuse", "retrain", "keep-extractor", "technique")
NEW = np.random.default_rng(3).normal(size=5).astype(np.float32)


def halved(extractor, *_):
    """A technique: the same layers with other weights."""
    for weights in extractor.parameters():
        weights.data *= 0.5
    return extractor


def kinds(model):
    """Ids of records that are there: core ones, influential ones that are not core, and free ones, in order."""
    fitted = model._fitted
    alive, ids = fitted.records.alive, fitted.records.ids
    influential = np.isin(np.arange(len(ids)), fitted.heads.support_)
    groups = fitted.core & alive, influential & ~fitted.core & alive, ~influential & ~fitted.core & alive
    return [np.sort(ids[group]) for group in groups]


STATES = {
    "fresh": (),
    "left in the extractor": ("left",),
    "a technique's extractor": ("technique",),
    "frozen": ("frozen",),
}


@functools.cache
def prepared(state):
    """A model in a state, its records, and ids that were forgotten, left in the extractor, replaced and left in it."""
    steps = STATES[state]
    model = table_model("frozen" if "frozen" in steps else "hash")
    core, _, free = kinds(model)
    records, left, replaced = table(), core[:0], core[:0]
    model.unlearn(free[:1])
    if "left" in steps:
        left, replaced = core[:2], core[2:3]
        model.unlearn(left, core_policy="keep-extractor")
        model.replace(replaced[0], -NEW, core_policy="keep-extractor")
        records = with_replaced(records, replaced[0], -NEW)
    if "technique" in steps:
        left = core[:2]
        model.unlearn(left, core_policy=halved)
    gone = np.concatenate([free[:1], left])
    return model, records.without(gone), free[:1], left, replaced


def with_replaced(records, id_, features):
    contents = np.array(records.inputs)
    contents[records.ids == id_] = features
    return replace(records, inputs=contents)


def requests(state):
    """What is asked for: ids, by a name for their kind."""
    model, records, forgotten, left, replaced = prepared(state)
    core, influential, free = (np.setdiff1d(ids, replaced) for ids in kinds(model))
    shaping = model._fitted.records.ids[model.heads_.support_]
    asked = {
        "core": np.intersect1d(core, shaping)[:2], "core that shapes no head": np.setdiff1d(core, shaping)[:2],
        "influential": influential[:2], "free": free[:2], "mixed": [*core[:1], *influential[:1], *free[:1]],
        "influential and free": [*influential[:2], *free[:1]], "forgotten": forgotten,
        "forgotten, and influential": [*forgotten, *influential[:1]] if len(influential) else [],
        "left": left, "left, and free": [*left, *free[:1]] if len(left) else [],
        "left, and core": [*left, *core[:1]] if len(left) else [],
        "replaced": replaced, "a class": records.ids[records.labels == 1], "all core": core,
        "unknown": [3], "unknown and core": [3, *core[:1]],
        "all but a class": records.ids[records.labels != 1], "all": records.ids,
    }  # fmt: skip
    return {name: np.array(ids) for name, ids in asked.items() if len(ids)} | {"none": np.zeros(0, np.int64)}


class Counted:
    """What is trained, embedded and solved."""

    def __init__(self, patch):
        self.did = Counter()
        self.count(patch, blueprint_module, "train", "trains", lambda network, core, *_: len(core))
        self.count(patch, blueprint_module, "embed", "embeds", lambda net, given: len(given))
        self.count(patch, heads, "pieces", "moved", lambda _, heads: len(heads))
        self.count(patch, heads, "from_scratch", "scratch", lambda samples, classes, *_: len(classes))

    def count(self, patch, module, name, what, number):
        inner = getattr(module, name)

        def counting(*args, **kwargs):
            self.did[what] += number(*args)
            return inner(*args, **kwargs)

        patch.setattr(module, name, counting)


@pytest.fixture
def did(monkeypatch):
    return Counted(monkeypatch).did


EXTRACTORS = {}


def trained_on(model, records):
    """The extractor that training on the core of these records gives, whatever was there before."""
    core = np.sort(records.ids[CORES["hash"].is_core(records.ids, records.subjects)])
    known = records.select(core).content_hash()
    if known not in EXTRACTORS:
        EXTRACTORS[known] = train_again(model, records, core)
    return EXTRACTORS[known]


def check(model, plan, act, retained, did):
    """Carry out the plan's request, and compare."""
    before, extractor = everything(model), model.extractor_
    classes = len(model.classes_)
    did.clear()
    if plan.refusal:
        with pytest.raises(NotHere if plan.unknown else Refused) as caught:
            act()
        assert str(caught.value) == plan.refusal
        assert caught.value.plans == plan.alternatives
        assert (everything(model), +did) == (before, Counter())
        assert (plan.action, plan.guarantee, plan.trains, plan.embeds, plan.heads, plan.seconds) == (
            Action.refuse, None, 0, 0, 0, 0.0,
        )  # fmt: skip
        return
    receipt = act()
    work = dict(did)
    assert (receipt.guarantee, receipt.reason, receipt.conditions) == (plan.guarantee, plan.reason, plan.conditions)
    counts = ("requested", "core", "influential", "free", "already_forgotten", "duplicates_left")
    assert [getattr(receipt, name) for name in counts] == [getattr(plan, name) for name in counts]
    assert (work.get("trains", 0), work.get("embeds", 0)) == (plan.trains, plan.embeds)
    assert model.content_hash_ == retained.content_hash()
    check_heads(plan, work, len(model.classes_) == classes, len(model.heads_.coef_))
    names = table().class_names
    if plan.action is Action.nothing:
        assert parts_of(model) == before[0]
    else:
        if plan.action is Action.retrain:
            extractor = trained_on(model, retained)
        if plan.action is Action.technique:
            extractor = halved(extractor, None, None)
        assert parts_of(model) == parts(extractor, fit_again(extractor, retained), names)
    if receipt.unconditional:
        assert receipt.core_left_in_extractor == 0
        naive = trained_on(model, retained)
        assert parts_of(model) == parts(naive, fit_again(naive, retained), names)


def check_heads(plan, work, same_classes, count):
    """How many heads are solved from scratch, and how many move from where they were."""
    scratch, moved = work.get("scratch", 0), work.get("moved", 0)
    if plan.action.fits_anew:
        assert (scratch, moved, plan.heads) == (count, 0, count)
    elif plan.added:
        assert (scratch, plan.heads) == (0, count)
        assert moved <= count
    elif same_classes:  # a class that goes takes its head along
        assert scratch + moved == plan.heads  # without much of what is inside it a head is solved from scratch
        assert scratch == 0 or plan.requested > 8  # a tenth of the records
    else:
        assert scratch + moved <= plan.heads


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("state", some(3, list(STATES)))
def test_forgetting_does_what_the_plan_says(state, policy, did):
    chosen = halved if policy == "technique" else policy
    step = stride(2)  # under the next policy the others
    for ids in list(requests(state).values())[POLICIES.index(policy) % step :: step]:
        model, records, *_ = copy.deepcopy(prepared(state))
        did.clear()
        plan = model.plan(ids, core_policy=chosen)
        assert not did  # planning trains, embeds and solves nothing
        retained = records.without(np.intersect1d(ids, records.ids)) if not plan.refusal else None
        check(model, plan, lambda model=model, plan=plan: model.execute(plan), retained, did)


@pytest.mark.parametrize(("state", "policy"), thinned(3, itertools.product(some(3, list(STATES)), POLICIES)))
def test_replacing_does_what_the_plan_says(state, policy, did):
    chosen = halved if policy == "technique" else policy
    for name in ("core", "core that shapes no head", "influential", "free", "replaced", "unknown"):
        if name in requests(state):
            id_ = requests(state)[name][0].item()
            model, records, *_ = copy.deepcopy(prepared(state))
            plan = model.plan(id_, inputs=NEW, core_policy=chosen)
            retained = with_replaced(records, id_, NEW)
            check(model, plan, lambda model=model, plan=plan: model.execute(plan), retained, did)


LINES = """
    fresh                   core                     refuse         refuse          -
    fresh                   core                     retrain        train-extractor exact-retrain
    fresh                   core                     keep-extractor move-heads      approximate-refit
    fresh                   core                     technique      technique       approximate-refit
    fresh                   core that shapes no head keep-extractor erase           approximate-refit
    fresh                   influential              refuse         move-heads      exact-refit
    fresh                   influential              technique      move-heads      exact-refit
    fresh                   influential              retrain        move-heads      exact-refit
    fresh                   free                     refuse         erase           exact-untouched
    fresh                   free                     retrain        erase           exact-untouched
    fresh                   mixed                    keep-extractor move-heads      approximate-refit
    fresh                   forgotten                retrain        nothing         exact-untouched
    fresh                   a class                  retrain        train-extractor exact-retrain
    fresh                   a class                  keep-extractor move-heads      approximate-refit
    fresh                   all core                 retrain        refuse          -
    fresh                   unknown                  retrain        refuse          -
    fresh                   none                     retrain        refuse          -
    fresh                   all                      keep-extractor refuse          -
    fresh                   all but a class          retrain        refuse          -
    left in the extractor   left                     refuse         nothing         approximate-refit
    left in the extractor   left                     retrain        train-extractor exact-retrain
    left in the extractor   left                     technique      nothing         approximate-refit
    left in the extractor   replaced                 retrain        train-extractor exact-retrain
    left in the extractor   free                     refuse         erase           exact-untouched
    left in the extractor   influential              refuse         move-heads      exact-refit
    left in the extractor   left, and free           refuse         erase           approximate-refit
    a technique's extractor influential              refuse         move-heads      exact-refit
    a technique's extractor left                     retrain        train-extractor exact-retrain
    frozen                  influential              refuse         move-heads      exact-refit
    frozen                  free                     retrain        erase           exact-untouched
    frozen                  a class                  refuse         move-heads      exact-refit
"""


@pytest.mark.parametrize("line", [line.strip() for line in LINES.strip().splitlines()])
def test_the_table(line):
    state = next(name for name in sorted(STATES, key=len, reverse=True) if line.startswith(name))
    rest = line.removeprefix(state).strip()
    kind = next(name for name in sorted(requests(state), key=len, reverse=True) if rest.startswith(name))
    policy, action, guarantee = rest.removeprefix(kind).split()
    chosen = halved if policy == "technique" else policy
    plan = prepared(state)[0].plan(requests(state)[kind], core_policy=chosen)
    assert (plan.action.value, "-" if plan.guarantee is None else plan.guarantee.value) == (action, guarantee)


def test_every_action_and_guarantee_is_met():
    met = {(line.split()[-2], line.split()[-1]) for line in LINES.strip().splitlines()}
    assert {action for action, _ in met} == {action.value for action in Action}
    assert {guarantee for _, guarantee in met} == {guarantee.value for guarantee in Guarantee} | {"-"}
    core, influential, free = kinds(table_model())
    for id_ in (influential[0], free[0]):
        assert table_model().plan(id_, inputs=NEW).action is Action.move
    assert core_of(table_model()).tolist() == core.tolist()
