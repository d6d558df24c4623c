"""Is an audit right about itself? Hundreds of independent audits of honest models, and of models that kept something.

    python benchmarks/audit_null.py --audits 450 --out benchmarks/audit_null.json

Two kinds of digits, a seventh of the labels wrong, a small network, so that one audit takes seconds. Every audit has
a request, a model and shadow models of its own: no model is used twice, so that audits of a line are independent. Each
model is fitted and forgets through the library, and is judged by the library's own rule.

A line says, of honest models, how often something is found (at most 5 % is promised, over all guarantees that a
request may end with) and the mean of p (41/80, if every rank among 39 is as likely); of models whose extractor kept the
records, how often they are found, beside the power that the same audits report.
"""

import argparse
import copy
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.audit.auditing import in_their_place, labels_of
from maxrr.audit.case import make_case
from maxrr.audit.evidence import Evidence, Seen
from maxrr.audit.findings import is_found, rank_of_first
from maxrr.audit.roc import interval
from maxrr.audit.shadow_counts import ShadowCounts
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Shadows
from maxrr.core import Choice, FullCore, HashCore, rank
from maxrr.data import Dataset, load
from maxrr.nets import MLP, Recipe
from maxrr.unlearning import MaxRR

KINDS, WRONG, RECORDS, TEST = (3, 8), 1 / 7, 160, 80
RECIPE = Recipe(epochs=20, batch_size=16, lr=1e-2)
SHADOWS = 64
ATTACKS = ("lira", "lira-logit", "rmia", "loss", "threshold", "features", "probe")


class Given:
    """A core that was chosen before, by how often records are influential: the same in every audit."""

    def __init__(self, ids: NDArray[Any]) -> None:
        self.ids = ids

    def choose(self, network: Any, dataset: Dataset, **_: Any) -> Choice:
        ids = np.intersect1d(self.ids, dataset.ids)
        return Choice(ids, False, "a ranking that saw all records", {"kind": "given", "records": len(ids)})


@dataclass(frozen=True)
class Line:
    """What is audited: how the core is chosen, who is forgotten, and how many."""

    core: str
    request: str  # of the core, outside of it, or outside and influential in the very model
    count: int

    @property
    def name(self) -> str:
        return f"{self.core} core, {self.count} {self.request}"


LINES = (
    Line("hash", "of the core", 10),
    Line("hash", "outside", 10),
    Line("frequency", "of the core", 10),
    Line("frequency", "outside", 10),
    Line("full", "of the core", 10),
    Line("hash", "outside", 1),
    Line("hash", "outside, influential in the audited model", 10),
)


def side(records: Dataset, count: int) -> Dataset:
    """The digits of these kinds as rows."""
    wanted = np.flatnonzero(np.isin(records.labels, KINDS))[:count]
    labels = np.searchsorted(KINDS, records.labels[wanted])
    rows = records.inputs[wanted].reshape(len(wanted), -1)
    return Dataset(rows, labels, tuple(map(str, KINDS)), records.ids[wanted])


def data() -> tuple[Dataset, Dataset]:
    training, test = load("digits")
    training, test = side(training.in_order(), RECORDS), side(test.in_order(), TEST)
    random = np.random.default_rng(0)
    wrong = random.choice(len(training), round(WRONG * len(training)), replace=False)
    labels = training.labels.copy()
    labels[wrong] = (labels[wrong] + random.integers(1, len(KINDS), len(wrong))) % len(KINDS)
    return Dataset(training.inputs, labels, training.class_names, training.ids), test


def network() -> MLP:
    return MLP(64, len(KINDS), hidden=(12,))


