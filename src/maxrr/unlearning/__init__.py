"""MaxRR in memory: fit, predict, plan, unlearn, and receipts of what was done."""

import typing

from maxrr import lazily

__all__ = [
    "Action",
    "Bundle",
    "Guarantee",
    "Outcome",
    "Plan",
    "Receipt",
    "Replay",
    "advise",
    "contradictions",
    "replay",
]

if typing.TYPE_CHECKING:
    from maxrr.unlearning.actions import Action, Guarantee, Outcome
    from maxrr.unlearning.advising import advise
    from maxrr.unlearning.bundles import Bundle
    from maxrr.unlearning.consistency import contradictions
    from maxrr.unlearning.model import MaxRR as MaxRR
    from maxrr.unlearning.plans import Plan
    from maxrr.unlearning.receipts import Receipt
    from maxrr.unlearning.replaying import Replay, replay
else:  # receipts can be read without PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "actions": ("Action", "Guarantee", "Outcome"),
        "advising": ("advise",),
        "bundles": ("Bundle",),
        "consistency": ("contradictions",),
        "model": ("MaxRR",),
        "plans": ("Plan",),
        "receipts": ("Receipt",),
        "replaying": ("Replay", "replay"),
    })  # fmt: skip
