"""What receipts, plans and proofs may say, and what was said wrongly before."""

import copy
import dataclasses
import functools
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.unlearning.problems import (
    core_of,
    fresh,
    kinds,
    parts_of,
    table,
    table_model,
)  # fmt: skip
from tests.unlearning.search import holds_bytes
from tests.unlearning.test_proof import handed_in, here, retrained  # noqa: F401
from torch import nn

from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore
from maxrr.data import DataError, Dataset
from maxrr.nets import MLP
from maxrr.report.receipts import in_words
from maxrr.unlearning import Bundle, Receipt, prove
from maxrr.unlearning.consistency import contradictions

CORE = HashCore(0.5, key="house")


# What was not trained here


def pretrained():
    """A network whose first layer learned from all records, and is frozen."""
    torch.manual_seed(0)
    network = MLP(5, 3, hidden=(12, 6))
    first = next(layer for layer in network.modules() if isinstance(layer, nn.Linear))
    first.requires_grad_(False)
    return network


OLD = {}


def old_weights():
    """A function that makes a network of weights that it has from elsewhere."""
    network = MLP(5, 3, hidden=(12,))
    if not OLD:
        OLD.update({name: torch.randn_like(value) for name, value in network.state_dict().items()})
    network.load_state_dict(OLD)
    return network


@pytest.mark.parametrize("network", [pretrained(), old_weights])
def test_weights_that_were_given_are_a_condition(network, here):  # noqa: F811
    model = fresh(CORE, table(), network, lr=1e-300 if network is old_weights else 5e-3).fit(table())
    ids = core_of(model)[:2]
    assert len(model.plan(ids, core_policy="retrain").conditions) == 1
    receipt = model.unlearn(ids, core_policy="retrain")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", False)
    (condition,) = receipt.conditions
    assert "given, and neither drawn from the seed" in condition
    assert any("exact on 1 condition" in sentence for sentence in in_words(receipt))
    verdict = prove(receipt, model.bundle(), table().without(ids))
    assert (verdict.verdict, verdict.result, bool(verdict)) == ("identical in part", "identical", False)
    assert condition in verdict.remains


def test_a_network_that_is_drawn_and_trained_here_has_no_condition():
    model = table_model()
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    assert (receipt.unconditional, receipt.conditions) == (True, [])


def test_a_frozen_extractor_is_exact_on_its_owners_word():
    model = fresh(Frozen(), table(), nn.Sequential(nn.Linear(5, 12), nn.Tanh())).fit(table())
    receipt = model.unlearn(table().ids[:2])
    assert receipt.guarantee.startswith("exact")
    assert not receipt.unconditional
    assert receipt.conditions == [receipt.core_depended_on]
    assert "on the word of whoever gave it" in receipt.conditions[0]


def test_a_proof_of_a_network_of_the_callers_says_that_its_code_was_run(here):  # noqa: F811
    model = fresh(CORE, table(), nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))).fit(table())
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    verdict = prove(receipt, model.bundle(), table().without(core_of(table_model())[:1]))
    assert verdict
    assert "what the network's own code does: it was run as it is" in verdict.not_compared


def test_what_a_caller_does_to_the_extractor_does_not_reach_the_model():
    model = table_model()
    before = model.decision_function(table())
    model.extractor_.register_forward_hook(lambda module, given, result: 2.0 * result)
    with torch.no_grad():
        next(model.extractor_.parameters()).zero_()
    assert np.array_equal(model.decision_function(table()), before)


# Approximate is not exact


def test_an_approximate_answer_claims_nothing_of_bytes():
    model = table_model()
    receipt = model.unlearn(core_of(model)[:2], core_policy="head")
    assert (receipt.guarantee, receipt.bytes_claim, receipt.unconditional) == ("approximate-refit", "nothing", False)
    assert receipt.conditions == []
    said = " ".join(in_words(receipt))
    assert "not exact: an audit is due" in said
    assert "No bytes are claimed" in said
    assert "depends on its id" not in said
    forged = replace(receipt, bytes_claim="identical")
    assert any("an approximate answer claims 'nothing'" in wrong for wrong in contradictions(forged))


