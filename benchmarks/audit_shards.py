"""Core records forgotten by a model in shards, and then looked for: LeNet-5 on Fashion-MNIST, a core by hash.

    python benchmarks/audit_shards.py --device cuda --out benchmarks/audit_shards.json

Two models with the same seed forget the same core records. One trains the extractors again that saw them, so that an
audit should find nothing; the other keeps them, which shows what the audit would have found. The first is also replayed
from the raw records. What is done is written as soon as it is known.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from circumstances import circumstances
from maxrr import MaxRR
from maxrr.audit import AuditReport, audit
from maxrr.core import HashCore
from maxrr.data import Dataset, load
from maxrr.nets import LeNet5
from maxrr.progress import Line
from maxrr.unlearning import replay

KEY = "audit of shards"
CorePolicy = Literal["retrain", "keep-extractor"]
T = TypeVar("T")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="fashion-mnist")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--core", type=float, default=1 / 3)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=72)
    parser.add_argument("--records", type=int, default=500, help="core records to forget")
    parser.add_argument("--shadows", type=int, default=64)
    parser.add_argument("--policies", nargs="+", choices=get_args(CorePolicy), default=get_args(CorePolicy))
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    found: dict[str, Any] = {"options": {**vars(asked), "out": asked.out.name}, **circumstances()}
    for policy in asked.policies:
        for told in forget_and_look(policy, asked):
            found[policy] = told
            asked.out.write_text(json.dumps(found, indent=1) + "\n")
        print(json.dumps({policy: told}), flush=True)


def forget_and_look(policy: CorePolicy, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """One model: what is known of it, more and more."""
    training, test = load(asked.data)
    assert test is not None
    told: dict[str, Any] = {"seconds": {}}

    def timed(name: str, work: Callable[[], T]) -> T:
        started = time.perf_counter()
        result = work()
        told["seconds"][name] = round(time.perf_counter() - started, 2)
        return result

    model = MaxRR(
        LeNet5(training.shape, len(training.class_names)), HashCore(asked.core, key=KEY, shards=asked.shards),
        epochs=asked.epochs, device=asked.device, seed=0,
    )  # fmt: skip
    timed("fit", lambda: model.fit(training))
    ids = np.random.default_rng(0).choice(model.core_.ids, asked.records, replace=False)
    forgotten = training.select(ids)
    told["accuracy before"] = model.score(test)
    receipt = timed("request", lambda: model.unlearn(ids, core_policy=policy))
    told |= {"guarantee": receipt.guarantee, "reason": receipt.reason, "accuracy after": model.score(test)}
    yield told
    if policy == "retrain":
        bundle = model.bundle()
        told["replay"] = timed("replay", lambda: replay(receipt, bundle, training)).outcome
        yield told
    told["audit"] = timed("audit", lambda: summary(look(model, receipt, forgotten, test, asked)))
    yield told


def look(model: MaxRR, receipt: Any, forgotten: Dataset, test: Dataset, asked: argparse.Namespace) -> AuditReport:
    return audit(model, receipt, forgotten, test, shadows=asked.shadows, device=asked.device, progress=Line())


def summary(report: AuditReport) -> dict[str, Any]:
    """What was found, what could have been, and how well each attack tells the records from others."""
    return {
        "finding": asdict(report.finding), "with_records": report.with_records, "retrained": report.retrained,
        "attacks": {
            attack: {name: {"statistic": of.statistic, "p_value": of.p_value} for name, of in models.items()}
            for attack, models in report.attacks.items()
        },
    }  # fmt: skip


if __name__ == "__main__":
    main()
