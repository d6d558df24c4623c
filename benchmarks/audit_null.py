"""Is an audit right about itself? Independent audits of honest models in ten situations, and of models that lie.

    python benchmarks/audit_null.py --rows rows.jsonl --seconds 540 --out benchmarks/audit_null.json

Started again with the same rows it goes on from there. `--docs benchmarks/audit.md` fills in the numbers there.

Rules, fixed before any result:

- *Records.* Digits of two kinds, the first 160 of the training part, a seventh of the labels wrong; 40 more to be added
  or to replace others; those of the test part to test with. An MLP with 12 features, 20 epochs: an audit takes seconds.
- *Audits.* 200 of each situation. Each has a request, a model and 64 shadow models of its own (39 retrained, 25 that
  kept the records), and no model is used twice, so that audits of a situation are independent, given the records. The
  model is fitted and forgets through the library, and LiRA decides by the library's own rule. Seeds are 10⁶ · (1001
  + number of the audit) + 1000 · number of the situation: none is tried and dropped. Ten audits with smaller seeds were
  a trial of this program, and are no part of the study.
- *Situations* (`SITUATIONS`). 20 core records are forgotten and the extractor is trained again, unless something else
  is said. Which records are forgotten is never chosen by the audited model: those that leave it 'untouched' are drawn
  from records outside the core that shape no head of twenty other models, those for 'refit' from records that shape
  heads of at least half of these. Ten are forgotten then, the guarantee is what it comes to, and each is told apart,
  too. 'Embeddings' are what a network trained on the eight other kinds of digits makes of the records, with an MLP of
  our own on top: an audit of an extractor that is frozen is refused. Of the three requests of a 'sequence' (20 core, 10
  other, 20 core records) the first is audited in even audits, the last in odd ones.
- *Told of honest models.* How often something is found (5 % are allowed) with a 95 % interval; the mean of p (41/80, if
  every rank among 39 is as likely), and of the ranks of the mean score on both sides; the share of each finding.
- *Models that lie*, in the situations 'hash core, retrain' and 'ranked core'. Each audit trains one of each kind, from
  a seed of its own: its extractor saw 10, 25, 50 or 100 % of the forgotten records, or all of them with the wrong
  class, or half of them rightly and half wrongly; its heads are fitted again without them. How often they are found,
  beside the power that the same audits tell for them without training any, and beside the former rule: the rank of the
  mean score on the high side alone.
"""

import argparse
import json
import os
import platform
import re
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.audit.attacks import Labels, Signals, interval
from maxrr.audit.auditing import evidence_of, in_their_place, labels_of
from maxrr.audit.case import make_case
from maxrr.audit.findings import (
    ALPHA,
    FOUND,
    INDISTINGUISHABLE,
    MIXED,
    NOT_ENOUGH,
    RELABELLED,
    SHARES,
    decide,
    rank_of_first,
)
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Maker, Shadows, shadow_models, with_and_without
from maxrr.core import HashCore, rank
from maxrr.core.choice import Choice
from maxrr.data import Dataset, load
from maxrr.nets import MLP, Recipe, embed, split, train
from maxrr.unlearning import MaxRR, Receipt

AUDITS, SHADOWS = 200, 64
KINDS, WRONG, RECORDS, SPARE = (3, 8), 1 / 7, 160, 40
RECIPE = Recipe(epochs=20, batch_size=16, lr=1e-2)
HASH, SHARDS = HashCore(0.5, key="study"), HashCore(0.5, key="study", shards=3)
OTHERS = 20  # models that say which records shape heads
EMBEDDED = 24  # numbers of an embedding

Ids = NDArray[Any]


@dataclass(frozen=True)
class Situation:
    """What is audited."""

    name: str
    among: str = "core"  # records from which the forgotten are drawn
    count: int = 20
    core: str = "hash"
    records: str = "pixels"
    earlier: str = ""  # what happened to the model before
    lies: bool = False  # whether models that lie are made, too