def test_head_and_then_retrain_of_the_same_records_trains_without_them():
    model, never = table_model(), None
    ids = core_of(model)[:3]
    model.unlearn(ids, core_policy="head")
    again = model.unlearn(ids, core_policy="head")
    assert (again.guarantee, again.unconditional) == ("approximate-refit", False)
    assert "the extractor keeps what it learned from 3 of them" in again.reason
    assert model.plan(ids, core_policy="retrain").trains == len(core_of(model))
    receipt = model.unlearn(ids, core_policy="retrain")
    assert (receipt.guarantee, receipt.already_forgotten, receipt.core) == ("exact-retrain", 3, 0)
    assert (receipt.unconditional, receipt.core_left_in_extractor) == (True, 0)
    assert not list(contradictions(receipt))
    never = fresh(CORE, table()).fit(table().without(ids))
    assert parts_of(model) == parts_of(never)
    assert model.unlearn(ids, core_policy="retrain").guarantee == "exact-untouched"


def test_what_remains_from_earlier_requests_is_a_condition_of_later_ones():
    model = table_model()
    core, influential, _ = kinds(model, table())
    model.unlearn(core[:2], core_policy="head")
    receipt = model.unlearn(influential[:1])
    assert (receipt.guarantee, receipt.unconditional) == ("exact-refit", False)
    assert receipt.conditions == [
        "the extractor was trained on 2 forgotten core records, and keeps what it learned from them"
    ]


# Replaced records, and classes that go


@pytest.mark.parametrize("core", [CORE, FullCore()])
def test_replacing_a_core_record_is_fitting_the_corrected_data(core):
    model = fresh(core, table()).fit(table())
    id_ = core_of(model)[0]
    new = np.linspace(-1.0, 1.0, 5).astype(np.float32)
    receipt = model.replace(id_, new, core_policy="retrain")
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", True)
    features = table().features.copy()
    features[table().rows([id_])] = new
    corrected = replace(table(), features=features)
    never = fresh(core, table()).fit(corrected)
    assert parts_of(model) == parts_of(never)
    assert model.manifest_ == never.manifest_
    assert core_of(model).tolist() == core_of(never).tolist()


def test_a_record_that_was_replaced_under_head_is_core_when_the_extractor_is_trained_again():
    """Or 'without conditions' would be false of the later request."""
    model = table_model()
    first, second = core_of(model)[:2]
    new = np.linspace(-1.0, 1.0, 5).astype(np.float32)
    model.replace(first, new, core_policy="head")
    receipt = model.unlearn([second], core_policy="retrain")
    features = table().features.copy()
    features[table().rows([first])] = new
    never = fresh(CORE, table()).fit(replace(table(), features=features).without([second]))
    assert receipt.unconditional
    assert parts_of(model) == parts_of(never)


def test_with_a_ranked_core_a_replaced_record_is_not_core():
    model = fresh(FrequencyCore(40, runs=2), table()).fit(table())
    id_ = core_of(model)[0]
    receipt = model.replace(id_, np.zeros(5), core_policy="retrain")
    assert not receipt.unconditional
    assert id_ not in core_of(model)


@pytest.mark.parametrize("gone", [0, 1, 2])
@pytest.mark.parametrize("as_array", [False, True])
def test_forgetting_a_class_is_fitting_the_rest(gone, as_array):
    """In whichever way classes are named: by a dataset, or by the labels of arrays, which then count from zero."""
    data = table()
    labels = np.array(["ant", "bee", "cat"])[data.labels]
    leaving = data.labels == gone

    def fit(rows):
        model = fresh(CORE, data)
        return model.fit(data.features[rows], labels[rows], ids=data.ids[rows]) if as_array else model.fit(
            data.select(data.ids[rows])
        )  # fmt: skip

    model, never = fit(leaving >= 0), fit(~leaving)
    receipt = model.unlearn(data.ids[leaving], core_policy="retrain")
    assert receipt.unconditional
    assert model.model_hash_ == never.model_hash_
    assert model.manifest_ == never.manifest_
    assert model.classes_.tolist() == never.classes_.tolist()
    assert model.predict(data.features).tolist() == never.predict(data.features).tolist()
    assert model.predict_proba(data.features).tobytes() == never.predict_proba(data.features).tobytes()


