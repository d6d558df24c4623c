"""`fig:unlearning_top_svs`, `fig:unlearning_nontop_svs`: in how many runs a forgotten record is claimed unlearned.

MaxRR's extractor saw the core, and its heads are fitted again without the forgotten records. The perfect model, for the
same seed, is trained as a whole on what is left. The paper's attack (`alg:mia`) then says of every forgotten record
whether it was a member; if not, it is 'claimed unlearned'.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lab.comparison import Cell, compare
from lab.confidence import OF_SCHEME, USUAL, Variant, losses
from lab.heads import Bools, Floats, Heads, Scheme
from lab.lab import Features, Lab
from lab.published import published
from lab.results import Json
from maxrr.audit.attacks import Threshold
from maxrr.parallel.engine import Threads, single_threaded_blas

T = TypeVar("T")
K = TypeVar("K", np.bool_, np.float64)
Model = tuple[Features, Heads]
Models = dict[str, list[Model]]  # by method, one for each run

METHODS = ("MaxRR", "perfect")
SCENARIOS = ("core20k", "core2k", "noncore20k", "noncore2k")
FIGURES = {"core20k": "claimed_unlearned_core", "noncore20k": "claimed_unlearned_noncore"}  # of the paper


@dataclass(frozen=True, eq=False)
class Scenario:
    """A request, and who stands for the members when the attack chooses its threshold."""

    name: str
    forgotten: NDArray[Any]
    members: Bools


def scenario(lab: Lab, name: str) -> Scenario:
    """The same request in all runs. Outside the core, the core is no member: the paper's appendix leaves it out."""
    core = lab.top(lab.profile.large)
    in_core = not name.startswith("non")
    among = core if in_core else lab.others(core)
    count = lab.profile.many if name.endswith("20k") else lab.profile.some
    forgotten = among if count == len(among) else lab.draw(among, count, SCENARIOS.index(name))
    members = ~lab.mask(forgotten) if in_core else ~lab.mask(np.union1d(core, forgotten))
    return Scenario(name, forgotten, members)


def collect_verdicts(lab: Lab) -> dict[str, Json]:
    """For each scenario accuracies, and for each way to probabilities the counts of verdicts; measured once."""
    results, seeds = lab.results("verification"), lab.seeds(lab.profile.few)
    return {
        name: results.piece(name, lambda name=name: answer_and_judge(lab, seeds, scenario(lab, name)))  # type: ignore[misc]
        for name in SCENARIOS
    }


def measure(lab: Lab) -> Json:
    """Accuracies, and how many records are claimed unlearned in how many runs."""
    cells: dict[str, dict[str, Json]] = {}
    curves: dict[str, Json] = {}
    found = collect_verdicts(lab)
    for name in SCENARIOS:
        paper = published().get(FIGURES.get(name, "")) if lab.comparable else None
        curves[name] = {}
        for method in METHODS:
            shares = shares_claimed(found[name], method)
            theirs = None
            if paper is not None:
                by_runs = paper["fraction_by_runs_claimed_unlearned"][method.lower()]
                theirs = [by_runs[str(runs)] for runs in range(paper["runs"] + 1)]
            accuracy = paper["accuracy"][method.lower()] if paper else None
            row = {"accuracy": compare(found[name]["accuracy"][method], "accuracy", accuracy)}
            row |= ends(shares, theirs if len(shares) == len(theirs or ()) else None)
            if theirs is not None and len(shares) == len(theirs):
                row["share in other columns than the paper's"] = compare([apart(shares, theirs)], "share")
            cells[f"{name}, {method}"] = {column: cell.to_json() for column, cell in row.items()}
            curves[name][method] = {"ours": shares, "paper": theirs}
    return lab.results("verification").finish({
        "part": "verification", "title": "Claimed unlearned", "runs": lab.profile.few, "cells": cells,
        "share_by_runs_claimed_unlearned": curves, "variants": variants(lab, found["core20k"]),
    })  # fmt: skip


def variants(lab: Lab, found: Json) -> Json:
    """What becomes of the paper's first figure with other ways to probabilities."""
    paper = published()[FIGURES["core20k"]]["fraction_by_runs_claimed_unlearned"]
    comparable = lab.comparable and lab.profile.few == published()[FIGURES["core20k"]]["runs"]
    return {
        variant: {
            f"{column}, {method}": cell.to_json()
            for method in METHODS
            for column, cell in ends(
                shares_claimed(found, method, variant), list(paper[method.lower()].values()) if comparable else None
            ).items()
        }
        for variant in OF_SCHEME[lab.profile.heads]
    }


def shares_claimed(found: Json, method: str, variant: Variant = USUAL) -> list[float]:
    """The share of forgotten records that are claimed unlearned in none, one, … all of the runs."""
    counts = found["claimed"][variant][method]
    return [count / sum(counts) for count in counts]


def apart(shares: Sequence[float], theirs: Sequence[float]) -> float:
    """The share of records that would have to move to another number of runs to make the histograms equal.

    >>> apart([0.5, 0.25, 0.25], [0.5, 0.0, 0.5])
    0.25
    """
    return sum(abs(ours - other) for ours, other in zip(shares, theirs, strict=True)) / 2.0


