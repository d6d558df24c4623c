"""Other ways from the same public weights: SISA, a ridge head, and cores that are chosen by a ranking.

SISA divides all records into parts, fine-tunes a network on each, and lets these vote by their mean probabilities; a
request trains the parts again that its records are in. Slices within a part are left out: they save at most half of
that and cost a copy of the weights for each. A ridge head is solved from a matrix of d × d sums, from which a record is
taken off exactly up to rounding; the network below never saw a record. For the paper's core and the middle one
networks are fine-tuned on all records to rank them, and then one on the core, as large as that of a tenth.
"""

import shutil
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab.lab import Lab
from lab.public_cases import PEOPLE, PUBLIC, REPEATS, Case, is_far, key_of, network_of, recipe_of, share_of
from lab.results import Json, Results
from lab.votes import by_mean
from maxrr import LinearSVM
from maxrr.core import rank
from maxrr.core.ranking import ranking_seeds
from maxrr.core.shards import Sharding
from maxrr.nets import embed, split, train
from maxrr.nets.naming import suited
from maxrr.nets.public_weights import GivenStart, hash_of_weights, made_with
from maxrr.nets.seeding import Network

SISA, RIDGE_HEAD, RANKED = "SISA", "ridge head", "ranked cores"
PARTS = {"digits": 2}  # of SISA's records; five elsewhere
RUNS = 3  # of the ranking, each on all records
VOTES = "votes"  # a folder for those of finished runs
RIDGE = 1e-3  # of the mean square of a feature times the records


def measure_others(lab: Lab, results: Results, penalty: float) -> None:
    """Measure all three, unless the file has them; of the far case the ridge head alone."""
    results.piece(RIDGE_HEAD, partial(try_ridge, lab), 0.0)
    if is_far(lab.profile):
        return
    results.piece(SISA, partial(try_sisa, lab, PARTS.get(lab.profile.data, 5)))
    results.piece(RANKED, partial(try_ranked, lab, penalty))


def lines(pieces: Json) -> list[Json]:
    """Their points of the figure, of those that were measured."""
    return [
        {"row": row_of(name, found), "start": name, "share": found["share"], "shards": 1, "stderr": None,
         "accuracy": found["accuracy"], "expected": found["expected"], "expected by person": found["by person"]}
        for name in (SISA, RIDGE_HEAD) if (found := pieces.get(name)) is not None
    ]  # fmt: skip


def row_of(name: str, found: Json) -> str:
    """The name of a row."""
    return f"{SISA}, {found['parts']} parts" if name == SISA else f"{RIDGE_HEAD}, no core"


def try_sisa(lab: Lab, parts: int) -> Json:
    """Train a network on each part, and let them vote."""
    case = Case(PUBLIC, 1.0 / parts, 0)
    network, recipe = start_of(lab, case), recipe_of(lab, case)
    part_of = Sharding(parts, key_of(lab, case).encode(), by="record").of(lab.training.ids)
    scores, seconds = [], []
    for part in range(parts):
        started = perf_counter()
        mine = lab.training.select(lab.training.ids[part_of == part])
        trained = train(network, mine, lab.seed + part, recipe=recipe, device=lab.device, progress=lab.progress)
        seconds.append(perf_counter() - started)
        scores.append(embed(trained.network, lab.test, device=lab.device))
    each = float(np.mean(seconds))
    touched = {count: parts * (1.0 - (1.0 - 1.0 / parts) ** count) for count in PEOPLE}
    return {
        "parts": parts, "share": 1.0 / parts, "accuracy": float(np.mean(by_mean(np.stack(scores)) == lab.test.labels)),
        "of one part": [float(np.mean(one.argmax(1) == lab.test.labels)) for one in scores],
        "seconds": seconds, "recipe": recipe.facts, "expected": {str(count): each * touched[count] for count in PEOPLE},
        "by person": {str(count): each for count in PEOPLE},
    }  # fmt: skip


