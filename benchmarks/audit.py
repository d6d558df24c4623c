"""What strong attacks find of forgotten records: LeNet-5 on Fashion-MNIST, a core of a third by hash.

    python benchmarks/audit.py --device cuda --out benchmarks/audit.json

Three requests of 1,000 records each, to three copies of one model: core records with the head moved (approximate-refit)
and with the extractor trained again (exact-retrain), and influential ones outside the core (exact-refit). Each is
audited with 128 shadow models; on one H200 that takes about nine minutes.
"""

import argparse
import copy
import json
import platform
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from maxrr.audit import audit
from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import LeNet5
from maxrr.progress import Line
from maxrr.unlearning import MaxRR

ATTACKS = ("threshold", "lira", "rmia", "lira-offline", "loss")
CURVES = ("threshold", "lira", "rmia")  # kept for drawing, of the models before and after


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--shadows", type=int, default=128)
    parser.add_argument("--records", type=int, default=1000, help="of a request")
    parser.add_argument("--epochs", type=int, default=18)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    training, test = load(asked.data)
    network = LeNet5(training.shape, len(training.class_names))
    model = MaxRR(network, HashCore(1 / 3, key="benchmark"), epochs=asked.epochs, device=asked.device)
    model.fit(training, report=Line())
    core = model.core_.ids
    influential = np.setdiff1d(model.influential_ids(), core)
    draw = np.random.default_rng(0).choice
    some_core, some_influential = (np.sort(draw(ids, asked.records, replace=False)) for ids in (core, influential))
    result: dict[str, Any] = {
        "command": f"python benchmarks/audit.py --data {asked.data} --device {asked.device} --shadows {asked.shadows} "
        f"--records {asked.records} --epochs {asked.epochs}",
        "date": datetime.now(UTC).date().isoformat(), "machine": platform.machine(), "torch": torch.__version__,
        "device": torch.cuda.get_device_name() if asked.device == "cuda" else "cpu",
        "accuracy": model.score(test), "audits": {},
    }  # fmt: skip
    for ids, policy in ((some_core, "head"), (some_core, "retrain"), (some_influential, "head")):
        audited = copy.deepcopy(model)
        receipt = audited.unlearn(ids, core_policy=policy)
        started = time.perf_counter()
        found = audit(
            audited, receipt, training.select(ids), test, attacks=ATTACKS, shadows=asked.shadows, device=asked.device
        )  # fmt: skip
        seconds = time.perf_counter() - started
        facts = thinned(asdict(found))
        facts |= {"words": str(found.verdict), "accuracy": audited.score(test), "audit_seconds": seconds}
        result["audits"][receipt.guarantee] = facts
        print(f"{receipt.guarantee}: {found} ({facts['audit_seconds']:.0f} s)", flush=True)
        for attack, by_model in found.findings.items():
            for name, one in by_model.items():
                assert one.curve is not None
                low, high = one.curve.auc_of_retrained
                print(
                    f"  {attack:16} {name:10} AUC {one.curve.auc:.3f}, retrained {low:.3f} to {high:.3f}; "
                    f"TPR at 0.1 % {one.curve.tpr_at_01:.4f}; p {one.p_value:.3f}"
                )
        if asked.out:
            asked.out.write_text(json.dumps(result, indent=1) + "\n")


def thinned(facts: dict[str, Any]) -> dict[str, Any]:
    """Without the curves that nobody draws."""
    for attack, by_model in facts["findings"].items():
        for name, one in by_model.items():
            if attack not in CURVES or name not in ("before", "after"):
                del one["curve"]["fpr"], one["curve"]["tpr"]
            else:
                one["curve"]["fpr"], one["curve"]["tpr"] = (
                    [round(value, 6) for value in one["curve"][axis]] for axis in ("fpr", "tpr")
                )
    return facts


if __name__ == "__main__":
    main()