SITUATIONS = (
    Situation("hash core, untouched", among="quiet", count=10),
    Situation("hash core, refit", among="shaping", count=10),
    Situation("hash core, retrain", lies=True),
    Situation("shards", core="shards"),
    Situation("ranked core", core="ranked", lies=True),
    Situation("embeddings", records="embeddings"),
    Situation("weights", records="weights"),
    Situation("added", earlier="added"),
    Situation("replaced", earlier="replaced"),
    Situation("a sequence of requests", earlier="sequence"),
)


class Given:
    """A core that was chosen before: the same in every audit."""

    def __init__(self, ids: Ids) -> None:
        self.ids = ids

    def choose(self, network: Any, dataset: Dataset, **_: Any) -> Choice:
        ids = np.intersect1d(self.ids, dataset.ids)
        return Choice(ids, False, "a ranking that saw all records", {"kind": "given", "records": len(ids)})


# Records


@dataclass(frozen=True)
class Records:
    """Records to train on, more of them, and others to test with."""

    training: Dataset
    spare: Dataset
    test: Dataset


@dataclass(frozen=True)
class World:
    """All that audits have in common, none of it from a model that is audited."""

    records: dict[str, Records]
    drawn_from: dict[str, Ids]
    ranked: Ids


def of_kinds(records: Dataset, kinds: tuple[int, ...]) -> Dataset:
    """The digits of these kinds as rows."""
    wanted = np.flatnonzero(np.isin(records.labels, kinds))
    rows = records.inputs[wanted].reshape(len(wanted), -1)
    labels = np.searchsorted(kinds, records.labels[wanted])
    return Dataset(rows, labels, tuple(map(str, kinds)), records.ids[wanted])


def pixels() -> Records:
    """Two kinds of digits, a seventh of their labels wrong."""
    training, test = (of_kinds(part.in_order(), KINDS) for part in load("digits"))
    training = training.select(training.ids[: RECORDS + SPARE])
    wrong = np.random.default_rng(0).choice(len(training), round(WRONG * len(training)), replace=False)
    training = relabelled(training, wrong)
    return Records(training.select(training.ids[:RECORDS]), training.select(training.ids[RECORDS:]), test)


def relabelled(records: Dataset, rows: NDArray[Any]) -> Dataset:
    """The same records, these with the other class."""
    labels = records.labels.copy()
    labels[rows] = 1 - labels[rows]
    return replace(records, labels=labels)


def embedded(plain: Records) -> Records:
    """The same as embeddings, by a network that was trained on other kinds of digits."""
    others = of_kinds(load("digits")[0].in_order(), tuple(kind for kind in range(10) if kind not in KINDS))
    pretrained = train(MLP(64, 8, hidden=(EMBEDDED,)), others, 3 * 10**9, device="cpu", threads=1)
    extractor, _ = split(pretrained.network)

    def features(records: Dataset) -> Dataset:
        return replace(records, inputs=embed(extractor, records, device="cpu").astype(np.float32))

    return Records(features(plain.training), features(plain.spare), features(plain.test))


def weighted(plain: Records) -> Records:
    """The same with weights between a half and two."""
    weights = np.exp(np.random.default_rng(1).uniform(np.log(0.5), np.log(2.0), RECORDS))
    return Records(replace(plain.training, weights=weights), plain.spare, plain.test)


def network(records: Dataset) -> MLP:
    return MLP(records.inputs.shape[1], len(KINDS), hidden=(12,))


def fitted(training: Dataset, core: Any, seed: int) -> MaxRR:
    settings = {"epochs": RECIPE.epochs, "batch_size": RECIPE.batch_size, "lr": RECIPE.lr}
    return MaxRR(network(training), core, seed=seed, device="cpu", threads=1, **settings).fit(training)  # type: ignore[arg-type]