def ends(shares: Sequence[float], theirs: Sequence[float] | None) -> dict[str, Cell]:
    """Both ends of a histogram, where the paper's has most of its records."""
    return {
        "claimed in all runs": compare([shares[-1]], "share", theirs[-1] if theirs else None),
        "claimed in none": compare([shares[0]], "share", theirs[0] if theirs else None),
    }


def answer_and_judge(lab: Lab, seeds: Sequence[int], request: Scenario) -> Json:
    """What both methods give for one request."""
    models = answer(lab, seeds, request)
    found: Json = {
        "forgotten": len(request.forgotten),
        "accuracy": {method: lab.accuracies(*zip(*models[method], strict=True)) for method in METHODS},
        "claimed": {}, "same": {}, "close": {},
    }  # fmt: skip
    # Other ways to probabilities matter where the paper has a figure, and take as long as all else.
    for variant in OF_SCHEME[lab.profile.heads] if request.name == "core20k" else (USUAL,):
        for name, counts in tally_claims(lab, models, request, variant).items():
            found[name][variant] = counts
    return found


def answer(lab: Lab, seeds: Sequence[int], request: Scenario) -> Models:
    """The models of both methods after a request."""
    return fit_to_retained(lab, extract(lab, seeds, request), request, lab.profile.heads)


def extract(
    lab: Lab, seeds: Sequence[int], request: Scenario, methods: Sequence[str] = METHODS
) -> dict[str, list[Features]]:  # fmt: skip
    """All records under the extractors of both methods after a request, or of one of them, for each run."""
    found: dict[str, list[Features]] = {}
    if "MaxRR" in methods:
        found["MaxRR"] = lab.after_the_core[: len(seeds)]
    if "perfect" in methods:
        rest = lab.training.without(request.forgotten)
        found["perfect"] = lab.embed(lab.train(seeds, rest))
    return found


def fit_to_retained(lab: Lab, features: dict[str, list[Features]], request: Scenario, scheme: Scheme) -> Models:
    """These extractors with heads that are fitted to what is left."""
    return fit_heads(lab, features, ~lab.mask(request.forgotten), scheme)


def fit_heads(lab: Lab, features: dict[str, list[Features]], mask: Bools | None, scheme: Scheme) -> Models:
    """These extractors with heads that are fitted to the records of the mask; those of all methods in one go."""
    every = [one for seen in features.values() for one in seen]
    heads = lab.fit_heads(every, [mask] * len(every), scheme)
    models = list(zip(every, heads, strict=True))
    starts = np.cumsum([0, *map(len, features.values())])
    return {method: models[starts[at] : starts[at + 1]] for at, method in enumerate(features)}


def tally_claims(lab: Lab, models: Models, request: Scenario, variant: Variant) -> Json:
    """Records by the number of runs in which each method's are claimed unlearned, and both methods agree."""
    return tally({method: judge_runs(lab, models[method], request, variant) for method in METHODS})


def tally(claims: dict[str, Bools]) -> Json:
    """Records by the number of runs in which each method's are claimed unlearned, both get the same verdict, and by how
    close these numbers are: a difference of none counts as all runs."""
    runs = len(claims["MaxRR"])
    counts = {method: claims[method].sum(0) for method in METHODS}
    return {
        "claimed": {method: by_runs(counts[method], runs) for method in METHODS},
        "same": by_runs((claims["MaxRR"] == claims["perfect"]).sum(0), runs),
        "close": by_runs(runs - np.abs(counts["MaxRR"] - counts["perfect"]), runs),
    }


def by_runs(numbers: NDArray[np.int64], runs: int) -> list[int]:
    """How many records have each number of runs, from none to all."""
    counts: list[int] = np.bincount(numbers, minlength=runs + 1).tolist()
    return counts


def judge_runs(lab: Lab, models: Sequence[Model], request: Scenario, variant: Variant = USUAL) -> Bools:
    """Which forgotten records are claimed unlearned, (runs × records). The runs' sums are done side by side."""
    return judge_side_by_side(lambda model: judge(lab, *model, request, variant), models)


def judge_side_by_side(judge: Callable[[T], NDArray[K]], runs: Sequence[T]) -> NDArray[K]:
    """What a function says of each run, one thread per core, stacked."""
    with single_threaded_blas():
        return np.stack(list(Threads().map(judge, runs)))


def judge(lab: Lab, features: Features, heads: Heads, request: Scenario, variant: Variant) -> Bools:
    """The attack's verdicts on the forgotten records."""
    scores = heads.scores(features.training), heads.scores(features.test)
    kept = ~lab.mask(request.forgotten)
    return attack(lab, request, *losses(variant, heads, scores, (lab.training.labels, lab.test.labels), kept))


def attack(lab: Lab, request: Scenario, trained: Floats, others: Floats) -> Bools:
    """`alg:mia`: a record whose cross-entropy is below the best threshold is a member, any other claimed unlearned."""
    attack = Threshold.fit(trained[request.members], others)
    return np.asarray(trained[lab.mask(request.forgotten)] >= attack.threshold)
