"""A receipt tells nobody whom it is about, without the key."""

import json

from maxrr.core import HashCore
from maxrr.unlearning import Receipt
from tests.unlearning.problems import fresh, kinds, table, table_model

CORE = HashCore(0.5, key="house")


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
        for known in (without.content_hash(), table().content_hash(), model.model_hash_, model.content_hash_):
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
    orders = [fresh(CORE, table(), epochs=1).fit(table())._fitted.records.ids.tolist() for _ in range(2)]
    assert sorted(orders[0]) == sorted(orders[1])
    assert orders[0] != orders[1]
    assert sorted(orders[0]) not in orders


def test_receipts_are_a_chain():
    model = table_model()
    receipts = [model.unlearn([id_], core_policy="keep-extractor") for id_ in table().ids[:3]]
    assert [receipt.previous for receipt in receipts] == ["", receipts[0].digest, receipts[1].digest]
    read = [Receipt.from_json(receipt.to_json()) for receipt in receipts]
    assert [receipt.digest for receipt in read] == [receipt.digest for receipt in receipts]
    assert model.bundle().receipts == tuple(receipt.digest for receipt in receipts)
