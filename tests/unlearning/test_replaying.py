"""Replays: what they answer, and what they cannot be talked into."""

import functools
import subprocess
import sys
from dataclasses import asdict, replace

import numpy as np
import pytest

from maxrr.data import DataError
from maxrr.errors import UnknownRecords
from maxrr.nets.seeding import begin
from maxrr.svm.certificate import EXACT, FORM
from maxrr.unlearning import Outcome, replay, replaying
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.commitment import ExtractorHash, class_hmac, keyed_hash
from maxrr.unlearning.receipts import HeadCertificate, claim_of
from maxrr.unlearning.replaying import INTERCEPTS, WEIGHTS, compared
from tests.unlearning.problems import core_of, kinds, table, table_model, weights_changed


@functools.cache
def retrained():
    """A request that made the extractor train again: receipt, bundle, retained records."""
    model = table_model()
    ids = np.concatenate([core_of(model)[:2], kinds(model, table())[1][:2]])
    return model.unlearn(ids, core_policy="retrain"), model.bundle(), table().without(ids)


def told(bundle, **facts):
    """The bundle as if other facts were so."""
    return replace(bundle, facts=replace(bundle.facts, **facts))


def hashed_again(bundle):
    """The bundle with the hash of the weights that it has: as a forger would hand it in."""
    hash_ = ExtractorHash(bundle.facts.layers, bundle.extractor).with_heads(
        bundle.classes, bundle.weights, bundle.intercepts
    )
    return told(bundle, model_hash=hash_)


def handed_in(receipt, bundle, **changes):
    """A receipt that says of the model what the bundle does, and a bundle that says it was handed out: by a forger."""
    heads = bundle.classes if len(bundle.classes) > 2 else bundle.classes[1:]
    said = {
        "model_after": keyed_hash(bundle.key, b"model", bundle.facts.model_hash),
        "heads": [
            HeadCertificate.of(class_hmac(bundle.key, name), head.certificate)
            for name, head in zip(heads, bundle.facts.heads, strict=True)
        ],
        "environment": asdict(bundle.blueprint.environment), "seed": bundle.blueprint.seed,
    }  # fmt: skip
    said["bytes_claim"] = claim_of(receipt.guarantee, said["heads"])
    forged = replace(receipt, **{**said, **changes})
    return forged, replace(bundle, receipts=(*bundle.receipts[:-1], forged.digest))


def replay_handed_in(receipt, bundle, retained, **changes):
    return replay(*handed_in(receipt, bundle, **changes), retained)


def elsewhere(bundle, **change):
    """The bundle of a model that was made on another machine."""
    environment = replace(bundle.blueprint.environment, **(change or {"torch_version": "1.0"}))
    return replace(bundle, blueprint=replace(bundle.blueprint, environment=environment))


def test_identical(here):
    receipt, bundle, retained = retrained()
    replayed = replay(receipt, bundle, retained)
    assert (replayed.outcome, replayed.comparison) == ("identical", "identical")
    assert replayed.made_again == "extractor and heads"
    assert replayed
    assert (replayed.differs_most, replayed.largest_difference, replayed.not_covered) == ("", 0.0, "")


def test_superseded_proves_the_current_state(here):
    model = table_model()
    _, influential, _ = kinds(model, table())
    first = model.unlearn(influential[:1])
    second = model.unlearn(influential[1:2])
    retained = table().without(influential[:2])
    replayed = replay(first, model.bundle(), retained)
    assert (replayed.outcome, replayed.comparison, bool(replayed)) == ("superseded", "identical", False)
    assert replay(second, model.bundle(), retained).outcome == "identical"


def test_of_an_approximate_answer_the_head_is_proved_and_the_rest_said(here):
    model = table_model()
    ids = core_of(model)[:3]
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    replayed = replay(receipt, model.bundle(), table().without(ids))
    assert (replayed.outcome, replayed.comparison, replayed.made_again) == ("identical in part", "identical", "heads")
    assert not replayed
    assert "3 forgotten" in replayed.not_covered


def test_of_a_technique_too(here):
    model = table_model()
    ids = core_of(model)[:1]
    receipt = model.unlearn(ids, core_policy=lambda extractor, *_: extractor)
    replayed = replay(receipt, model.bundle(), table().without(ids))
    assert (replayed.outcome, replayed.comparison, replayed.made_again) == ("identical in part", "identical", "heads")
    assert not replayed
    assert "technique" in replayed.not_covered