def world() -> World:
    plain = pixels()
    training = plain.training
    others = [fitted(training, HASH, 2 * 10**9 + number) for number in range(OTHERS)]
    states = [model._fitted for model in others]
    shaped = np.sum([np.isin(training.ids, state.records.ids[state.heads.support_]) for state in states], axis=0)
    outside = ~HASH.is_core(training.ids)
    drawn_from = {"quiet": shaped == 0, "shaping": 2 * shaped >= OTHERS}
    ranking = rank(network(training), training, range(10**9, 10**9 + 10), recipe=RECIPE, device="cpu")
    return World(
        {"pixels": plain, "embeddings": embedded(plain), "weights": weighted(plain)},
        {name: training.ids[outside & which] for name, which in drawn_from.items()},
        np.sort(ranking.top(RECORDS // 2)),
    )  # fmt: skip


# One audit


def audited(situation: Situation, number: int, shared: World, until: float) -> dict[str, Any] | None:
    """One audit; None if it is too late to begin it."""
    if time.time() > until:
        return None
    started = time.process_time()
    seed = 10**6 * (1001 + number) + 1000 * SITUATIONS.index(situation)
    random, records = np.random.default_rng(seed), shared.records[situation.records]
    core = {"hash": HASH, "shards": SHARDS, "ranked": Given(shared.ranked)}[situation.core]
    model = fitted(records.training, core, seed)
    taken = earlier(situation, model, records.spare, random)
    requests = [(shared.drawn_from.get(situation.among, model.core_.ids), situation.count)]
    if situation.earlier == "sequence":
        requests += [(np.setdiff1d(records.training.ids, model.core_.ids), 10), (model.core_.ids, situation.count)]
    answers: list[tuple[Receipt, Dataset]] = []
    for among, count in requests:
        ids = np.sort(random.choice(np.setdiff1d(among, taken), count, replace=False))
        taken = np.union1d(taken, ids)
        answers.append((model.unlearn(ids, core_policy="retrain"), records.training.select(ids)))
    receipt, forgotten = answers[0 if number % 2 == 0 else -1]
    facts = {"situation": situation.name, "number": number, "guarantee": receipt.guarantee}
    found = judged(situation, model, receipt, forgotten, records.test, seed)
    return facts | found | {"machine": platform.machine(), "seconds": round(time.process_time() - started, 2)}


def earlier(situation: Situation, model: MaxRR, spare: Dataset, random: np.random.Generator) -> Ids:
    """Let happen what happened before, and say which records it concerned: these are not drawn later."""
    if situation.earlier == "added":
        model.add(spare.select(random.choice(spare.ids, 20, replace=False)))
    if situation.earlier != "replaced":
        return np.array([], dtype=spare.ids.dtype)
    core = model.core_.ids
    sides = (core, np.setdiff1d(model.bundle().ids, core))
    ids = np.concatenate([random.choice(side, 5, replace=False) for side in sides])
    for id_, row in zip(ids.tolist(), random.choice(len(spare), len(ids), replace=False), strict=True):
        model.replace(id_, spare.inputs[row], spare.class_names[spare.labels[row]], core_policy="retrain")
    return ids


def judged(
    situation: Situation, model: MaxRR, receipt: Receipt, forgotten: Dataset, test: Dataset, seed: int
) -> dict[str, Any]:
    """What an audit says of the model, and of those that lie."""
    case = make_case(model, receipt, forgotten, test)
    shadows, labels = Shadows(case, "cpu"), labels_of(case)
    evidence, before = evidence_of(case, shadows.views(shadow_models(case, *with_and_without(SHADOWS))))
    theirs = in_their_place(evidence, "lira", evidence.remembering)
    whole = in_their_place(evidence, "lira", before)
    targets = {"honest": Signals.of(shadows.said(model), labels)}
    if situation.lies:
        targets |= liars(shadows.maker, labels, np.random.default_rng([seed, 1]))
    told: dict[str, Any] = {}
    for name, target in targets.items():
        finding = decide(evidence.scores("lira", target), theirs, whole)
        told[name] = {"p": finding.p_value, "high": finding.high, "low": finding.low, "words": finding.words}
    power = {name: of.rate for name, of in finding.power.items()}  # the same for all
    former = float(np.mean([rank_of_first(scores).high <= ALPHA + 1e-12 for scores in theirs]))
    return {"honest": told.pop("honest"), "lies": told, "power": power, "former power": former}


def liars(maker: Maker, labels: Labels, random: np.random.Generator) -> dict[str, Signals]:
    """One model of each kind that did something else than forget, with heads fitted again without the records."""
    gone, left, found = random.permutation(maker.gone), maker.cores[RETRAINED], {}
    for name, share in SHARES.items():
        core = np.sort(np.concatenate([left, gone[: round(share * len(gone))]]))
        found[name] = replace(maker, cores={**maker.cores, BEFORE: core})
    found[RELABELLED] = replace(maker, everything=relabelled(maker.everything, gone))
    found[MIXED] = replace(maker, everything=relabelled(maker.everything, gone[len(gone) // 2 :]))
    return {name: trained(lying, labels, int(random.integers(2**63))) for name, lying in found.items()}


def trained(maker: Maker, labels: Labels, seed: int) -> Signals:
    (extractor,) = maker.train(BEFORE, [seed], None)
    ((_, view),) = maker.seen(extractor, (KEPT,))
    return Signals.of(view, labels)


# Many audits


def summed_up(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """A summary of each situation, and of each guarantee where a situation has several."""
    for situation in SITUATIONS:
        all_ = [row for row in rows if row["situation"] == situation.name]
        counts = Counter(row["guarantee"] for row in all_)
        if not all_:
            continue
        yield {"situation": situation.name, "guarantees": dict(counts), **numbers_of(all_)}
        for guarantee in sorted(counts) if len(counts) > 1 else ():
            part = [row for row in all_ if row["guarantee"] == guarantee]
            yield {"situation": situation.name, "guarantee alone": guarantee, **numbers_of(part)}


def numbers_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """What was found in honest models, and in those that lie."""
    told = {name: float(np.mean([row["power"][name] for row in rows])) for name in rows[0]["power"]}
    lies = {name: told_of([row["lies"][name] for row in rows]) | {"told power": told[name]} for name in rows[0]["lies"]}
    former = float(np.mean([row["former power"] for row in rows]))
    honest = told_of([row["honest"] for row in rows])
    return {"audits": len(rows), "honest": honest, "told power": told, "former power": former, "lies": lies}


def told_of(findings: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers of some findings."""
    columns = {name: np.array([one[name] for one in findings]) for name in ("p", "high", "low")}
    low = {name: int(np.sum(values <= ALPHA + 1e-12)) for name, values in columns.items()}
    words = Counter(one["words"] for one in findings)
    count = len(findings)
    spread = float(columns["p"].std(ddof=1) / np.sqrt(count)) if count > 1 else None
    return {
        "found": low["p"], "rate": low["p"] / count, "interval": interval(low["p"], count),
        "former rule": low["high"], "former interval": interval(low["high"], count), "low side": low["low"],
        "mean p": float(columns["p"].mean()), "its error": spread,
        "mean high": float(columns["high"].mean()), "mean low": float(columns["low"].mean()),
        "words": {word: words[word] for word in (INDISTINGUISHABLE, FOUND, NOT_ENOUGH)},
    }  # fmt: skip


def tables(result: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The rows of the two tables in benchmarks/audit.md: of honest models, and of those that lie."""
    honest_rows, lying_rows = [], []
    for one in result["situations"]:
        honest, name = one["honest"], one["situation"]
        if "guarantee alone" in one:
            name = f"… `{one['guarantee alone']}` alone"
        words = " / ".join(str(honest["words"][word]) for word in (INDISTINGUISHABLE, FOUND, NOT_ENOUGH))
        error = "" if honest["its error"] is None else f" ± {honest['its error']:.2f}"
        honest_rows.append(row_of(
            name, str(one["audits"]), ranged(honest["rate"], honest["interval"]), f"{honest['mean p']:.2f}{error}",
            f"{honest['mean high']:.2f}", f"{honest['mean low']:.2f}", words,
        ))  # fmt: skip
        for kind, lie in one["lies"].items() if "guarantee alone" not in one else ():
            former = ranged(lie["former rule"] / one["audits"], lie["former interval"])
            now, told = ranged(lie["rate"], lie["interval"]), f"{100 * lie['told power']:.0f} %"
            lying_rows.append(row_of(name, kind, former, now, told, str(lie["words"][INDISTINGUISHABLE])))
    return honest_rows, lying_rows


def row_of(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def in_all(result: dict[str, Any]) -> str:
    """How many honest models are found in all situations, as benchmarks/audit.md says it."""
    whole = [one for one in result["situations"] if "guarantee alone" not in one]
    found, audits = sum(one["honest"]["found"] for one in whole), sum(one["audits"] for one in whole)
    return f"{found} of {audits:,} honest models, {ranged(found / audits, interval(found, audits))}"


def filled(page: str, result: dict[str, Any]) -> str:
    """The page with the numbers in its tables, and in the sentence that sums the first one up."""
    before, heading, after = page.partition("## Is an audit right about itself?\n")
    section, next_heading, rest = after.partition("\n## ")
    bodies = iter(tables(result))
    section = re.sub(r"(\|[-:|]+\|\n)((?:\|.*\n)*)", lambda table: table[1] + "\n".join(next(bodies)) + "\n", section)
    section = re.sub(r"\S+ of \S+ honest models, [^(]+ \([^)]*\)", in_all(result), section)
    section = re.sub(r"Measured on \S+", f"Measured on {result['date']}", section)
    return before + heading + section + next_heading + rest


def ranged(rate: float, between: tuple[float, float]) -> str:
    return f"{100 * rate:.1f} % ({100 * between[0]:.1f} to {100 * between[1]:.1f} %)"


def settle_in(cores: Any) -> None:
    """One core for each process."""
    os.sched_setaffinity(0, {cores.get()})
    torch.set_num_threads(1)


def made(asked: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The audits that are missing, as they are done."""
    there = {(row["situation"], row["number"]) for row in rows}
    left = [
        (situation, number)
        for number in range(asked.audits)
        for situation in SITUATIONS
        if (situation.name, number) not in there
    ]
    if not left:
        return
    until, shared, context = time.time() + asked.seconds, world(), get_context("spawn")
    cores, mine = context.Queue(), sorted(os.sched_getaffinity(0))
    for core in mine:
        cores.put(core)
    with ProcessPoolExecutor(len(mine), context, settle_in, (cores,)) as pool:
        for done in as_completed(pool.submit(audited, *one, shared, until) for one in left):
            if (row := done.result()) is not None:
                yield row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--audits", type=int, default=AUDITS, help="of each situation")
    parser.add_argument("--seconds", type=float, default=np.inf, help="after which none is begun")
    parser.add_argument("--rows", type=Path, required=True, help="a row for each audit; those in it are not made again")
    parser.add_argument("--out", type=Path, help="where the summary is written")
    parser.add_argument("--docs", type=Path, help="a page whose tables are filled in")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rows = [json.loads(text) for text in asked.rows.read_text().splitlines()] if asked.rows.exists() else []
    with asked.rows.open("a") as file:
        for row in made(asked, rows):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
    if not rows:
        return
    result = {
        "command": "python benchmarks/audit_null.py", "date": datetime.now(UTC).date().isoformat(),
        "torch": torch.__version__, "machines": Counter(row["machine"] for row in rows), "shadow models": SHADOWS,
        "situations": list(summed_up(rows)),
    }  # fmt: skip
    if asked.out:
        asked.out.write_text(json.dumps(result, indent=1) + "\n")
    if asked.docs:
        asked.docs.write_text(filled(asked.docs.read_text(encoding="utf-8"), result), encoding="utf-8")
    for rows_of_table in tables(result):
        print(*rows_of_table, sep="\n")
    print(in_all(result))
    for situation in SITUATIONS:
        seconds = [row["seconds"] for row in rows if row["situation"] == situation.name]
        print(f"{situation.name}: {len(seconds)} audits, {np.mean(seconds or [np.nan]):.1f} s of one core each")


if __name__ == "__main__":
    main()
