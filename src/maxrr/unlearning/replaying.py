"""Replay: a fresh process trains again from the raw retained records, and the bytes are compared.

It gets the recipe, never the features or weights; those of the model are only there to be compared with. What cannot be
done again is said: an extractor that saw forgotten records cannot come out of the retained ones, so then the replay is
of the heads on that extractor.

A head whose certificates are decided, the model's and that of the fresh process, must have the same bytes. Where one of
them is not, both are known only up to the errors that they name, and must not be further apart than these add up to.
Beside the bytes, everything that the receipt says is compared with what was found.
"""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr import plain_text
from maxrr.core.choice import Choice, Words, words_of
from maxrr.data import Dataset
from maxrr.errors import OtherRecords, WorkerLostError
from maxrr.nets.initial_weights import given_weights
from maxrr.nets.inputs import as_array
from maxrr.nets.probe import Fingerprint
from maxrr.nets.public_weights import as_given
from maxrr.nets.training_function import SAME, OwnTraining
from maxrr.parallel.processes import call_in_fresh_process
from maxrr.plain_text import Shown
from maxrr.svm import Certificate
from maxrr.svm.certificate import EXACT, FORM
from maxrr.svm.heads import with_a_head
from maxrr.svm.validation import lengths
from maxrr.unlearning.actions import Outcome
from maxrr.unlearning.blueprint import Blueprint, extractor_tensors
from maxrr.unlearning.bundles import Bundle, check_parts, ids_of
from maxrr.unlearning.commitment import ExtractorHash, class_hmac, keyed_hash, weights_by_hmac
from maxrr.unlearning.conditions import ADOPTED
from maxrr.unlearning.consistency import contradictions, not_among
from maxrr.unlearning.model import MaxRR
from maxrr.unlearning.receipts import HeadCertificate, Receipt, is_exact, lasting_details, rounded_up
from maxrr.unlearning.tombstones import id_hmac, subject_hmac

WEIGHTS, INTERCEPTS, FEATURES = "head weights", "head intercepts", "features"
ROUNDING = 1.0 + 1e-6  # for the length of a record, which is not rounded up