def test_a_replaced_record_is_proved(here):
    """Its row is the last one, its place in the order of the ids is where it was."""
    model = table_model()
    id_ = kinds(model, table())[1][0]
    receipt = model.replace(id_, np.full(5, 0.25), "kind 1", core_policy="keep-extractor")
    records = table()
    features, labels = records.inputs.copy(), records.labels.copy()
    features[records.rows([id_])], labels[records.rows([id_])] = 0.25, 1
    now = replace(records, inputs=features, labels=labels)
    assert replay(receipt, model.bundle(), now).outcome == "identical"
    replayed = replay_handed_in(receipt, elsewhere(model.bundle()), now)
    assert (replayed.outcome, replayed.comparison) == ("not comparable here", "identical")
    with pytest.raises(ValueError, match="model retains"):
        replay(receipt, model.bundle(), records)


def test_everything_that_remains_is_said(here):
    """One reservation does not hide another."""
    model = table_model()
    ids = core_of(model)[:3]
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    said = replay_handed_in(receipt, elsewhere(model.bundle()), table().without(ids)).not_covered
    assert "3 forgotten" in said
    assert "stored ones" in said


def test_a_head_on_some_of_the_records_does_not_pass_as_one_on_all(here):
    """Whatever the bundle calls itself."""
    receipt, bundle, retained = retrained()
    part = np.sort(retained.ids)[:60]
    head = bundle.blueprint.fit_heads(bundle.features[:60], retained.select(part))
    forged = hashed_again(replace(bundle, weights=head.coef_, intercepts=head.intercept_))
    for place in (forged, elsewhere(forged)):
        assert replay_handed_in(receipt, place, retained).outcome == "different"
    with pytest.raises(ValueError, match="fitted on other"):
        replay_handed_in(receipt, replace(forged, features=bundle.features[:60]), retained)


def test_one_bit_of_one_weight_is_found(here):
    """In the extractor."""
    receipt, bundle, retained = retrained()
    forged = hashed_again(replace(bundle, extractor=weights_changed(bundle.extractor)))
    replayed = replay_handed_in(receipt, forged, retained)
    assert replayed.comparison != "identical"
    assert replayed.differs_most.startswith("extractor")
    assert replayed.largest_difference > 0.0


def test_a_model_of_another_seed_is_different(here):
    receipt, bundle, retained = retrained()
    forged = replace(bundle, blueprint=replace(bundle.blueprint, seed=bundle.blueprint.seed + 1))
    replayed = replay_handed_in(receipt, forged, retained)
    assert (replayed.outcome, bool(replayed)) == ("different", False)
    assert replayed.differs_most
    assert replayed.largest_difference > 1e-3


def test_a_model_that_kept_a_forgotten_record_is_different(here):
    """The whole point: an operator who did nothing, and wrote a receipt."""
    receipt, bundle, retained = retrained()
    lazy = table_model().bundle()
    forged = hashed_again(replace(bundle, extractor=lazy.extractor, weights=lazy.weights, intercepts=lazy.intercepts))
    replayed = replay_handed_in(receipt, forged, retained)
    assert (replayed.outcome, bool(replayed)) == ("different", False)


def test_weights_that_do_not_have_the_hash_are_refused():
    """Or honest weights would back a receipt about another model."""
    receipt, bundle, retained = retrained()
    other = "0" * 64
    with pytest.raises(ValueError, match="hash"):
        replay(replace(receipt, model_after=other), told(bundle, model_hash=other), retained)
    with pytest.raises(ValueError, match="hash"):
        replay(receipt, replace(bundle, extractor=weights_changed(bundle.extractor)), retained)
    with pytest.raises(ValueError, match="hash"):
        replay(receipt, replace(bundle, weights=bundle.weights + 1e-12), retained)


def test_other_records_are_refused():
    receipt, bundle, retained = retrained()
    features = retained.inputs.copy()
    features[0, 0] = np.nextafter(features[0, 0], np.float32(9.0))
    with pytest.raises(DataError, match="model retains"):
        replay(receipt, bundle, replace(retained, inputs=features))
    with pytest.raises(DataError, match="model retains"):
        replay(receipt, bundle, retained.without(retained.ids[:1]))
    stranger = replace(retained.select(retained.ids[:1]), ids=[999_999])
    with pytest.raises(UnknownRecords, match="neither retained"):
        replay(receipt, bundle, retained.join(stranger))


