"""A model as facts, words and secrets: what is written is what is read, and facts tell of no record and no class."""

import functools
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from maxrr.files import from_plain, parse_json
from maxrr.files.strict_json import json_text
from maxrr.unlearning import MaxRR, codec
from maxrr.unlearning.facts import Facts, Secrets, Words
from tests.unlearning.problems import EVERY_CORE, core_of, fitted_table, fresh, kinds, table, table_model

SOURCES = ({"name": "a file of Anna's"},)


KINDS = [*EVERY_CORE, "left in a shard", "weights and columns", "labels of an array"]


@functools.cache
def model_of(kind):
    """A model of a core, or one that a request or a setting has changed."""
    if kind == "left in a shard":
        model = table_model("hash in shards")
        model.unlearn(core_of(model)[:1], core_policy="keep-extractor")
        return model
    if kind == "weights and columns":
        records = replace(table(), columns=("age", "pulse", "girth", "height", "dose"))
        model = fresh(EVERY_CORE["hash"], records, class_weight={"kind 1": 2.0}).fit(records)
        model.unlearn(kinds(model, records)[2][:1])
        return model
    if kind == "labels of an array":
        return MaxRR.on_features().fit(table().inputs, ["abc"[label] for label in table().labels])
    return fitted_table(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_is_what_is_read(kind):
    fitted = model_of(kind)._fitted
    network = codec.network_facts(fitted.blueprint.network)
    for found in (codec.facts_of(fitted, network), codec.words_of(fitted, SOURCES), codec.secrets_of(fitted)):
        assert from_plain(type(found), parse_json(json_text(found))) == found
    facts = codec.facts_of(fitted, network)
    blueprint = codec.blueprint_of(
        facts, fitted.blueprint.class_weight, codec.core_key(fitted.blueprint.core), fitted.blueprint.network
    )
    for field in fields(blueprint):
        if field.name != "network":
            assert getattr(blueprint, field.name) == getattr(fitted.blueprint, field.name), field.name
    assert facts.conditions(len(fitted.waiting)) == fitted.conditions


@pytest.mark.parametrize("kind", KINDS)
def test_facts_tell_of_no_record_and_no_class(kind):
    fitted = model_of(kind)._fitted
    network = codec.network_facts(fitted.blueprint.network)
    said, records = json_text(codec.facts_of(fitted, network)), fitted.records
    private = [*map(str, records.ids.tolist()), *records.class_names, *(records.columns or ()), fitted.key.hex()]
    if records.subjects is not None:
        private += map(str, records.subjects.tolist())
    assert [word for word in private if len(word) > 3 and word in said] == []


def test_each_thing_is_said_once():
    names = [field.name for kind in (Facts, Words, Secrets) for field in fields(kind)]
    assert sorted(set(names) - {"core"}) == sorted(name for name in names if name != "core")


def test_facts_are_read_without_numpy():
    """A status is told in a moment."""
    code = (
        "import sys, maxrr.unlearning.facts; print(sorted({'torch', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