NOT_COMPARED = (
    "who asked, by which policy, and how many of the records were core or influential: they are gone",
    "the state before the request",
    "when it was, how long it took, its reason in words, how many duplicates stayed, which requests "
    "were answered together with it, its ticket and dates, and which copies were lost",
    "which records were added when, whom the forgotten ones were about, and weights of classes without records",
    "what code of the caller's own does: networks, training functions and rules for the core are run as they are",
)
"""What doing it again cannot tell of any receipt."""


Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Replay(Shown):
    """What came out of a replay. It is true if and only if the outcome is "identical". `print` shows it in words.

    Attributes
    ----------
    outcome : str
        One of `Outcome`, of which "within" is followed by a number, as in "within 3.2e-12". With "within",
        `comparison` is the same; with "superseded" it is of the present state, and with "not comparable here" of the
        heads alone, from the stored features.
    made_again : str
        What the fresh process made, to be compared: "extractor and heads", "heads" or "nothing".
    comparison : str
        How near the model is to that: "identical", "within 3.2e-12" (or another number) or "different". "within" stands
        where a head is not decided: the weights (in 2-norm) and the bias of every such head are as near as its
        certificates say, which is no further than the number; all else has the same bytes.
    differs_most : str
        Which weights differ most from those made again; empty where none do.
    largest_difference : float
        By how much they differ.
    contradictions : list of str
        What the receipt or the bundle says that is not so.
    not_covered : str
        What of the model a replay cannot show, and why; empty where it shows all of it.
    not_compared : list of str
        What the receipt says that nobody can compare.
    seconds : float
        How long the replay took.
    """

    outcome: str
    made_again: str
    comparison: str
    differs_most: str
    largest_difference: float
    contradictions: list[str]
    not_covered: str
    not_compared: list[str]
    seconds: float

    def __bool__(self) -> bool:
        return self.outcome == Outcome.identical

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The outcome in words, each fact with its name. Contradictions are those called "not so"."""
        worst = f"{self.differs_most}, by {self.largest_difference:.1e}"
        return [
            ("outcome", self.outcome),
            ("that is", Outcome(self.outcome).meaning),
            ("made again", f"{self.made_again}: {self.comparison}"),
            *([("differs most", worst)] if self.differs_most else []),
            *(("not so", what) for what in self.contradictions),
            *([("not covered", self.not_covered)] if self.not_covered else []),
            ("not compared", "; ".join(self.not_compared)),
            ("took", plain_text.duration(self.seconds)),
        ]

    def __str__(self) -> str:
        return plain_text.facts(self.facts)

    def __repr__(self) -> str:
        return f"<Replay: {self.outcome}>"


def replay(receipt: Receipt, bundle: Bundle | MaxRR, dataset: Dataset) -> Replay:
    """Train again on the retained records in a fresh process, and compare.

    Parameters
    ----------
    receipt : Receipt
        Of the request to replay.
    bundle : Bundle or MaxRR
        From `MaxRR.bundle` or `Bundle.load`, of the same model; or the model itself.
    dataset : Dataset
        The raw records that the model was fitted on, and those that were added. Forgotten ones may be among them: they
        are left out before anything is trained. Others may not.

    Returns
    -------
    Replay
        The outcome, and what it rests on.

    Raises
    ------
    maxrr.errors.DataError
        The records are not those of the model: some are missing, or not as they are in the model;
        `maxrr.errors.UnknownRecords` where some are neither retained nor forgotten by it.
    ValueError
        The bundle is damaged, its heads are of another canonical form, or their certificates are too wide to show
        anything.
    """
    started = time.perf_counter()
    if isinstance(bundle, MaxRR):
        with bundle._lock:
            bundle._fitted.records.with_records(dataset)  # or how many are missing or have changed is said
            bundle = Bundle._of(bundle._fitted)
    dataset = bundle.retained(dataset)
    check(bundle, dataset)
    wrong = list(false_from_the_start(receipt, bundle, dataset))
    if wrong:
        return Replay(
            Outcome.false, "nothing", Outcome.different, "", 0.0, wrong, "", list(NOT_COMPARED),
            time.perf_counter() - started,
        )  # fmt: skip
    latest = is_latest(receipt, bundle)
    blueprint = bundle.blueprint
    comparable = blueprint.embeddings or blueprint.is_at_home  # heads have the same bytes on every machine
    other_code = blueprint.recipe.changed if isinstance(blueprint.recipe, OwnTraining) else ""
    seen_others = blueprint.frozen or bundle.facts.in_extractor or bundle.facts.technique
    rebuilds = comparable and not seen_others and not other_code
    made = make_again(bundle, dataset, rebuilds, comparable)
    expected: dict[str, NDArray[Any]] = {WEIGHTS: bundle.weights, INTERCEPTS: bundle.intercepts}
    if rebuilds:
        expected |= arrays(bundle.extractor)
    if comparable and not blueprint.embeddings:
        expected[FEATURES] = hash_of(bundle.features)
    pairs = zip(bundle.facts.heads, made.certificates, strict=False)
    rooms = [room(head.certificate, certificate, made.longest) for head, certificate in pairs]
    comparison, where, largest = compared(expected, made.weights, rooms)
    wrong = list(differences(receipt, bundle, dataset)) if latest else []
    if made.given != dict(blueprint.given):
        wrong.append("the network brings along other weights than the model's did")
    if differs := made.fingerprint.differs_from(Fingerprint(bundle.facts.layers, bundle.probe), exactly=comparable):
        wrong.append(f"the network is not the model's: {differs}")
    entirely = (rebuilds or blueprint.embeddings) and not blueprint.given
    outcome = outcome_of(comparison, wrong=bool(wrong), comparable=comparable, latest=latest, entirely=entirely)
    trained_again = rebuilds and comparison != Outcome.different
    missing = list(not_covered(bundle, trained_again))
    if not comparable:
        missing.append(
            "the features are the stored ones, because this machine, its versions or threads are not those of the "
            f"model: made here by the stored extractor they differ by at most {made.apart:.1e} of the largest"
        )
    if other_code:
        missing.append(f"the extractor, which was not trained again: {other_code}. Bring the module as it was")
    made_again = "extractor and heads" if rebuilds else "heads"
    not_compared = list(NOT_COMPARED)
    if not latest:
        not_compared.append("the state that the receipt tells of: the model has changed since")
    return Replay(
        outcome, made_again, comparison, where, largest, wrong, "; ".join(missing),
        not_compared, time.perf_counter() - started,
    )  # fmt: skip


def outcome_of(comparison: str, *, wrong: bool, comparable: bool, latest: bool, entirely: bool) -> str:
    """Name the outcome of a replay from its comparison."""
    if comparison == Outcome.different:
        return comparison
    if wrong:
        return Outcome.false
    if not comparable:
        return Outcome.not_comparable
    if not latest:
        return Outcome.superseded
    return Outcome.in_part if comparison == Outcome.identical and not entirely else comparison


def check(bundle: Bundle, dataset: Dataset) -> None:
    """Refuse a bundle that is damaged, of another canonical form, or about other records."""
    if not bundle.has(dataset):
        raise OtherRecords(
            "the records are not those that the model retains: they have the ids, but not the model's commitment, or "
            "content hash. Bring every record, weight and class as it was fitted, and replaced ones as they are now"
        )
    extractor = ExtractorHash(bundle.facts.layers, bundle.extractor)
    if extractor.with_heads(bundle.classes, bundle.weights, bundle.intercepts) != bundle.facts.model_hash:
        raise ValueError("the bundle is damaged: its weights do not have the hash that it names")
    if bundle.form != FORM:
        raise ValueError(
            f"the model's heads are in canonical form {bundle.form}, and this program makes form {FORM}: the same head "
            "has other bytes in each, so they are not compared. Use the maxrr that made the model, or fit it again"
        )
    heads = len(with_a_head(bundle.classes))
    if not len(bundle.facts.heads) == len(bundle.weights) == len(bundle.intercepts) == heads:
        raise ValueError("the bundle is damaged: it does not have one certificate for each head")
    if len(bundle.features) != (0 if bundle.blueprint.embeddings else len(bundle.ids)):
        raise ValueError("the bundle is damaged: its heads were fitted on other records than it has features of")
    check_parts(bundle)


def false_from_the_start(receipt: Receipt, bundle: Bundle, dataset: Dataset) -> Iterator[str]:
    """Find what is wrong with receipt or bundle before anything is trained."""
    if why := not_among(receipt, bundle.receipts):
        yield why
        return
    yield from contradictions(receipt)
    yield from lies(receipt, bundle)
    forgotten = {stone.id for stone in bundle.tombstones}
    held = sum(id_hmac(bundle.key, id_) in forgotten for id_ in dataset.ids.tolist())
    if held:
        yield f"{held} of the retained records are among the forgotten ones"
    names = tuple(dataset.class_names[label] for label in np.unique(dataset.labels).tolist())
    if bundle.classes != names:
        yield "the classes of the heads are not those of the records, or in another order"
    waiting = np.sort(ids_of(bundle.waiting))
    chosen = bundle.blueprint.core_ids(dataset.ids, dataset.subjects, bundle.choice.ids, waiting)
    by_rule = not bundle.facts.in_extractor and not bundle.facts.technique
    if by_rule and not np.array_equal(chosen, np.sort(bundle.choice.ids)):
        yield "the core is not the one that its rule gives"
    if not np.isin(waiting, bundle.blueprint.core_by_rule(dataset.ids, dataset.subjects)).all():
        yield "records wait for the core that its rule does not make core"
    said = Words(bundle.choice.depended_on, lasting_details(bundle.choice.details))
    if said != (words_of(bundle.blueprint.core, bundle.blueprint.network) or said):
        yield "what choosing the core depended on is not as its rule has it"


# What the receipt says, held against the model


def is_latest(receipt: Receipt, bundle: Bundle) -> bool:
    """Whether the receipt is about the model's present state."""
    after = bundle.commitment, keyed_hash(bundle.key, b"model", bundle.facts.model_hash)
    return (receipt.commitment_after, receipt.model_after) == after  # later requests may have found nothing to do


