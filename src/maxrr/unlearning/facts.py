"""What a model is beside its numbers, as JSON has it, and back: for the files of workspaces and bundles.

A network is known by its name. Ours are made again from it; other code is run only if the caller names it.
"""

import copy
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.core import Choice, Core, FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.files import fits
from maxrr.nets import Environment, split
from maxrr.nets.extractors import joined
from maxrr.nets.naming import NamedNetwork, name_of
from maxrr.nets.probe import Fingerprint, made_by, types_and_shapes, with_weights_of
from maxrr.nets.seeding import Network
from maxrr.nets.seeding import checked as seed
from maxrr.nets.training_function import TrainingFunction, training_of
from maxrr.svm import Certificate
from maxrr.svm.validation import penalty
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.tombstones import Forgotten

CORES: dict[str, Any] = {kind.__name__: kind for kind in (FrequencyCore, MiddleCore, HashCore, FullCore, Frozen)}
# In files the core's key.
HASHED_WITH = {FrequencyCore: "tie_breaker", MiddleCore: "tie_breaker", HashCore: "key", FullCore: "key"}

BLUEPRINT = {
    "frozen": bool, "seed": int, "recipe": dict, "C": float, "device": str | None, "threads": int, "environment": dict,
    "given": dict,
}  # fmt: skip
HMAC = re.compile(r"[0-9a-f]{64}")
CHOICE = {"unconditional": bool, "depended_on": str, "details": dict}