def try_ridge(lab: Lab) -> Json:
    """Fit the head, and forget random records of a person from it."""
    network = made_with(network_for(lab, Case(PUBLIC, 0.0, 0)), 0)
    X, others = (with_ones(embed(network, side, device=lab.device), lab.device) for side in (lab.training, lab.test))
    strength = RIDGE * len(X) * float((X[:, :-1] ** 2).mean())
    Y = one_hot(lab.training.labels, len(lab.training.class_names)).to(X)
    inverse = torch.linalg.inv(X.T @ X + strength * torch.eye(X.shape[1]).to(X))
    products = X.T @ Y
    predicted = (others @ inverse @ products).argmax(1).cpu().numpy()
    seconds = {}
    for count in PEOPLE:
        drawn = (lab.training.rows(lab.draw(lab.training.ids, count, count, trial)) for trial in range(REPEATS + 1))
        taken = [seconds_of(inverse, products, X[rows], Y[rows]) for rows in drawn]
        seconds[str(count)] = median(taken[1:])  # libraries are loaded in the first
    accuracy = float(np.mean(predicted == lab.test.labels))
    return {"share": 0.0, "accuracy": accuracy, "expected": seconds, "by person": seconds}


def try_ranked(lab: Lab, penalty: float) -> Json:
    """Rank all records, and train on those that are influential most often, and half of the time."""
    whole, small = Case(PUBLIC, 1.0, 0), Case(PUBLIC, share_of(lab.profile), 0)
    count, seeds, folder = round(small.share * len(lab.training)), ranking_seeds(lab.seed, RUNS), lab.out / VOTES
    ranking = rank(
        start_of(lab, whole), lab.training, seeds, C=penalty, recipe=recipe_of(lab, whole), device=lab.device,
        folder=folder, progress=lab.progress,
    )  # fmt: skip
    cores = {"most often": ranking.top(count), "middle": ranking.nearest(0.5, count)}
    found = {name: try_core(lab, small, ids, penalty) for name, ids in cores.items()}
    shutil.rmtree(folder)
    return {"runs": RUNS, "ever": ranking.ever, "always": ranking.always, **found}


def try_core(lab: Lab, case: Case, ids: NDArray[Any], penalty: float) -> Json:
    """Train on a core, fit heads on all records, and count the records of each kind."""
    core = lab.training.select(ids).in_order()
    seed, recipe = lab.seed + case.seed, recipe_of(lab, case)
    trained = train(start_of(lab, case), core, seed, recipe=recipe, device=lab.device, progress=lab.progress)
    extractor = split(trained.network)[0]
    features, others = (embed(extractor, side, device=lab.device) for side in (lab.training, lab.test))
    heads = LinearSVM(C=penalty).fit(torch.from_numpy(features).to(lab.device), lab.training.labels)
    right = np.mean(heads.predict(others) == lab.test.labels)
    rows = np.arange(len(lab.training))
    is_core, shapes = np.isin(lab.training.ids, ids), np.isin(rows, heads.support_)
    return {
        "accuracy": float(right), "core": int(is_core.sum()), "influential": int(np.sum(shapes & ~is_core)),
        "free": int(np.sum(~shapes & ~is_core)),
    }  # fmt: skip


def start_of(lab: Lab, case: Case) -> GivenStart:
    """The network of a case with its given weights, and one output for each class."""
    network = network_for(lab, case)
    return GivenStart(network, hash_of_weights(made_with(network, 0)), len(lab.training.class_names))


def network_for(lab: Lab, case: Case) -> Network:
    """The network of a case, for these records."""
    return suited(network_of(lab, case)[0], lab.training.shape, len(lab.training.class_names))


def seconds_of(inverse: Tensor, products: Tensor, gone: Tensor, labels: Tensor) -> float:
    """Take records off by Woodbury's identity, and solve; return the seconds that it took."""
    started = perf_counter()
    without(inverse, products, gone, labels)[0].cpu()
    return perf_counter() - started


def without(inverse: Tensor, products: Tensor, gone: Tensor, labels: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The weights without some records, and the inverse and the products that they follow from."""
    reach = inverse @ gone.T
    left = inverse + reach @ torch.linalg.solve(torch.eye(len(gone)).to(gone) - gone @ reach, reach.T)
    rest = products - gone.T @ labels
    return left @ rest, left, rest


def with_ones(features: NDArray[Any], device: torch.device) -> Tensor:
    """Features in float64 on the device, and a column of ones for the intercept, which is kept small as the rest is."""
    X = torch.from_numpy(features).to(device, torch.float64)
    return torch.cat([X, torch.ones_like(X[:, :1])], dim=1)


def one_hot(labels: NDArray[Any], classes: int) -> Tensor:
    """+1 in the column of a record's class, −1 elsewhere."""
    return torch.from_numpy(np.where(labels[:, None] == np.arange(classes), 1.0, -1.0))
