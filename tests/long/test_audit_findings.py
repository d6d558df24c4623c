"""Models that kept what they say they forgot are found, and honest ones are not: dozens of shadow models each."""

from scipy.stats import betabinom

from maxrr.audit import audit
from maxrr.audit.auditing import labels_of
from maxrr.audit.findings import FOUND
from maxrr.audit.shadows import KEPT, RETRAINED
from tests.audit.problems import (
    ENOUGH,
    NOISY,
    WRONG,
    asked,
    finding_on,
    fitted,
    keeping_secretly,
    shadows_of,
)  # fmt: skip


def test_a_core_record_that_was_kept_and_repeated_is_found():
    """A wrongly labelled one, since no audit can find what a model would have known anyway."""
    honest = asked(WRONG[[2]], "overfitted", core_policy="retrain")
    secret = keeping_secretly(honest, times=50)
    found = audit(*secret, shadows=ENOUGH)
    assert found.finding.words == FOUND
    assert (found.guarantee, found.records) == ("exact-retrain", 1)  # so the receipt says
    for attack in ("lira", "rmia"):
        after, retrained = (found.attacks[attack][name].statistic for name in ("after", "retrained"))
        assert after > retrained


def test_an_overfitted_extractor_is_found_out_and_retraining_is_not():
    """Every record is core, and training went on until wrong labels were learned: to refit the head is not enough.

    Of ten honest models more would be flagged with a chance of 1e-3 at the stated rate. They share those that they are
    compared with, so the rate is itself drawn: that of being above the largest of so many.
    """
    now = asked(WRONG[:6], "overfitted")
    evidence, maker = shadows_of(now)
    others, labels = range(10), labels_of(maker.case)
    views = maker.views([((KEPT, RETRAINED), others)])
    head_only, honest = views[KEPT], views[RETRAINED]
    assert fitted("overfitted").score(NOISY) > 0.9
    assert finding_on(maker.own(now.model), evidence, labels).words == FOUND
    assert sum(finding_on(view, evidence, labels).words == FOUND for view in head_only) >= 9
    flagged = sum(finding_on(view, evidence, labels).words == FOUND for view in honest)
    assert flagged <= betabinom.isf(1e-3, 10, 1, len(evidence.retrained))