def test_forgotten_records_are_left_out_before_anything_is_trained(here, monkeypatch):
    receipt, bundle, retained = retrained()
    seen, made = [], replaying.make_again
    monkeypatch.setattr(
        replaying, "make_again", lambda bundle, dataset, *rest: seen.append(dataset) or made(bundle, dataset, *rest)
    )
    assert replay(receipt, bundle, table()).outcome == "identical"
    assert seen[0].ids.tolist() == np.sort(retained.ids).tolist() != np.sort(table().ids).tolist()


def test_classes_are_found_by_name(here):
    receipt, bundle, retained = retrained()
    turned = replace(retained, labels=2 - retained.labels, class_names=retained.class_names[::-1])
    assert replay(receipt, bundle, turned).outcome == "identical"


@pytest.mark.parametrize("change", [{"torch_version": "1.0"}, {"threads": 64}, {"device": "other"}, {"machine": "vax"}])
def test_elsewhere_the_head_alone_is_proved(here, change):
    receipt, bundle, retained = retrained()
    replayed = replay_handed_in(receipt, elsewhere(bundle, **change), retained)
    assert (replayed.outcome, replayed.made_again, replayed.comparison) == ("not comparable here", "heads", "identical")
    assert not replayed
    assert "0.0e+00" in replayed.not_covered  # this is the machine that made them


def test_elsewhere_features_come_out_a_little_different(here, monkeypatch):
    """The heads are replayed from the stored ones, and how far those made here are is said."""
    receipt, bundle, retained = retrained()
    features = Blueprint.embed
    monkeypatch.setattr(Blueprint, "embed", lambda *given: features(*given) * np.float64(1.0 + 2.0**-20))
    replayed = replay_handed_in(receipt, elsewhere(bundle), retained)
    assert (replayed.outcome, replayed.comparison) == ("not comparable here", "identical")
    assert "9.5e-07" in replayed.not_covered  # 2⁻²⁰
    assert replay(receipt, bundle, retained).comparison == "different"


def test_elsewhere_other_features_are_found(here):
    """They do not give the head; and where they are made to, they are far from what the extractor makes."""
    receipt, bundle, retained = retrained()
    features = bundle.features.copy()
    features[features != 0.0] += 0.5
    replayed = replay_handed_in(receipt, elsewhere(replace(bundle, features=features)), retained)
    assert (replayed.outcome, replayed.comparison, bool(replayed)) == ("different", "different", False)
    assert replayed.differs_most.startswith("head")
    head = bundle.blueprint.fit_heads(features, retained.in_order())
    forged = hashed_again(replace(bundle, features=features, weights=head.coef_, intercepts=head.intercept_))
    replayed = replay_handed_in(receipt, elsewhere(forged), retained)
    apart = 0.5 / np.max(np.abs(features))
    assert f"{apart:.1e}" in replayed.not_covered


def test_features_that_the_extractor_does_not_make_are_found(here):
    """As of a model whose network computes something else than its weights say: a hook, a changed attribute."""
    receipt, bundle, retained = retrained()
    for features in (bundle.features * 2.0, np.full_like(bundle.features, np.nan)):
        replayed = replay(receipt, replace(bundle, features=features), retained)
        assert (replayed.outcome, replayed.differs_most, bool(replayed)) == ("different", "features", False)
    with pytest.raises(ValueError, match="damaged"):
        replay(receipt, replace(bundle, features=bundle.features[:0]), retained)


def undecided(bundle, *heads, **errors):
    """The bundle as if some heads were known only up to these errors."""
    errors = {"weight_error": 2.5e-12, "bias_error": 1e-12} | errors
    found = [
        replace(head, certificate=replace(head.certificate, decided=False, error=1e-9, **errors))
        if number in heads
        else head
        for number, head in enumerate(bundle.facts.heads)
    ]
    return told(bundle, heads=tuple(found))


