"""MaxRR in memory: fit, predict, plan, unlearn, and receipts of what was done."""

import importlib
import typing

__all__ = [
    "Action",
    "Bundle",
    "Exported",
    "Guarantee",
    "HeadProof",
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
    from maxrr.unlearning.receipts import HeadProof, Receipt
else:
    _HOMES = {
        "Action": "actions",
        "Bundle": "bundles",
        "network_in": "bundles",
        "contradictions": "consistency",
        "Exported": "export",
        "export_onnx": "export",
        "Guarantee": "guarantees",
        "MaxRR": "model",
        "Plan": "plans",
        "Verdict": "proof",
        "prove": "proof",
        "HeadProof": "receipts",
        "Receipt": "receipts",
    }

    def __getattr__(name):
        """Import a name when it is first asked for: receipts can be read without PyTorch."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
