"""MaxRR in memory: fit, predict, plan, unlearn, and receipts of what was done."""

from maxrr.unlearning.actions import Action
from maxrr.unlearning.bundles import Bundle
from maxrr.unlearning.export import Exported, export_onnx
from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.model import MaxRR
from maxrr.unlearning.plans import Plan
from maxrr.unlearning.proof import Verdict, prove
from maxrr.unlearning.receipts import HeadProof, Receipt

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
    "export_onnx",
    "prove",
]