def nudged(receipt, bundle, head, weight=0.0, bias=0.0):
    """Receipt and bundle of a model with another first weight and bias of one head."""
    weights, intercepts = bundle.weights.copy(), bundle.intercepts.copy()
    weights[head, 0] += weight
    intercepts[head] += bias
    other = hashed_again(replace(bundle, weights=weights, intercepts=intercepts))
    return handed_in(receipt, other)


@pytest.mark.parametrize(("weight", "bias"), [(0.0, 0.0), (2e-12, 0.0), (-2e-12, 9e-13)])
def test_of_a_head_that_is_not_decided_numbers_are_compared(here, weight, bias):
    """Identical it is not called, even with the same bytes: no certificate says that they are the exact ones."""
    receipt, bundle, retained = retrained()
    receipt, bundle = nudged(receipt, undecided(bundle, 1), 1, weight, bias)
    replayed = replay(receipt, bundle, retained)
    assert (replayed.outcome, replayed.comparison, bool(replayed)) == ("within 2.6e-12", "within 2.6e-12", False)
    assert replayed.largest_difference == pytest.approx(max(abs(weight), bias), abs=1e-14)
    assert replayed.made_again == "extractor and heads"


@pytest.mark.parametrize(
    ("head", "weight", "bias", "where"),
    [
        (1, 3e-12, 0.0, "head weights"),  # further than the certificates say
        (1, 0.0, 2e-12, "head intercepts"),
        (0, 1e-14, 0.0, "head weights"),  # a decided head must have the same bytes
        (0, 0.0, 1e-14, "head intercepts"),
    ],
)
def test_and_must_be_as_near_as_its_certificates_say(here, head, weight, bias, where):
    receipt, bundle, retained = retrained()
    receipt, bundle = nudged(receipt, undecided(bundle, 1), head, weight, bias)
    replayed = replay(receipt, bundle, retained)
    assert (replayed.outcome, bool(replayed), replayed.differs_most) == ("different", False, where)


def test_an_extractor_must_have_the_same_bytes_whatever_the_heads(here):
    receipt, bundle, retained = retrained()
    forged = hashed_again(replace(undecided(bundle, 0, 1, 2), extractor=weights_changed(bundle.extractor)))
    replayed = replay_handed_in(receipt, forged, retained)
    assert (replayed.outcome, bool(replayed)) == ("different", False)


@pytest.mark.parametrize("errors", [{"weight_error": 1.0}, {"bias_error": 2 * EXACT}, {"weight_error": np.nan}])
def test_wide_certificates_prove_nothing(here, errors):
    """Or an operator who did nothing would write certificates that leave everything open."""
    receipt, bundle, retained = retrained()
    with pytest.raises(ValueError, match="shows nothing"):
        replay(receipt, undecided(bundle, 0, **errors), retained)
    lazy = table_model().bundle()
    forged = hashed_again(
        replace(
            undecided(bundle, 0, 1, 2, weight_error=1e-9, bias_error=1e-9), weights=lazy.weights,
            intercepts=lazy.intercepts,
        )
    )  # fmt: skip
    assert replay_handed_in(receipt, forged, retained).outcome == "different"


def test_certificates_for_other_heads_are_refused():
    receipt, bundle, retained = retrained()
    with pytest.raises(ValueError, match="one certificate for"):
        replay(receipt, told(bundle, heads=bundle.facts.heads[:-1]), retained)


def test_bytes_of_another_form_are_not_compared(here):
    receipt, bundle, retained = retrained()
    assert receipt.form == bundle.form == FORM
    with pytest.raises(ValueError, match=rf"makes form {FORM}"):
        replay(receipt, replace(bundle, form=1), retained)
    replayed = replay_handed_in(receipt, bundle, retained, form=1)
    assert (replayed.outcome, replayed.contradictions) == (Outcome.false, ["form on the receipt is not what was found"])


@pytest.mark.long
def test_a_function_of_the_script(tmp_path):
    """The fresh process finds the function that makes the network where it is: in the caller's script."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout == "identical\n", done.stderr


SCRIPT = """
import numpy as np
from maxrr.core import FullCore
from maxrr.data import Dataset
from maxrr.nets import MLP
from maxrr.unlearning import MaxRR, replay


def make():
    return MLP(2, 2, (4,))


