"""What a replay can answer, in words that are the same in Python, in the shell and on pages."""

from enum import StrEnum


class Outcome(StrEnum):
    """What came out of a replay.

    `Outcome(replay.outcome)` is the member also where the text goes on with a number, as "within 3.2e-12" does.

    Attributes
    ----------
    identical
        "identical": extractor and heads have the bytes that the fresh process made from the retained records alone, and
        everything on the receipt that can be compared is so.
    in_part
        "identical in part": what was made again has the same bytes, but not all of the model can be made from these
        records alone.
    within
        "within", followed by a number: some head is not decided. The weights (in 2-norm) and the bias of every such
        head are as near as its certificates say, which is no further than the number; all else has the same bytes.
    different
        "different": made again from the retained records, it is another model.
    false
        "the receipt is false": something that it says is not so.
    superseded
        "superseded": later requests or fits changed the model.
    not_comparable
        "not comparable here": other hardware, versions or threads.

    Examples
    --------
    >>> Outcome("within 3.2e-12")
    <Outcome.within: 'within'>
    """

    identical = "identical"
    in_part = "identical in part"
    within = "within"
    different = "different"
    false = "the receipt is false"
    superseded = "superseded"
    not_comparable = "not comparable here"

    @classmethod
    def _missing_(cls, value: object) -> "Outcome | None":
        return cls.within if isinstance(value, str) and value.startswith(f"{cls.within} ") else None

    @property
    def meaning(self) -> str:
        """What it says of the model, in a sentence."""
        return MEANING[self]


MEANING = {
    Outcome.identical: "made again from the retained records, it has the same bytes, and what the receipt says is so",
    Outcome.in_part: (
        "what was made again from the retained records has the same bytes; not all of the model can be made from them"
    ),
    Outcome.within: (
        "made again from the retained records, weights and bias of every head are as near as its certificates say, and "
        "that is no further than this; they do not settle the last bytes"
    ),
    Outcome.different: "made again from the retained records, it is another one",
    Outcome.false: "something that it says is not so",
    Outcome.superseded: "later requests or fits changed the model since: what was replayed is its present state",
    Outcome.not_comparable: (
        "this machine, its versions or threads are not those that the model was made with, so that training again "
        "cannot give its bytes: the heads were solved again, from the stored features"
    ),
}
