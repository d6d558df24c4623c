"""MaxRR in memory: fit, predict, plan, unlearn, and receipts of what was done."""

import typing

from maxrr import lazily

__all__ = [
    "Action",
    "Bundle",
    "Exported",
    "Guarantee",
    "HeadCertificate",
    "MaxRR",
    "Plan",
    "Receipt",
    "Verdict",
    "contradictions",
    "export_onnx",
    "network_in",
    "prove",
]

if typing.TYPE_CHECKING:
    from maxrr.unlearning.actions import Action
    from maxrr.unlearning.bundles import Bundle, network_in
    from maxrr.unlearning.consistency import contradictions
    from maxrr.unlearning.export import Exported, export_onnx
    from maxrr.unlearning.guarantees import Guarantee
    from maxrr.unlearning.model import MaxRR
    from maxrr.unlearning.plans import Plan
    from maxrr.unlearning.proof import Verdict, prove
    from maxrr.unlearning.receipts import HeadCertificate, Receipt
else:  # receipts can be read without PyTorch
    __getattr__ = lazily.names_from(__name__, {
        "actions": ("Action",),
        "bundles": ("Bundle", "network_in"),
        "consistency": ("contradictions",),
        "export": ("Exported", "export_onnx"),
        "guarantees": ("Guarantee",),
        "model": ("MaxRR",),
        "plans": ("Plan",),
        "proof": ("Verdict", "prove"),
        "receipts": ("HeadCertificate", "Receipt"),
    })  # fmt: skip
