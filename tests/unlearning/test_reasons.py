"""The reasons on plans and receipts, all of them: one tense, and nothing said twice."""

import functools
import re

import pytest

from tests.unlearning.test_actions import NEW, STATES, halved, kinds, prepared, requests

POLICIES = ("retrain", "keep-extractor", halved)


@functools.cache
def reasons():
    """Every reason that some request under some policy in some state has, its numbers written as N."""
    said = set()
    for state in STATES:
        model, *_ = prepared(state)
        plans = [model.plan(ids, core_policy=policy) for ids in requests(state).values() for policy in POLICIES]
        plans += [
            model.plan(ids[0], inputs=NEW, core_policy=policy)
            for ids in kinds(model)
            for policy in POLICIES
            if len(ids)
        ]
        said |= {re.sub(r"\b\d[\d,]*", "N", plan.reason) for plan in plans if plan.guarantee is not None}
    return said


EXACT = {
    "no requested record is core or influential: the model stays as it is, and the records are erased",
    "every requested record is forgotten already: nothing is left to do",
    "N of the records is influential, none is core: the heads are those that a fit on the retained records gives, and "
    "the extractor stays as it is",
    "N of the records is core: the extractor is trained again without the records, with the recorded seed, and the "
    "heads are fitted anew",
    "the extractor keeps what it learned from N record that is forgotten already: the extractor is trained again "
    "without the records, with the recorded seed, and the heads are fitted anew",
}
APPROXIMATE = {
    "N of the records is core: the extractor keeps what it learned, and the heads are fitted without the records",
    "N of the records are core: the caller's technique makes another extractor, and the heads are fitted without the "
    "records",
    "the extractor keeps what it learned from N records that are forgotten already, and the heads are fitted without "
    "the records",
}
NEW_RECORD = {
    "takes its place in both, as in a fit of the corrected data",
    "shapes the heads alone",
    "shapes the heads, and the extractor not before the next fit",
}


def test_they_are_these():
    said = reasons()
    assert said >= EXACT
    assert {f"{one}; that is not the same as training without them, so an audit is due" for one in APPROXIMATE} <= said
    assert {one.partition("; the new record ")[2] for one in said} - {""} == NEW_RECORD


@pytest.mark.parametrize("past", ["was", "were", "stood", "gave", "had"])
def test_they_are_in_the_present(past):
    """A plan says them of what will be done, and a receipt of what was."""
    assert not [one for one in reasons() if past in re.findall(r"\w+", one)]


def test_they_say_nothing_twice():
    for one in reasons():
        words = re.findall(r"\w+", one)
        phrases = [" ".join(words[start : start + 5]) for start in range(len(words) - 4)]
        assert len(phrases) == len(set(phrases)), one
        assert one.count(":") <= 1, one