if __name__ == "__main__":
    labels = np.arange(20) % 2
    features = np.random.default_rng(0).normal(size=(20, 2)) + labels[:, None]
    records = Dataset(features, labels, ("no", "yes"), np.arange(20))
    model = MaxRR(make, FullCore(), epochs=1, device="cpu").fit(records)
    receipt = model.unlearn([3], core_policy="retrain")
    print(replay(receipt, model.bundle(), records.without([3])).outcome)
"""


def test_the_rebuilding_process_gets_no_weights(monkeypatch):
    """What is sent to it has none of the model's."""
    receipt, bundle, retained = retrained()
    sent = []

    def send(function, *arguments, **_):
        sent.append(arguments)
        raise InterruptedError

    monkeypatch.setattr(replaying, "call_in_fresh_process", send)
    with pytest.raises(InterruptedError):
        replay(receipt, bundle, retained)
    ((blueprint, choice, dataset, extractor, stored),) = sent
    assert extractor is None
    assert stored is None
    assert dataset is retained
    assert choice.ids.tolist() == bundle.choice.ids.tolist()
    blank = begin(blueprint.network, 0).state_dict()
    trained = bundle.extractor
    held = blueprint.network.state_dict()
    assert not any(np.array_equal(held[name].numpy(), value.numpy()) for name, value in trained.items() if name in held)
    assert blank.keys() == held.keys()


ONE = np.array([1.0, -2.0])


@pytest.mark.parametrize(
    ("other", "result", "largest"),
    [
        (ONE.copy(), "identical", 0.0),
        (ONE + 5e-11, "different", 5e-11),
        (ONE + np.array([0.0, 3e-10]), "different", 3e-10),
        (np.array([1.0, np.nan]), "different", np.inf),
        (np.array([1.0, np.inf]), "different", np.inf),
        (ONE.astype(np.float32), "different", np.inf),
        (ONE[:1], "different", np.inf),
        (ONE[:, None], "different", np.inf),
    ],
)
def test_the_rule_of_equality(other, result, largest):
    for pair in ((ONE, other), (other, ONE)):
        found, where, difference = compared({"a": pair[0], "same": ONE}, {"a": pair[1], "same": ONE})
        assert found == result
        assert where == ("" if result == "identical" else "a")
        assert difference == pytest.approx(largest, rel=1e-4)


def test_every_outcome_has_a_meaning():
    """Also the one that goes on with a number; and nothing else is one."""
    assert all(outcome.meaning for outcome in Outcome)
    assert Outcome("within 3.2e-12") is Outcome.within
    with pytest.raises(ValueError, match="withinness"):
        Outcome("withinness")


def test_signs_of_zero_and_other_layers():
    assert compared({"a": np.zeros(1)}, {"a": -np.zeros(1)}) == ("different", "a", 0.0)
    assert compared({"a": ONE}, {"b": ONE})[0] == "different"
    assert compared({"a": ONE, "b": ONE}, {"a": ONE + 1e-11, "b": ONE + 1.0})[1:] == ("b", 1.0)


def test_the_rule_of_equality_for_heads():
    """Each by itself: rows with room need be as near as it, others have the same bytes."""
    weights, biases = np.array([[3.0, 4.0], [1.0, 1.0]]), np.array([0.5, -0.5])
    moved = weights + np.array([[0.0, 0.0], [3e-12, -4e-12]])
    ours, theirs = {WEIGHTS: weights, INTERCEPTS: biases}, {WEIGHTS: moved, INTERCEPTS: biases + np.array([0.0, 1e-12])}
    assert compared(ours, ours, [None, None])[0] == "identical"
    assert compared(ours, ours, [None, (1e-12, 0.0)])[0] == "within 1.0e-12"
    assert compared(ours, theirs, [None, (5.1e-12, 1.1e-12)])[0] == "within 5.1e-12"
    assert compared(ours, theirs, [None, (4.9e-12, 1.1e-12)])[0] == "different"
    assert compared(ours, theirs, [None, (5.1e-12, 0.9e-12)])[0] == "different"
    assert compared(ours, theirs, [(1.0, 1.0), None])[0] == "different"
    assert compared(ours, theirs | {WEIGHTS: moved * np.nan}, [(1.0, 1.0), (1.0, 1.0)])[0] == "different"
    assert compared(ours, theirs | {WEIGHTS: moved[:1]}, [(1.0, 1.0)])[0] == "different"