def lies(receipt: Receipt, bundle: Bundle) -> Iterator[str]:
    """Find false statements of a receipt about forgotten records, which later requests cannot have made false."""
    known = {stone.id.hex() for stone in bundle.tombstones} | bundle.people.keys()
    unknown = sum(id_hmac not in known for id_hmac in (*receipt.tombstones, *receipt.earlier_tombstones))
    if unknown:
        yield f"{unknown} of its records or people were not forgotten by this model"
    people = set(receipt.subject_tombstones or [])
    then = {person for person, gone in bundle.people.items() if gone.number == receipt.number}
    if not then <= people <= bundle.people.keys():
        yield "of other people than it names no record was left by this request"
    if receipt.previous != (bundle.receipts[receipt.number - 2] if receipt.number > 1 else ""):
        yield "it names another receipt before it than this model handed out"


def differences(receipt: Receipt, bundle: Bundle, dataset: Dataset) -> Iterator[str]:
    """Find statements of a receipt about the present state that do not hold."""
    blueprint, choice = bundle.blueprint, bundle.choice
    exact = is_exact(receipt.guarantee)
    found = bundle.conditions if exact else []
    facts = {
        "records_after": len(dataset),
        "commitment_after": bundle.commitment,
        "model_after": keyed_hash(bundle.key, b"model", bundle.facts.model_hash),
        "form": bundle.form,
        "seed": blueprint.seed,
        "recipe": blueprint.recipe_facts,
        "C": blueprint.C,
        "class_weights": weights_by_hmac(bundle.key, blueprint.class_weight),
        "weighted_records": None if dataset.weights is None else True,
        "environment": asdict(blueprint.environment),
        "core_depended_on": choice.depended_on,
        "core_details": lasting_details(choice.details),
        "core_left_in_extractor": len(bundle.facts.in_extractor),
        "conditions": found,
        "unconditional": exact and not found,
        "heads": [
            HeadCertificate.of(class_hmac(bundle.key, name), head.certificate)
            for name, head in zip(with_a_head(bundle.classes), bundle.facts.heads, strict=True)
        ],
    }
    for name, value in facts.items():
        if getattr(receipt, name) != value:
            yield f"{name} on the receipt is not what was found"
    yield from false_of_people(receipt, bundle, dataset)