def most_frequent(training: Dataset) -> NDArray[Any]:
    """Two fifths of the records by a ranking of ten networks, from seeds that nothing else has."""
    ranking = rank(network(), training, range(10**9, 10**9 + 10), recipe=RECIPE, device="cpu")
    return np.sort(ranking.top(2 * len(training) // 5))


def audited(line: Line, number: int, core_ids: NDArray[Any]) -> dict[str, Any]:
    """One audit: p of every attack for a model that forgot honestly, and for one whose extractor kept the records."""
    training, test = data()
    seed = 1000 * LINES.index(line) + 10**6 * (1 + number)
    random = np.random.default_rng(seed)
    core = {"hash": HashCore(0.4, key="study"), "full": FullCore(), "frequency": Given(core_ids)}[line.core]
    settings = {"epochs": RECIPE.epochs, "batch_size": RECIPE.batch_size, "lr": RECIPE.lr}
    model = MaxRR(network(), core, seed=seed, device="cpu", threads=1, **settings).fit(training)  # type: ignore[arg-type]
    among = model.core_.ids
    if line.request != "of the core":
        among = np.setdiff1d(training.ids, among)
    if "influential" in line.request:
        among = np.intersect1d(among, model.influential_ids())
    ids = np.sort(random.choice(among, line.count, replace=False))
    policies = {"honest": "retrain"} | ({"kept": "keep-extractor"} if line.request == "of the core" else {})
    asked = {}
    for name, policy in policies.items():
        copied = copy.deepcopy(model)
        asked[name] = copied, copied.unlearn(ids, core_policy=policy)
    facts = {"line": line.name, "number": number, "guarantee": asked["honest"][1].guarantee}
    return facts | {"machine": platform.machine()} | judged(asked, training.select(ids), test)


def judged(asked: dict[str, Any], forgotten: Dataset, test: Dataset) -> dict[str, Any]:
    model, receipt = asked["honest"]
    case = make_case(model, receipt, forgotten, test)
    maker = Shadows(case, "cpu", None, None)
    views = ShadowCounts.of(SHADOWS, case.touches_core).make(maker)
    labels = labels_of(case)
    seen = {kind: [Seen.of(view, labels) for view in of_kind] for kind, of_kind in views.items()}
    evidence = Evidence(seen[KEPT] or seen[BEFORE], seen[RETRAINED])
    targets = {"honest": maker.own(model)}
    if "kept" in asked:
        other, receipt = asked["kept"]
        targets["kept"] = Shadows(make_case(other, receipt, forgotten, test), "cpu", None, None).own(other)
    found: dict[str, Any] = {name: {} for name in (*targets, "power", "at_most")}
    for attack in ATTACKS if case.touches_core else ATTACKS[:5]:
        for name, view in targets.items():
            scores = evidence.scores(attack, Seen.of(view, labels))
            found[name][attack] = rank_of_first(evidence.statistics(attack, scores)).p
        for name, kind in (("power", KEPT if views[KEPT] else BEFORE), ("at_most", BEFORE)):
            others = in_their_place(evidence, attack, seen[kind])
            flagged = [is_found(evidence.statistics(attack, one)) for one in others]
            found[name][attack] = float(np.mean(flagged))
    return found


def summed_up(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A summary for each line, and for each guarantee where a line has several."""
    for line in LINES:
        of_line = [row for row in rows if row["line"] == line.name]
        guarantees = sorted({row["guarantee"] for row in of_line})
        groups = [guarantees, *([one] for one in guarantees if len(guarantees) > 1)]
        for group in groups:
            mine = [row for row in of_line if row["guarantee"] in group]
            if mine:
                yield {"line": line.name, "guarantee": ", ".join(group), "audits": len(mine)} | numbers_of(mine)


def numbers_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    for attack in rows[0]["honest"]:
        p = np.array([row["honest"][attack] for row in rows])
        found = int(np.sum(p <= 0.05 + 1e-12))
        facts[attack] = {
            "false positives": found / len(p), "interval": interval(found, len(p)), "mean p": float(p.mean()),
            "standard error": float(p.std(ddof=1) / np.sqrt(len(p))) if len(p) > 1 else None,
            "reported power": float(np.mean([row["power"][attack] for row in rows])),
            "its deviation": float(np.std([row["power"][attack] for row in rows])),
            "at most": float(np.mean([row["at_most"][attack] for row in rows])),
        }  # fmt: skip
        if "kept" in rows[0]:
            caught = sum(row["kept"][attack] <= 0.05 + 1e-12 for row in rows)
            facts[attack] |= {"kept ones found": caught / len(rows), "of them": interval(caught, len(rows))}
    return facts


def settle_in(cores: Any) -> None:
    """One core for each process."""
    os.sched_setaffinity(0, {cores.get()})
    torch.set_num_threads(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=450, help="of each line")
    parser.add_argument("--seconds", type=float, default=np.inf, help="after which no more are begun")
    parser.add_argument("--rows", type=Path, help="a file with a row for each audit; those in it are not made again")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    ids = most_frequent(data()[0])
    earlier = asked.rows.read_text() if asked.rows and asked.rows.exists() else ""
    rows = [json.loads(text) for text in earlier.splitlines()]
    there = {(row["line"], row["number"]) for row in rows}
    context, started = get_context("spawn"), time.perf_counter()
    cores = context.Queue()
    mine = sorted(os.sched_getaffinity(0))
    for core in mine:
        cores.put(core)
    with ProcessPoolExecutor(len(mine), context, settle_in, (cores,)) as pool:
        waiting = [
            pool.submit(audited, line, number, ids)
            for number in range(asked.audits)
            for line in LINES
            if (line.name, number) not in there
        ]
        for done in as_completed(waiting):
            rows.append(done.result())
            if asked.rows:
                with asked.rows.open("a") as file:
                    file.write(json.dumps(rows[-1]) + "\n")
            if time.perf_counter() - started > asked.seconds:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    result = {
        "command": f"python benchmarks/audit_null.py --audits {asked.audits}",
        "date": datetime.now(UTC).date().isoformat(), "torch": torch.__version__,
        "machines": Counter(row["machine"] for row in rows),
        "shadow models": SHADOWS, "lines": list(summed_up(rows)),
    }  # fmt: skip
    for one in result["lines"]:
        numbers = {name: round(value, 3) for name, value in one["lira"].items() if isinstance(value, float)}
        print(one["line"], one["guarantee"], one["audits"], numbers)
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