@pytest.mark.parametrize("as_array", [False, True])
@pytest.mark.parametrize("policy", ["head", "retrain"])
def test_the_name_of_a_class_that_is_gone_is_gone(as_array, policy):
    """It may be that of a person."""
    data = table()
    names = ("kind 0", "Anna Meier-Grün", "kind 2")
    renamed = replace(data, class_names=names)
    model = fresh(CORE, data)
    model = model.fit(data.features, np.array(names)[data.labels], ids=data.ids) if as_array else model.fit(renamed)
    wanted = ["Anna Meier-Grün".encode(), np.array("Anna Meier-Grün").tobytes()]
    assert holds_bytes(model, wanted)
    receipt = model.unlearn(data.ids[data.labels == 1], core_policy=policy)
    assert holds_bytes(model, wanted) == []
    assert holds_bytes(receipt, wanted) == []
    earlier = model.unlearn(data.ids[data.labels == 0][:1])
    assert holds_bytes(earlier, wanted) == []


# Other kinds of input than were fitted on


def pictures():
    """Records in bytes, as many as in the table."""
    data = table()
    return replace(data, features=np.clip(128.0 + 30.0 * data.features, 0.0, 255.0).astype(np.uint8))


def test_pixels_and_floats_are_not_taken_for_each_other():
    model = fresh(CORE, table(), epochs=1).fit(pictures())
    pixels = pictures().features
    for other in (pixels / 255.0, pixels.astype(np.float32), (pixels / 255.0).astype(np.float32)):
        with pytest.raises(ValueError, match="uint8, which it divides by 255: bring the same kind"):
            model.predict(other)
    assert model.predict(pixels).shape == (80,)
    floats = fresh(CORE, table(), epochs=1).fit(table())
    with pytest.raises(ValueError, match="floats, which it takes as they are"):
        floats.predict(np.zeros((2, 5), dtype=np.uint8))
    assert floats.predict(table().features.astype(np.float64)).shape == (80,)