def false_of_people(receipt: Receipt, bundle: Bundle, dataset: Dataset) -> Iterator[str]:
    """Find records about people of whom a receipt of the present state says that none is left."""
    people = receipt.subject_tombstones or []
    if not people:
        return
    if dataset.subjects is None:
        yield "it names people of whom no record is left, and the records say of nobody whom they are about"
        return
    here = {subject_hmac(bundle.key, person) for person in np.unique(dataset.subjects).tolist()}
    if held := len(here.intersection(people)):
        yield f"of {held} of the people of whom it says that no record is left, records are there"


def make_again(bundle: Bundle, dataset: Dataset, rebuilds: bool, comparable: bool) -> "FreshResult":
    """Train in a fresh process, which gets nothing of the model but what cannot be trained again."""
    blueprint = bundle.blueprint
    network = as_given(blueprint.network)
    code = [type(layer) for layer in network.modules()] if isinstance(network, nn.Module) else [network]
    for each in code:
        if "<" in (name := getattr(each, "__qualname__", "")):
            raise ValueError(f"the network is of {name}, which a fresh process cannot import: define it in a module")
    given = None if rebuilds else blueprint.stored_extractor(dict(bundle.extractor))
    stored = None if comparable else bundle.features
    try:
        return call_in_fresh_process(
            rebuild, blueprint, bundle.choice, dataset, given, stored,
            with_the_script=any(getattr(each, "__module__", None) == "__main__" for each in code),
        )  # fmt: skip
    except WorkerLostError as error:
        raise ValueError(
            "the fresh process ended before it was done. If your script defines the network, it is run again there: "
            "put what it does under `if __name__ == '__main__':`, or define the network in a module. Otherwise it may "
            "have run out of memory"
        ) from error


def not_covered(bundle: Bundle, trained_again: bool) -> Iterator[str]:
    """Say what this replay cannot show. Only training again shows what an adopted extractor was trained on."""
    recipe = bundle.blueprint.recipe
    shown = {ADOPTED} if trained_again else set()
    yield from (condition for condition in bundle.conditions if condition not in shown)
    if isinstance(recipe, OwnTraining) and recipe.observed not in ("", SAME) and not trained_again:
        yield f"whether it was trained so: run twice with one seed, {recipe.name} gave two networks ({recipe.observed})"


@dataclass(frozen=True, eq=False)
class FreshResult:
    """The results of the fresh process."""

    weights: dict[str, NDArray[Any]]  # of the heads, and of the extractor if that was trained again
    certificates: tuple[Certificate, ...]
    longest: float  # the length of the longest record that the heads were fitted on, as features
    apart: float  # how far stored features are from the ones made here
    fingerprint: Fingerprint  # of the extractor
    given: dict[str, str]  # the weights that the network brought along


