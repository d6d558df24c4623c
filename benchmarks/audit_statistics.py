"""Which statistic should decide an audit? What four of them find, in models that forgot and in models that lie.

    python benchmarks/audit_statistics.py --out benchmarks/audit_statistics.json

Records, networks and lies are those of `audit_null.py`. One request of 20 core records, 400 models retrained without
them, 120 that kept them and 120 of each lie; then 400 times 39, 25 and one of these are drawn for an audit. The audits
share models, so that they compare the statistics, and say little of other requests: `audit_null.py` does that for the
one that was chosen. Its weights were chosen on two such pools.
"""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from audit_null import HASH, fitted, liars, pixels
from circumstances import circumstances
from maxrr.audit.attacks import Signals, lira
from maxrr.audit.auditing import labels_of
from maxrr.audit.case import make_case
from maxrr.audit.findings import ALPHA, beside_others, oddness
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Shadows

Floats = NDArray[np.float64]
SEED, FORGOTTEN, HONEST, OTHERS, AUDITS = 4 * 10**9, 20, 400, 120, 400


def standardised(values: Floats) -> Floats:
    away, spread = beside_others(values)
    return np.asarray(away / spread)


def mean(scores: Floats) -> Floats:
    return standardised(scores.mean(axis=1))


def squares(scores: Floats) -> Floats:
    return standardised(np.sum(standardised(scores) ** 2, axis=1))


STATISTICS: dict[str, Callable[[Floats], Floats]] = {
    "mean, on the high side": mean,
    "mean, on both sides": lambda scores: np.abs(mean(scores)),
    "the larger of |mean| and Σz²": lambda scores: np.maximum(np.abs(mean(scores)), squares(scores)),
    "the one that decides": oddness,
}


def signals() -> dict[str, Floats]:
    """What LiRA looks at, of all models by what they did with the records."""
    records, random = pixels(), np.random.default_rng(SEED)
    model = fitted(records.training, HASH, SEED)
    ids = np.sort(random.choice(model.core_.ids, FORGOTTEN, replace=False))
    receipt = model.unlearn(ids, core_policy="retrain")
    case = make_case(model, receipt, records.training.select(ids), records.test)
    maker, labels = Shadows(case, "cpu").maker, labels_of(case)

    def made(core: str, kind: str, first: int, count: int) -> list[Signals]:
        seeds = range(SEED + first, SEED + first + count)
        views = (view for extractor in maker.train(core, seeds, None) for _, view in maker.seen(extractor, (kind,)))
        return [Signals.of(view, labels) for view in views]

    found = {"honest": made(RETRAINED, RETRAINED, 10**6, HONEST), "kept": made(BEFORE, KEPT, 2 * 10**6, OTHERS)}
    for number in range(OTHERS):
        for name, lie in liars(maker, labels, np.random.default_rng([SEED, number])).items():
            found.setdefault(name, []).append(lie)
    return {name: np.stack([one.above_test for one in models]) for name, models in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    of, random = signals(), np.random.default_rng(SEED)
    kept = of.pop("kept")
    hits: dict[str, dict[str, int]] = {statistic: dict.fromkeys(of, 0) for statistic in STATISTICS}
    for _ in range(AUDITS):
        retrained = of["honest"][random.choice(HONEST, 40, replace=False)]
        seen = kept[random.choice(OTHERS, 25, replace=False)]
        for name, models in of.items():
            target = retrained[0] if name == "honest" else models[random.integers(len(models))]
            scores = lira(np.vstack([target, retrained[1:]]), seen)
            for statistic, function in STATISTICS.items():
                odd = function(scores)
                hits[statistic][name] += int(1 + np.sum(odd[1:] >= odd[0]) <= ALPHA * len(odd) + 1e-9)
    rates = {one: {name: count / AUDITS for name, count in of_one.items()} for one, of_one in hits.items()}
    for name in of:
        print(f"{name:30}", *(f"{rates[one][name]:6.2f}" for one in STATISTICS))
    if asked.out:
        result: dict[str, Any] = {"circumstances": circumstances(), "audits": AUDITS, "found": rates}
        asked.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