class Frame:
    """As much of a DataFrame as matters."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


def test_columns_of_a_table_keep_their_order():
    data, names = table(), ["a", "b", "c", "d", "e"]
    model = fresh(CORE, data, epochs=1).fit(Frame(data.features, names), data.labels, ids=data.ids)
    expected = model.predict(Frame(data.features, names))
    assert np.array_equal(model.predict(data.features), expected)  # without names order counts
    for other in (names[::-1], [*names[:4], "x"]):
        with pytest.raises(ValueError, match="bring the same ones in the same order"):
            model.predict(Frame(data.features, other))


# Whom a receipt is about


def test_without_the_key_a_receipt_fits_every_record():
    """Two models that differ in their keys alone: nothing that is derived from the data is on both receipts."""
    found = []
    for _ in range(2):
        model = fresh(CORE, table()).fit(table())
        receipt = model.unlearn(kinds(model, table())[1][:1])
        text = receipt.to_json()
        hashes = {part for part in text.replace('"', " ").split() if len(part) == 64}
        assert len(hashes) >= 1 + 2 + 2 + 3
        found.append(hashes)
        without = table().without(kinds(table_model(), table())[1][:1])
        for known in (without.content_hash(), table().content_hash(), model.model_hash_, model.manifest_):
            assert known not in text
        numbers = [value for value in flat_numbers(json.loads(text)) if isinstance(value, float)]
        assert set(numbers) - {receipt.seconds} <= {receipt.C, receipt.recipe["lr"], CORE.fraction, 1e-12}
    assert not found[0] & found[1]


def flat_numbers(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for part in value for number in flat_numbers(part)]
    return [value]


def test_rows_stand_in_an_order_that_only_the_key_knows():
    orders = [fresh(CORE, table(), epochs=1).fit(table())._fitted.holdings.ids.tolist() for _ in range(2)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert sorted(orders[0]) not in orders


def test_receipts_are_a_chain():
    model = table_model()
    receipts = [model.unlearn([id_]) for id_ in table().ids[:3]]
    assert [receipt.previous for receipt in receipts] == ["", receipts[0].digest, receipts[1].digest]
    read = [Receipt.from_json(receipt.to_json()) for receipt in receipts]
    assert [receipt.digest for receipt in read] == [receipt.digest for receipt in receipts]
    assert model.bundle().receipts == tuple(receipt.digest for receipt in receipts)


# A proof compares all that a receipt says

FORGERIES = {
    "guarantee": "exact-refit", "core_policy": "head", "refit": "influential", "C": 3.0, "seed": 99,
    "recipe": {"epochs": 1, "batch_size": 32, "lr": 5e-3}, "model_after": "0" * 64, "manifest_after": "0" * 64,
    "records_after": 70, "number": 2, "core": 0, "influential": 5, "neither": 7, "requested": 9, "form": 1,
    "core_details": {"kind": "full", "k": 80}, "core_depended_on": "nothing", "conditions": ["x"],
    "unconditional": False, "core_left_in_extractor": 2, "record_marks": ["0" * 64] * 4, "previous": "0" * 64,
    "environment": {}, "bytes_claim": "within 1.0e-09", "time": "yesterday", "model_before": "0" * 64,
    "duplicates_left": 3, "already_forgotten": 1, "records_before": 99, "core_marks": [], "heads": [],
    "earlier_marks": ["0" * 64],
    "reason": "because", "seconds": 0.0, "manifest_before": "1" * 64, "version": 4,
}  # fmt: skip


def test_every_field_of_a_receipt_can_be_forged_here():
    assert FORGERIES.keys() == {field.name for field in dataclasses.fields(Receipt)}


@pytest.mark.parametrize("name", [name for name in FORGERIES if name != "version"])
def test_a_receipt_with_anything_changed_is_false(name, here):  # noqa: F811
    receipt, bundle, retained = retrained()
    forged = replace(receipt, **{name: FORGERIES[name]})
    verdict = prove(forged, bundle, retained)
    assert (verdict.verdict, verdict.proved, bool(verdict)) == ("the receipt is false", "nothing", False)
    assert verdict.contradicted


NOBODY_KNOWS = {
    "reason", "time", "seconds", "model_before", "manifest_before", "duplicates_left", "guarantee", "core_policy",
    "refit", "records_before", "core", "influential", "neither", "requested", "already_forgotten", "core_marks",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in FORGERIES if name not in NOBODY_KNOWS | {"version"}])
def test_also_where_the_operator_says_that_he_handed_it_out(name, here):  # noqa: F811
    """What can be known is compared with the model and the data, not with what the operator says of the receipt."""
    receipt, bundle, retained = retrained()
    verdict = prove(*handed_in(receipt, bundle, **{name: FORGERIES[name]}), retained)
    assert not verdict
    if name in ("model_after", "manifest_after"):  # as after another fit
        assert verdict.verdict == "superseded"
    else:
        assert verdict.verdict == "the receipt is false"
        assert verdict.contradicted


def test_what_nobody_can_compare_is_said(here):  # noqa: F811
    receipt, bundle, retained = retrained()
    said = " ".join(prove(receipt, bundle, retained).not_compared)
    assert "who asked, by which policy, and how many of the records were core or influential" in said
    assert "the state before the request" in said
    assert "when it was" in said


def test_classes_in_another_order_are_found(here):  # noqa: F811
    receipt, bundle, retained = retrained()
    heads = [receipt.heads[1], receipt.heads[0], *receipt.heads[2:]]
    verdict = prove(*handed_in(receipt, bundle, heads=heads), retained)
    assert verdict.contradicted == ["heads on the receipt is not what was found"]
    names = (bundle.classes[1], bundle.classes[0], *bundle.classes[2:])
    with pytest.raises(ValueError, match="damaged"):
        prove(receipt, replace(bundle, classes=names), retained)


def test_a_core_that_its_rule_does_not_give_is_found(here):  # noqa: F811
    """An operator who calls a chosen core one by hash."""
    receipt, bundle, retained = retrained()
    choice = replace(bundle.choice, ids=np.sort(retained.ids)[:40])
    verdict = prove(receipt, replace(bundle, choice=choice), retained)
    assert verdict.contradicted == ["the core is not the one that its rule gives"]


def test_forgotten_records_among_the_retained_ones_are_found(here):  # noqa: F811
    receipt, bundle, retained = retrained()
    from maxrr.unlearning.oblivion import Mark, id_mark

    held = Mark(id_mark(bundle.key, int(retained.ids[0])), b"0" * 32, b"0" * 32)
    verdict = prove(receipt, replace(bundle, marks=bundle.marks | {held}), retained)
    assert verdict.contradicted == ["1 of the retained records are among the forgotten ones"]


# A bundle in a file


def test_a_bundle_there_and_back(tmp_path, here):  # noqa: F811
    receipt, bundle, retained = retrained()
    bundle.save(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o077 == 0
    loaded = Bundle.load(tmp_path / "b")
    assert prove(receipt, loaded, retained)
    for field in dataclasses.fields(Bundle):
        one, other = getattr(bundle, field.name), getattr(loaded, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype.kind == other.dtype.kind
            assert np.array_equal(one, other), field.name
        elif field.name not in ("setting", "choice", "extractor"):
            assert one == other, field.name
    assert {name: value.tolist() for name, value in bundle.extractor.items()} == {
        name: value.tolist() for name, value in loaded.extractor.items()
    }


ELSEWHERE = """
import sys
from maxrr.data import load
from maxrr.unlearning import Bundle, Receipt, prove