def rebuild(
    blueprint: Blueprint, choice: Choice, dataset: Dataset, extractor: nn.Module | None,
    stored: NDArray[np.float64] | None,
) -> FreshResult:  # fmt: skip
    """Train extractor and heads from the records; only the heads, if an extractor is given. Runs in the fresh process.

    With stored features they are fitted on those.
    """
    records = dataset.in_order()
    trained = blueprint.train_extractor(records, choice) if extractor is None else extractor
    features = blueprint.embed(trained, records)
    apart = 0.0 if stored is None else float(np.max(np.abs(features - stored)) / max(np.max(np.abs(stored)), 1e-300))
    used = features if stored is None else stored
    heads = blueprint.fit_heads(used, records)
    found: dict[str, NDArray[Any]] = {WEIGHTS: heads.coef_, INTERCEPTS: heads.intercept_}
    if stored is None and not blueprint.embeddings:
        found[FEATURES] = hash_of(used)
    if extractor is None:
        found |= arrays(extractor_tensors(trained))
    longest = float(np.max(lengths(used)))
    said = blueprint.frozen or blueprint.start is not None
    given = {} if said else given_weights(blueprint.network)
    fingerprint = blueprint.rebuilt(trained, dataset.shape, dataset.inputs.dtype)[1]
    return FreshResult(found, heads.certificate_, longest, apart, fingerprint, given)


def arrays(weights: Mapping[str, torch.Tensor]) -> dict[str, NDArray[Any]]:
    """Return the extractor's weights as arrays, by name."""
    return {f"extractor {name}": as_array(value.detach().cpu()) for name, value in weights.items()}


def hash_of(features: NDArray[np.float64]) -> NDArray[np.uint8]:
    """The hash of all features, so that the fresh process need not send them."""
    content = np.ascontiguousarray(features, dtype=np.float64).tobytes()
    return np.frombuffer(hashlib.sha256(content).digest(), dtype=np.uint8)


Room = tuple[float, float] | None
"""How far apart the weights and the biases of a head may be; None where they must have the same bytes."""


def room(ours: Certificate, theirs: Certificate, longest: float) -> Room:
    """Return how far apart weights and bias of a head may be, by the certificates of model and replay."""
    if ours.decided and theirs.decided:
        return None
    if not 0.0 <= ours.weight_error * longest + ours.bias_error <= EXACT * ROUNDING:
        raise ValueError(f"the bundle shows nothing: a head's decision values are open by more than {EXACT:.0e}")
    return ours.weight_error + theirs.weight_error, ours.bias_error + theirs.bias_error


def compared(expected: Arrays, found: Arrays, rooms: Sequence[Room] = ()) -> tuple[str, str, float]:
    """Compare two sets of arrays: return the outcome, where they differ most, and by how much.

    Bytes are compared, but for heads with room; such a head is never called identical, because nothing says that the
    exact one has these bytes.
    """
    if expected.keys() != found.keys():
        return Outcome.different, "the layers of the extractor", np.inf
    worst, where, same = 0.0, "", True
    given = {row: space for row, space in enumerate(rooms) if space is not None}
    for name, array in expected.items():
        other = found[name]
        if array.shape != other.shape or array.dtype != other.dtype:
            return Outcome.different, name, np.inf
        if array.tobytes() == other.tobytes():
            continue
        if name == FEATURES:  # of which only the hashes are here
            same, where = False, where or name
            continue
        gaps = np.abs(array.astype(np.float64) - other.astype(np.float64))
        difference = float(np.max(np.nan_to_num(gaps, nan=np.inf, posinf=np.inf), initial=0.0))
        if difference >= worst:
            worst, where = difference, name
        if name in (WEIGHTS, INTERCEPTS):
            same = same and all(
                float(np.linalg.norm(gaps[row])) <= given[row][name == INTERCEPTS] if row in given
                else array[row].tobytes() == other[row].tobytes()
                for row in range(len(array))
            )  # fmt: skip
        else:
            same = False
    if not same:
        return Outcome.different, where, worst
    if given:
        return f"{Outcome.within} {rounded_up(max(map(max, given.values())))}", where, worst
    return Outcome.identical, where, worst
