"""A receipt held against itself: whoever has it can check that, without the model, its key, NumPy or PyTorch."""

from collections.abc import Iterator, Sequence

from maxrr.svm.certificate import EXACT
from maxrr.unlearning.actions import RETRAIN, Guarantee
from maxrr.unlearning.receipts import GUARANTEES, NOTHING, Receipt, claim_of, is_exact, rounded_up


def contradictions(receipt: Receipt) -> list[str]:
    """Find where a receipt says two things that cannot both be so, or claims more than its certificates carry.

    Needs no model and no key: whoever holds a receipt can ask.

    Parameters
    ----------
    receipt : Receipt
        Any receipt.

    Returns
    -------
    list of str
        One sentence for each contradiction.
    """
    try:
        Receipt.from_json(receipt.to_json())
    except ValueError as error:
        return [str(error)]
    return [*contradictions_of_counts(receipt), *contradictions_of_claims(receipt), *contradictions_of_heads(receipt)]


def contradictions_of_counts(receipt: Receipt) -> Iterator[str]:
    """Where the numbers of records on a receipt do not go together."""
    forgotten, core, named = receipt.core + receipt.influential + receipt.free, receipt.core, set(receipt.tombstones)
    if receipt.requested != forgotten + receipt.already_forgotten:
        yield "core, influential, free and forgotten before do not add up to the records asked for"
    if len(named) != forgotten:
        yield f"it has {len(receipt.tombstones)} tombstones for {forgotten} forgotten records"
    earlier = len(receipt.earlier_tombstones)
    if earlier != receipt.already_forgotten or not named.isdisjoint(receipt.earlier_tombstones):
        yield f"it has {earlier} tombstones for {receipt.already_forgotten} records forgotten before"
    if len(receipt.core_tombstones) != core or not named.issuperset(receipt.core_tombstones):
        yield f"it has {len(receipt.core_tombstones)} tombstones for {core} core records"
    fewer = receipt.records_before - receipt.records_after
    if receipt.added is not None:
        yield from contradictions_of_adding(receipt)
    elif receipt.group is not None:
        yield from contradictions_of_a_group(receipt)
    elif fewer != forgotten and (fewer, forgotten) != (0, 1):  # a record that was replaced
        yield f"{forgotten} records were forgotten, and there are {fewer} fewer"
    people = len(receipt.subject_tombstones or [])
    if people > forgotten:
        yield f"it says of {people} people that no record is left, by {forgotten} forgotten records"
    if (receipt.previous != "") != (receipt.number > 1):
        yield f"receipt {receipt.number} does not name the one before it as it should"


def contradictions_of_claims(receipt: Receipt) -> Iterator[str]:
    """Where a guarantee does not go with what was done, or with its conditions."""
    if receipt.guarantee not in GUARANTEES:
        yield f"no guarantee is called {receipt.guarantee!r}"
    exact, core = is_exact(receipt.guarantee), receipt.core
    forgotten, fewer = core + receipt.influential + receipt.free, receipt.records_before - receipt.records_after
    if receipt.guarantee == Guarantee.untouched and (
        core or receipt.influential or receipt.model_before != receipt.model_after
    ):
        yield "the model cannot be untouched if core or influential records are gone, or its hash is another"
    # A record that was replaced before, under another policy, is replaced by itself: the extractor forgets the old one.
    by_itself = receipt.guarantee == Guarantee.retrain and (fewer, forgotten, core) == (0, 1, 0)
    if forgotten and receipt.commitment_before == receipt.commitment_after and not by_itself:
        yield "records were forgotten, and the hash of the records is the same"
    if receipt.guarantee == Guarantee.retrain and receipt.core_policy != RETRAIN:
        yield f"{receipt.guarantee} with policy {receipt.core_policy!r}"
    if exact and core and receipt.guarantee != Guarantee.retrain:
        yield f"{receipt.guarantee} with {core} core records"
    if receipt.guarantee == Guarantee.retrain and receipt.core_left_in_extractor:
        yield "an extractor that was trained again has no forgotten records in it"
    if receipt.unconditional != (exact and not receipt.conditions):
        yield "it is unconditional if and only if it is exact and names no conditions"
    if receipt.conditions and not exact:
        yield "what is approximate is not exact on conditions either"
    if exact and receipt.core_left_in_extractor and not receipt.conditions:
        yield "forgotten records remain in the extractor, and it names no condition"


def contradictions_of_a_group(receipt: Receipt) -> Iterator[str]:
    """Where a receipt of several requests that were answered together says what cannot be so of any such group."""
    group, fewer = receipt.group or [], receipt.records_before - receipt.records_after
    forgotten = receipt.core + receipt.influential + receipt.free
    if len(group) != 2 or not 1 <= group[0] <= group[1] or group[1] < 2 or group[0] > receipt.number:
        yield f"no request has a place {group} in a group"
    if fewer < forgotten:
        yield f"{forgotten} records were forgotten, and by the whole group there are {fewer} fewer"
    if (fewer == 0) != (receipt.commitment_before == receipt.commitment_after):
        yield f"by the whole group there are {fewer} records fewer, and the hash of the records says otherwise"


def contradictions_of_adding(receipt: Receipt) -> Iterator[str]:
    """Where a receipt says that records were added, and something that does not go with it."""
    if receipt.requested:
        yield "records were added, and others asked for"
    if receipt.added is None or not 0 < receipt.added == receipt.records_after - receipt.records_before:
        more = receipt.records_after - receipt.records_before
        yield f"{receipt.added} records were added, and there are {more} more"
    if receipt.guarantee != Guarantee.refit:
        yield f"{receipt.guarantee} of records that were added"
    if receipt.commitment_before == receipt.commitment_after:
        yield "records were added, and the hash of the records is the same"


def contradictions_of_heads(receipt: Receipt) -> Iterator[str]:
    """Where a receipt claims more or less than the certificates of its heads carry."""
    if not receipt.heads:
        yield "it names no head"
        return
    if receipt.bytes_claim != (carried := claim_of(receipt.guarantee, receipt.heads, receipt.recipe)):
        carry = "an approximate answer claims" if carried == NOTHING else "its heads carry"
        yield f"of its bytes it claims {receipt.bytes_claim!r}, and {carry} {carried!r}"
    wide = [number for number, head in enumerate(receipt.heads, start=1) if not head.decided and head.error > EXACT]
    if wide and is_exact(receipt.guarantee):
        error = rounded_up(receipt.heads[wide[0] - 1].error)
        yield f"{receipt.guarantee} with a head, number {wide[0]}, that is known only to {error}"


def not_among(receipt: Receipt, handed_out: Sequence[str]) -> str:
    """Why a receipt is none of those that a model handed out, by their digests; nothing if it is one."""
    if not 1 <= receipt.number <= len(handed_out):
        return (
            f"the receipt is number {receipt.number}, and the model has handed out {len(handed_out)}, as far as is "
            "known here: a bundle has to be written after the request"
        )
    if receipt.digest != handed_out[receipt.number - 1]:
        why = "something in it was changed, or it is another model's"
        return f"it is not the receipt {receipt.number} that this model handed out: {why}"
    return ""
