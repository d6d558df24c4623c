"""MaxRR in memory: fit, predict, plan, unlearn, and receipts of what was done."""

import typing

from maxrr import lazily

__all__ = [
    "Action",
    "Bundle",
    "Guarantee",
    "HandedReceipt",
    "HeadCertificate",
    "Ids",
    "Inputs",
    "Labels",
    "Loss",
    "MaxRR",
    "NotAmongRecordsWarning",
    "OnReceipt",
    "Outcome",
    "Plan",
    "Receipt",
    "RecordKind",
    "Replay",
    "Technique",
    "check_about",
    "contradictions",
    "network_in",
    "replay",
    "replay_statement",
    "training_in",
]

if typing.TYPE_CHECKING:
    from maxrr.unlearning.actions import Action
    from maxrr.unlearning.aliases import Ids, Inputs, Labels
    from maxrr.unlearning.bundles import Bundle, network_in, training_in
    from maxrr.unlearning.consistency import contradictions
    from maxrr.unlearning.guarantees import Guarantee
    from maxrr.unlearning.model import MaxRR
    from maxrr.unlearning.outcomes import Outcome
    from maxrr.unlearning.plans import Plan
    from maxrr.unlearning.receipts import HeadCertificate, Loss, Receipt
    from maxrr.unlearning.recognition import OnReceipt
    from maxrr.unlearning.record_kind import RecordKind
    from maxrr.unlearning.replaying import Replay, replay
    from maxrr.unlearning.requests import Technique
    from maxrr.unlearning.statements import HandedReceipt, check_about, replay_statement
    from maxrr.unlearning.trained_elsewhere import NotAmongRecordsWarning
else:  # receipts can be read without PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "actions": ("Action",),
        "aliases": ("Ids", "Inputs", "Labels"),
        "bundles": ("Bundle", "network_in", "training_in"),
        "consistency": ("contradictions",),
        "guarantees": ("Guarantee",),
        "model": ("MaxRR",),
        "outcomes": ("Outcome",),
        "plans": ("Plan",),
        "receipts": ("HeadCertificate", "Loss", "Receipt"),
        "recognition": ("OnReceipt",),
        "record_kind": ("RecordKind",),
        "replaying": ("Replay", "replay"),
        "requests": ("Technique",),
        "statements": ("HandedReceipt", "check_about", "replay_statement"),
        "trained_elsewhere": ("NotAmongRecordsWarning",),
    })  # fmt: skip
