"""MaxRR in memory: fit, predict, plan, unlearn, and receipts of what was done."""

from maxrr.unlearning.bundles import Bundle, network_in
from maxrr.unlearning.consistency import contradictions
from maxrr.unlearning.export import Exported, export_onnx
from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.model import MaxRR
from maxrr.unlearning.plans import Plan
from maxrr.unlearning.proof import Verdict, prove
from maxrr.unlearning.receipts import HeadProof, Receipt

__all__ = [
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
