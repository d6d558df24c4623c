"""A fitted model ⇄ typed facts, words, arrays and secrets: workspaces and bundles are made of these.

A network is known by its name. Ours are made again from it; other code is run only if the caller names it.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.core import Core, FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.choice import Choice
from maxrr.data.fields import as_facts
from maxrr.files import from_plain, to_plain
from maxrr.nets.naming import NamedNetwork, as_recorded, name_of
from maxrr.nets.probe import Fingerprint
from maxrr.nets.public_weights import GivenStart, GivenWeights
from maxrr.nets.recipe import Environment
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction, training_of
from maxrr.svm.problem import Head
from maxrr.svm.snapshot import restored, taken
from maxrr.svm.validation import penalty
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.commitment import Commitment
from maxrr.unlearning.conditions import START
from maxrr.unlearning.facts import CoreFacts, Facts, HeadFacts, NetworkFacts, Secrets, Sources, Words
from maxrr.unlearning.receipts import FUNCTION, RUN_TWICE
from maxrr.unlearning.records import HeldRecords
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.tombstones import Forgotten, Layered, Tombstones

HASHED_WITH: dict[Any, str] = {
    FrequencyCore: "tie_breaker", MiddleCore: "tie_breaker", HashCore: "key", FullCore: "key",
}  # fmt: skip
CORES: dict[str, Any] = {kind.__name__: kind for kind in HASHED_WITH}

# From a model


def facts_of(fitted: ModelState, network: NetworkFacts | None) -> Facts:
    """Return the facts of a model: everything but arrays, secrets, and what would tell of a record or a class."""
    made, choice, records = fitted.blueprint, fitted.choice, fitted.records
    return Facts(
        network=network, core=core_facts(made.core), shards=made.sharding.count, frozen=made.frozen, seed=made.seed,
        recipe=made.recipe_facts, C=made.C, device=made.device, threads=made.threads,
        environment=asdict(made.environment), given=dict(made.given), drafted=made.drafted,
        unconditional=choice.unconditional, depended_on=choice.depended_on, details=dict(choice.details),
        dtype=as_facts(records.dtype), shape=records.shape, layers=fitted.fingerprint.layers,
        heads=tuple(HeadFacts(label, head.certificate) for label, head in taken(fitted.heads)),
        durations=fitted.durations, layouts=fitted.layouts, in_extractor=fitted.in_extractor,
        stale=fitted.stale if made.sharding.count > 1 else frozenset(), untrained=fitted.untrained,
        technique=fitted.technique, adopted=fitted.adopted, set_aside=fitted.set_aside, losses=fitted.losses,
        model_hash=fitted.model_hash,
    )  # fmt: skip


def words_of(fitted: ModelState, sources: Sources) -> Words:
    """Return the names of classes and columns, the reasons that were given, and the sources, which the caller names."""
    return Words(
        class_names=fitted.records.class_names, label_kind=fitted.label_kind, columns=fitted.records.columns,
        class_weight=dict(fitted.blueprint.class_weight), overrides=fitted.overrides, sources=sources,
    )  # fmt: skip


def secrets_of(fitted: ModelState) -> Secrets:
    """Return the keys of a model, which must not be handed out."""
    return Secrets(fitted.key, core_key(fitted.blueprint.core), fitted.secret)


def arrays_of_heads(fitted: ModelState) -> dict[str, NDArray[Any]]:
    """Return for each head its weights, its bias, the rows that shape it, and their multipliers."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, (_, head) in enumerate(taken(fitted.heads)):
        arrays |= {
            f"{number}.w": head.w, f"{number}.b": np.array([head.b]), f"{number}.on_margin": head.on_margin,
            f"{number}.inside": head.inside, f"{number}.multipliers": head.multipliers,
        }  # fmt: skip
    return {name: np.ascontiguousarray(value) for name, value in arrays.items()}


def network_facts(network: Network) -> NetworkFacts | None:
    """Return the name of the function that makes the network; None where it cannot be imported."""
    named = name_of(network)
    return None if named is None else NetworkFacts(named.maker, to_plain(named.arguments))


def core_facts(core: Core | None) -> CoreFacts | None:
    """Return the rule for the core without its key; None for a rule that is the caller's own code."""
    if isinstance(core, Frozen):
        return CoreFacts("Frozen", {"whole": core.whole})
    if type(core) not in HASHED_WITH:
        return None
    settings = {name: one for name, one in to_plain(core).items() if name != HASHED_WITH[type(core)]}
    return CoreFacts(type(core).__name__, settings)