def checked(facts: Any, known: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Facts that are all there, each of its kind; some only where there is something to say. Nothing is believed."""
    possible = {**known, **(optional or {})}
    if not isinstance(facts, dict) or not known.keys() <= facts.keys() <= possible.keys():
        raise ValueError(f"{sorted(known)} are expected, not {facts!r:.80}")
    for name in facts:
        kind = possible[name]
        if not isinstance(facts[name], kind) or (kind is not bool and isinstance(facts[name], bool)):
            raise ValueError(f"{name} is {facts[name]!r:.80}")
    return dict(facts)


def checked_flag(facts: Mapping[str, Any], name: str) -> bool:
    """Whether something is so that a file says only where it is."""
    if facts.get(name, True) is not True:
        raise ValueError(f"{name} is {facts[name]!r:.80}")
    return name in facts


def blueprint_facts(blueprint: Blueprint) -> dict[str, Any]:
    """All of a blueprint but the network and the core."""
    return {
        "frozen": blueprint.frozen, "seed": blueprint.seed, "recipe": blueprint.recipe.facts, "C": blueprint.C,
        "device": blueprint.device, "threads": blueprint.threads, "environment": asdict(blueprint.environment),
        "given": dict(blueprint.given),
        **({"class_weight": dict(blueprint.class_weight)} if blueprint.class_weight else {}),
    }  # fmt: skip


def blueprint_of(
    facts: Mapping[str, Any], network: Network, core: Core | None, train: TrainingFunction | None = None
) -> Blueprint:  # fmt: skip
    """The blueprint that was stored. A training function is the one that the caller gives, never one that it names."""
    known = checked(facts, BLUEPRINT, {"class_weight": dict})
    recipe, environment = training_of(known["recipe"], train), Environment(**known["environment"])
    if not fits(environment, Environment):
        raise ValueError("the environment is none")
    if not all(isinstance(text, str) for pair in known["given"].items() for text in pair) or seed(known["seed"]) < 0:
        raise ValueError("the seed or the weights that were given are none")
    penalty(known["C"])
    if known["threads"] < 1:
        raise ValueError(f"threads is {known['threads']}")
    weights = known.get("class_weight", {})
    if not fits(weights, dict[str, float]) or not all(0.0 < weight < math.inf for weight in weights.values()):
        raise ValueError("the weights of classes are none")
    return Blueprint(network=network, core=core, **{**known, "recipe": recipe, "environment": environment})


def choice_of(facts: Mapping[str, Any], ids: NDArray[Any]) -> Choice:
    """The choice that was stored."""
    return Choice(ids, **checked(facts, CHOICE))


def certificate_of(facts: Mapping[str, Any]) -> Certificate:
    """The certificate that was stored."""
    found = Certificate(**facts)
    if not fits(found, Certificate):
        raise ValueError(f"a certificate is {facts!r:.80}")
    return found


def people_of(facts: Mapping[str, Any]) -> dict[str, Forgotten]:
    """Whom no record is about any more, as it was stored."""
    found = {person: Forgotten(*then) for person, then in facts.items()}
    known = all(HMAC.fullmatch(person) for person in found)
    if not known or not all(
        type(then.number) is int and then.number >= 0 and isinstance(then.time, str) for then in found.values()
    ):
        raise ValueError(f"the people forgotten are {facts!r:.80}")
    return found


def choice_facts(choice: Choice) -> dict[str, Any]:
    """All of a choice but the ids."""
    return {"unconditional": choice.unconditional, "depended_on": choice.depended_on, "details": choice.details}


def core_facts(core: Core | None) -> dict[str, Any] | None:
    """What is needed to choose a core again in the same way, but for `core_key`; None for ways that are not ours."""
    if not isinstance(core, FrequencyCore | HashCore | FullCore | Frozen) or type(core) not in CORES.values():
        return None
    if isinstance(core, Frozen):
        return {"kind": "Frozen", **({"whole": True} if core.whole else {})}
    plain = {part.name: getattr(core, part.name) for part in fields(core) if part.name != HASHED_WITH.get(type(core))}
    if plain["shards"] == 1:  # as files were before there were several
        del plain["shards"]
    return {"kind": type(core).__name__, **plain}


def core_key(core: Core | None) -> str | None:
    """What a core of ours hashes ids with, a secret or not: files keep it apart from the other facts."""
    name = HASHED_WITH.get(type(core))
    unused = isinstance(core, FullCore) and core.shards == 1
    return None if name is None or unused else getattr(core, name).hex()


def core_of(facts: Mapping[str, Any] | None, key: str | None) -> Core | None:
    """The way to choose a core that was stored."""
    if facts is None:
        return None
    kind = CORES[facts["kind"]]
    given = {name: value for name, value in facts.items() if name != "kind"}
    if key is not None:
        given[HASHED_WITH[kind]] = bytes.fromhex(key)
    core: Core = kind(**given)
    return core


def network_facts(blueprint: Blueprint) -> dict[str, Any] | None:
    """What makes the network; None where it has no name that can be imported."""
    named = name_of(blueprint.network)
    return None if named is None else asdict(named)


def named_in(facts: Mapping[str, Any]) -> NamedNetwork | None:
    """What makes the network, as far as is known."""
    if "network" in facts and facts["network"] is None:
        return None
    named = checked(facts.get("network"), {"maker": str, "arguments": list | tuple})
    return NamedNetwork(named["maker"], tuple(named["arguments"]))


def trainer_in(facts: Mapping[str, Any]) -> str | None:
    """The name of the caller's own function that trained the network; None where a recipe of ours did."""
    recipe = checked(facts.get("blueprint"), BLUEPRINT, {"class_weight": dict})["recipe"]
    name = recipe.get("function")
    if not isinstance(name, str | None):
        raise ValueError(f"the training function is {name!r:.80}")
    return name


def extractor_of(network: Network, weights: dict[str, Tensor], *, frozen: bool, shards: int) -> nn.Module:
    """The extractor: the network's layers, for each shard, with the stored weights."""
    if shards > max(len(weights), 1):  # each has some
        raise ValueError(f"there are not the weights of {shards:,} extractors")
    try:
        made = network if isinstance(network, nn.Module) else made_by(network, 0)
    except Exception as error:  # of the caller's code
        raise ValueError(f"the network could not be made: {error}") from error
    extractor = copy.deepcopy(made).cpu().eval() if frozen else joined([split(made)[0] for _ in range(shards)])
    if types_and_shapes(extractor.state_dict()) != types_and_shapes(weights):
        raise ValueError("the network has other layers than the one that was fitted: name the network that was")
    extractor.load_state_dict(weights)
    return extractor


def stored_extractor(blueprint: Blueprint, weights: dict[str, Tensor]) -> nn.Module:
    """The same, of a blueprint."""
    return extractor_of(blueprint.network, weights, frozen=blueprint.frozen, shards=blueprint.sharding.count)


def kept(
    blueprint: Blueprint, extractor: nn.Module, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> tuple[nn.Module, Fingerprint]:  # fmt: skip
    """Make an extractor again from its weights, check that it computes the same, and return it with its fingerprint."""
    anew = with_weights_of(extractor, stored_extractor(blueprint, weights_of(extractor)), shape, dtype)
    return anew, Fingerprint.of(anew, shape, dtype)


def stale_of(facts: Mapping[str, Any], blueprint: Blueprint, left: Collection[bytes]) -> frozenset[int]:
    """The shards whose extractors keep something of forgotten records, which a file names where there are several."""
    found = shards_in(facts, "stale", blueprint)
    if bool(found) != (blueprint.sharding.count > 1 and bool(left)):
        raise ValueError("what shards keep of forgotten records does not go with what the extractor keeps")
    return found


def untrained_of(facts: Mapping[str, Any], blueprint: Blueprint) -> frozenset[int]:
    """The shards whose extractors keep their first weights, which a file names where there are several."""
    found = shards_in(facts, "untrained", blueprint)
    if found and blueprint.sharding.count == 1:
        raise ValueError("a single extractor is always trained")
    return found


def shards_in(facts: Mapping[str, Any], name: str, blueprint: Blueprint) -> frozenset[int]:
    """Some shards, by their numbers; a file says nothing where there are none."""
    found, count = facts.get(name, []), blueprint.sharding.count
    if not fits(found, list[int]) or sorted(set(found)) != found or not all(0 <= shard < count for shard in found):
        raise ValueError(f"the shards that are {name} are {found!r:.80}")
    return frozenset(found)


def weights_of(extractor: nn.Module) -> dict[str, Tensor]:
    """The extractor's weights and buffers, each in memory of its own."""
    state: dict[str, torch.Tensor] = extractor.state_dict()
    return {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}