if __name__ == "__main__":
    records, _ = load(sys.argv[1])
    bundle = Bundle.load(sys.argv[2])
    receipt = Receipt.from_json(open(sys.argv[3]).read())
    print(prove(receipt, bundle, records.select(bundle.ids)).verdict)
"""


def test_whoever_holds_the_data_proves_it_in_another_process(tmp_path):
    """With three files, and nothing of the process that made them."""
    receipt, bundle, retained = retrained()
    bundle.save(tmp_path / "model.bundle")
    (tmp_path / "receipt.json").write_text(receipt.to_json())
    # A source whose training side is exactly these records.
    np.savez(
        tmp_path / "retained.npz", x_train=retained.features, y_train=retained.labels, ids_train=retained.ids,
        subjects_train=retained.subjects, x_test=retained.features[:1], y_test=retained.labels[:1],
        ids_test=np.array([1]), subjects_test=np.array([1]), class_names=np.array(retained.class_names),
    )  # fmt: skip
    (tmp_path / "check.py").write_text(ELSEWHERE)
    files = [tmp_path / name for name in ("retained.npz", "model.bundle", "receipt.json")]
    done = subprocess.run(
        [sys.executable, tmp_path / "check.py", *files], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout == "identical\n", done.stderr


def test_a_bundle_of_somebodys_own_network_needs_it(tmp_path, here):  # noqa: F811
    network = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    model = fresh(CORE, table(), network).fit(table())
    ids = core_of(model)[:1]
    receipt = model.unlearn(ids, core_policy="retrain")
    model.bundle().save(tmp_path / "b")
    with pytest.raises(ValueError, match="not one of this library: give it as network"):
        Bundle.load(tmp_path / "b")
    again = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    assert prove(receipt, Bundle.load(tmp_path / "b", network=again), table().without(ids))


def test_what_is_no_bundle_is_refused(tmp_path):
    _, bundle, _ = retrained()
    bundle.save(tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    for content in (b"", b"{}", whole[:100], whole[:-7], b"\xff" * 64, whole.replace(b"maxrr bundle", b"maxrr bindle")):
        (tmp_path / "c").write_bytes(content)
        with pytest.raises(ValueError, match=r"bundle|damaged"):
            Bundle.load(tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        Bundle.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="not a file"):
        Bundle.load(tmp_path)


@functools.cache
def said_in_bundle():
    import tempfile
    from pathlib import Path

    import safetensors

    _, bundle, _ = retrained()
    path = Path(tempfile.mkdtemp()) / "b"
    bundle.save(path)
    with safetensors.safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["maxrr"]), tensors


@pytest.mark.parametrize("wrong", [None, 3, "x", [], {}, [None], -1, 1e308])
def test_a_bundle_that_says_anything_else_proves_nothing(wrong, tmp_path, here):  # noqa: F811
    """Each thing that it says, exchanged: refused, or a verdict other than identical, or what it says was no claim."""
    import safetensors.torch

    receipt, _, retained = retrained()
    said, tensors = said_in_bundle()
    harmless = {"device", "threads"}  # where to compute: the environment is compared
    for name in said:
        parts = [(name,)] if not isinstance(said[name], dict) else [(name, part) for part in said[name]]
        for path in parts:
            changed = copy.deepcopy(said)
            place = changed
            for step in path[:-1]:
                place = place[step]
            if place[path[-1]] == wrong or path[-1] in harmless:
                continue
            place[path[-1]] = wrong
            safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(changed)})
            try:
                verdict = prove(receipt, Bundle.load(tmp_path / "b"), retained)
            except ValueError:
                continue
            assert not verdict or path[0] in ("ids", "core", "core_key"), path


# What is forgotten does not come back in another dress

DRESSES = {
    "as it was": lambda data: data,
    "as float64": lambda data: replace(data, features=data.features.astype(np.float64)),
    "without subjects": lambda data: replace(data, subjects=None),
    "with other subjects": lambda data: replace(data, subjects=data.subjects + 1),
    "with renamed classes": lambda data: replace(data, class_names=("x", "y", "z")),
    "with another label": lambda data: replace(data, labels=(data.labels + 1) % 3),
    "with noise": lambda data: replace(data, features=data.features + np.float32(1e-6)),
    "with other values": lambda data: replace(data, features=data.features[::-1].copy()),
    "with ids as texts": lambda data: replace(data, ids=data.ids.astype(str)),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_a_forgotten_id_is_refused_whatever_else_changed(dress):
    model = table_model()
    model.unlearn(table().ids[:3])
    with pytest.raises(ValueError, match="3 of the record ids were forgotten by this model"):
        model.fit(DRESSES[dress](table()), allow_copies="whatever")


@pytest.mark.parametrize("dress", [name for name in DRESSES if name not in ("with noise", "with ids as texts")])
def test_forgotten_values_under_other_ids_are_refused(dress):
    model = table_model()
    gone = table().select(table().ids[:3])
    model.unlearn(gone.ids)
    others = DRESSES[dress](replace(gone, ids=gone.ids + 1))
    kept = table().without(gone.ids)
    features = np.concatenate([kept.features.astype(others.features.dtype), others.features])
    labels = np.concatenate([kept.labels, others.labels])
    data = Dataset(features, labels, others.class_names, np.concatenate([kept.ids, others.ids]))
    with pytest.raises(ValueError, match="3 of the records have exactly the values of forgotten"):
        model.fit(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda pixels: pixels,
        lambda pixels: pixels.astype(np.float32),
        lambda pixels: pixels / 255.0,
        lambda pixels: (pixels / 255.0).astype(np.float32),
        lambda pixels: pixels.astype(np.float32) * np.float32(1 / 255),
    ],
)
def test_the_same_pixels_are_recognised_in_every_type(change):
    data = pictures()
    model = fresh(CORE, table(), epochs=1).fit(data)
    gone = data.ids[:4]
    model.unlearn(gone)
    ids = np.where(np.isin(data.ids, gone), data.ids + 1, data.ids)
    with pytest.raises(ValueError, match="4 of the records have exactly the values"):
        model.fit(replace(data, features=change(data.features), ids=ids))


def test_a_twin_that_stayed_may_be_fitted_again():
    """That it stays was said on the receipt."""
    data = table()
    features = data.features.copy()
    features[1] = features[0]
    twins = replace(data, features=features)
    model = fresh(CORE, data).fit(twins)
    assert model.unlearn(data.ids[:1]).duplicates_left == 1
    model.fit(twins.without(data.ids[:1]))


# What a reader of the code found


def one_of_a_kind(labels):
    """A table of 22 records whose last one is the only one of its class."""
    data = table(count=22, classes=2)
    rng = np.random.default_rng(3)
    return rng.permutation(data.features), np.array([labels[code] for code in [0, 1] * 10 + [0, 2]])


@pytest.mark.parametrize("labels", [("ant", "bee", "cat"), (3, 5, 9)])
def test_replacing_the_only_record_of_a_class_keeps_the_class(labels):
    features, y = one_of_a_kind(labels)
    model = fresh(CORE, table(), MLP(5, 3, hidden=(6,))).fit(features, y)
    new = np.full(5, 0.5, dtype=np.float32)
    receipt = model.replace(21, new, core_policy="retrain")
    assert model.classes_.tolist() == sorted(labels)
    corrected = features.copy()
    corrected[21] = new
    never = fresh(CORE, table(), MLP(5, 3, hidden=(6,))).fit(corrected, y)
    assert receipt.unconditional
    assert (model.model_hash_, model.manifest_) == (never.model_hash_, never.manifest_)


def test_a_class_without_core_records_vanishes(here):  # noqa: F811
    """The extractor never knew it, and is the one of a fit on the rest."""
    data = table()
    outside = ~CORE.is_core(data.ids)
    labels = np.where(data.labels == 0, np.where(outside, 0, 1), data.labels)  # class 0 is all outside the core
    named = replace(data, labels=labels)
    model = fresh(CORE, data).fit(named)
    gone = data.ids[labels == 0]
    receipt = model.unlearn(gone)
    assert (receipt.guarantee, receipt.unconditional) == ("exact-refit", True)
    never = fresh(CORE, data).fit(named.without(gone))
    assert model.model_hash_ == never.model_hash_
    assert prove(receipt, model.bundle(), named.without(gone))


def test_asking_again_does_not_make_an_approximate_answer_exact(here):  # noqa: F811
    model = table_model()
    ids = kinds(model, table())[1][:1]
    model.unlearn(ids, refit="influential")
    again = model.unlearn(ids)
    assert (again.guarantee, again.bytes_claim) == ("approximate-refit", "nothing")
    verdict = prove(again, model.bundle(), table().without(ids))
    assert (verdict.verdict, verdict.contradicted) == ("identical in part", [])


@pytest.mark.parametrize("by", ["ids", "subjects"])
@pytest.mark.parametrize("policy", ["head", "retrain"])
def test_an_earlier_version_of_a_record_counts_however_it_is_asked_for(by, policy, here):  # noqa: F811
    data = replace(table(), subjects=table().ids)  # everybody has one record
    model = fresh(CORE, data).fit(data)
    id_ = core_of(model)[0]
    model.replace(id_, np.zeros(5), core_policy="head")
    receipt = model.unlearn(**{by: [id_]}, core_policy=policy)
    assert receipt.guarantee == ("exact-retrain" if policy == "retrain" else "approximate-refit")
    assert not list(contradictions(receipt))
    verdict = prove(receipt, model.bundle(), data.without([id_]))
    assert verdict.contradicted == []
    assert bool(verdict) == (policy == "retrain")


def test_a_record_cannot_be_replaced_by_itself():
    model = table_model()
    id_ = table().ids[0]
    with pytest.raises(DataError, match="just so already"):
        model.replace(id_, table().features[0])
    with pytest.raises(DataError, match="of bytes"):
        model.replace(id_, np.zeros(5, dtype=np.uint8))


def test_swapped_classes_and_a_core_of_another_kind_are_found(here):  # noqa: F811
    receipt, bundle, retained = retrained()
    from maxrr.unlearning.hashes import model_hash

    names = (bundle.classes[1], bundle.classes[0], *bundle.classes[2:])
    swapped = replace(bundle, classes=names)
    swapped = replace(swapped, model_hash=model_hash(swapped.extractor, names, bundle.weights, bundle.intercepts))
    verdict = prove(*handed_in(receipt, swapped), retained)
    assert "the classes of the heads are not those of the records, or in another order" in verdict.contradicted
    ranked = replace(bundle, setting=replace(bundle.setting, core=FrequencyCore(40)))
    verdict = prove(*handed_in(receipt, ranked), retained)
    assert not verdict
    assert "conditions on the receipt is not what was found" in verdict.contradicted


def test_buffers_that_are_not_stored_are_given_too():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(5, 4), nn.Linear(4, 3)
            self.register_buffer("scale", torch.tensor([1.0, 2.0, 0.5, 3.0, 1.5]), persistent=False)

        def forward(self, records):
            return self.last(torch.relu(self.first(records * self.scale)))

    model = fresh(CORE, table(), Scaled()).fit(table())
    assert "'scale'" in model.plan(core_of(model)[:1], core_policy="retrain").conditions[0]


def test_a_core_of_the_callers_own_is_a_condition():
    class ById:
        def is_core(self, ids):
            return ids % 2 == 0

        def choose(self, network, dataset, **_):
            from maxrr.core import Choice

            ids = np.sort(dataset.ids[self.is_core(dataset.ids)])
            return Choice(ids, True, "ids decide", {"kind": "own", "k": len(ids)})

    model = fresh(ById(), table()).fit(table())
    receipt = model.unlearn(core_of(model)[:1], core_policy="retrain")
    assert not receipt.unconditional
    assert "on whose word it is that ids decide" in receipt.conditions[0]


def test_values_are_compared_as_float32_whatever_they_are_near():
    from maxrr.data.hashes import value_hashes

    wide = np.array([[3.0000000000000004, 5.0], [1.1, 2.5]])
    assert np.array_equal(value_hashes(wide), value_hashes(wide.astype(np.float32)))


def test_of_forgotten_rows_not_even_the_place_is_known():
    model = table_model()
    ids = np.sort(table().ids)
    model.unlearn(ids[5:7])
    holdings = model._fitted.holdings
    gone = set(np.flatnonzero(~holdings.alive).tolist())
    assert not gone & set(holdings._living_order.tolist())
    assert [name for name in vars(holdings) if "order" in name] == ["_living_order"]


def test_copies_are_of_one_state():
    """While another thread erases records."""
    import pickle
    import sys
    import threading

    data = table()
    model = fresh(CORE, data, epochs=1).fit(data)
    stop, copies = threading.Event(), []

    def copy_it():
        while not stop.is_set():
            copies.append(copy.deepcopy(model) if len(copies) % 2 else pickle.loads(pickle.dumps(model)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=copy_it)
    thread.start()
    try:
        for id_ in np.sort(data.ids)[:40]:
            model.unlearn([id_])
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert len(copies) > 3
    for found in copies:
        holdings = found._fitted.holdings
        assert not (holdings.ids[holdings.alive] == 0).any()
        assert found.manifest_ == data.select(holdings.ids[holdings.alive]).content_hash()


def test_forgotten_values_do_not_come_back_by_replace():
    model = table_model()
    one, other = table().ids[:2]
    gone = table().features[0].copy()
    model.unlearn([one])
    with pytest.raises(ValueError, match="exactly the values of forgotten"):
        model.replace(other, gone)
    with pytest.warns(UserWarning, match="are let in"):
        model.replace(other, gone, allow_copies="twins")
    assert [override.reason for override in model._fitted.overrides] == ["twins"]
    model.replace(other, table().features[1])  # back to what it was
    model.replace(other, np.zeros(5))


def half_given():
    """A function that loads most rows of a weight from elsewhere."""
    network = MLP(5, 3, hidden=(12,))
    first = next(layer for layer in network.modules() if isinstance(layer, nn.Linear))
    with torch.no_grad():
        first.weight[:11] = torch.arange(55.0).reshape(11, 5) / 55.0
    return network


def test_a_part_of_a_weight_that_was_given_is_a_condition():
    model = fresh(CORE, table(), half_given).fit(table())
    assert len(model.plan(core_of(model)[:1], core_policy="retrain").conditions) == 1


def test_a_receipt_of_a_ranked_core_says_nothing_measured_on_the_records():
    model = fresh(FrequencyCore(40, runs=2), table()).fit(table())
    assert "worst_gap" in model.core_.details
    assert model.unlearn(table().ids[:1]).core_details == {"kind": "frequency", "runs": 2}


def test_forgotten_values_in_columns_that_changed_places():
    data, names = table(), ("a", "b", "c", "d", "e")
    model = fresh(CORE, data, epochs=1).fit(replace(data, columns=names))
    model.unlearn(data.ids[:2])
    turned = replace(data, ids=data.ids + 1, features=data.features[:, ::-1].copy(), columns=names[::-1])
    with pytest.raises(ValueError, match="2 of the records have exactly the values"):
        model.fit(turned)