def core_key(core: Core | None) -> bytes | None:
    """Return the key or tie breaker of a rule for the core, which files keep apart from its facts; None where it has
    none.
    """
    name = HASHED_WITH.get(type(core))
    unused = isinstance(core, FullCore) and core.shards == 1
    return None if name is None or unused else getattr(core, name)


# And back


def network_named(facts: Facts) -> NamedNetwork | None:
    """Return the function that makes the network; None where no name is stored."""
    return None if facts.network is None else NamedNetwork(facts.network.maker, tuple(facts.network.arguments))


def network_of(facts: Facts, given: Network | None) -> Network | None:
    """Return the network that was given, or ours that the facts name; None where other code is needed."""
    named = network_named(facts)
    found = as_recorded(given, named)
    return named if found is None and named is not None and named.our_own else found


def core_of(facts: CoreFacts | None, key: bytes | None) -> Core | None:
    """Make the rule for the core from its facts and its key."""
    if facts is None:
        return None
    if facts.kind == "Frozen":
        return Frozen(**from_plain(dict[str, bool], facts.settings))
    kind = CORES[facts.kind]
    core: Core = from_plain(kind, facts.settings if key is None else {**facts.settings, HASHED_WITH[kind]: key.hex()})
    return core


def blueprint_of(
    facts: Facts, class_weight: Mapping[str, float], key: bytes | None, network: Network,
    train: TrainingFunction | None = None,
) -> Blueprint:  # fmt: skip
    """Make the blueprint from facts. A training function is taken from the caller, and never imported by its stored
    name.
    """
    penalty(facts.C)
    recipe = dict(facts.recipe)
    start = from_plain(GivenWeights, recipe.pop(START)) if START in recipe else None
    run_twice = "" if FUNCTION in recipe else recipe.pop(RUN_TWICE, "")  # a function has it in its own facts
    if start is not None and not facts.frozen:
        network = GivenStart(network, start.sha256, outputs=2)  # as many as there are classes, once it is trained
    found = Blueprint(
        network=network, frozen=facts.frozen, seed=facts.seed, recipe=training_of(recipe, train), C=facts.C,
        device=facts.device, threads=facts.threads, environment=from_plain(Environment, facts.environment),
        given=facts.given, class_weight=class_weight, core=core_of(facts.core, key), drafted=facts.drafted,
        start=start, run_twice=run_twice,
    )  # fmt: skip
    if found.core is not None and found.sharding.count != facts.shards:
        raise ValueError(f"the core is in {found.sharding.count} shards, and there are {facts.shards} extractors")
    return found


def choice_of(facts: Facts, ids: NDArray[Any]) -> Choice:
    """Make the choice of the core from facts and the ids of the core records."""
    return Choice(ids, facts.unconditional, facts.depended_on, facts.details)


@dataclass(frozen=True)
class Held:
    """The records of a model with their features, and what it keeps about forgotten ones."""

    records: HeldRecords
    features: NDArray[Any]
    core: NDArray[Any]  # ids, as the next
    waiting: NDArray[Any]
    tombstones: Tombstones
    people: Mapping[str, Forgotten]
    receipts: list[str]  # their hashes
    commitment: str


def fitted_of(
    facts: Facts, words: Words, secrets: Secrets, blueprint: Blueprint, extractor: nn.Module, probe: NDArray[Any],
    arrays: Mapping[str, NDArray[Any]], held: Held,
) -> ModelState:  # fmt: skip
    """Make the state of a model from what was stored, and its extractor."""
    records = held.records
    solved = [
        (head.label, Head(
            head.label, arrays[f"{number}.w"], float(arrays[f"{number}.b"][0]), arrays[f"{number}.on_margin"],
            arrays[f"{number}.inside"], arrays[f"{number}.multipliers"], head.certificate,
        ))
        for number, head in enumerate(facts.heads)
    ]  # fmt: skip
    heads = restored(
        blueprint.C, held.features, records.labels, records.alive, solved,
        sample_weight=blueprint.sample_weights(records), copy_X=False,
    )  # fmt: skip
    if not np.isin(heads.classes_, range(len(words.class_names))).all():
        raise ValueError("its records are of other classes than it names")
    return ModelState(
        blueprint, extractor, Fingerprint(facts.layers, probe), heads, records, choice_of(facts, held.core),
        words.label_kind, secrets.key, secrets.secret, held.tombstones, facts.durations,
        in_extractor=facts.in_extractor, stale=facts.stale, untrained=facts.untrained, technique=facts.technique,
        adopted=facts.adopted, set_aside=facts.set_aside, receipts=tuple(held.receipts), overrides=words.overrides,
        losses=facts.losses, layouts=facts.layouts, waiting=held.waiting,
        people=Layered(held.people), committed=Commitment(held.commitment),
    )  # fmt: skip
