"""What a request is promised: one of four guarantees, the same on every plan and receipt."""

from enum import StrEnum


class Guarantee(StrEnum):
    """What the model is after a request, from the cheapest to the dearest.

    Attributes
    ----------
    untouched
        "exact-untouched": no requested record is core or influential. The model stays as it is.
    refit
        "exact-refit": the heads are those that a fit on the retained records gives, and the extractor was not trained
        on the forgotten ones.
    approximate
        "approximate-refit": the heads are fitted without the records, but the model is not the one that training
        without them gives. An audit is due.
    retrain
        "exact-retrain": the extractor is trained again without the records, with the recorded seed, and then the heads.
    """

    untouched = "exact-untouched"
    refit = "exact-refit"
    approximate = "approximate-refit"
    retrain = "exact-retrain"

    @property
    def exact(self) -> bool:
        """Whether the model is the one that training without the records gives."""
        return self is not Guarantee.approximate
