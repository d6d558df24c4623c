"""What whoever runs a model hands to those who shall do its training again: as an object, or in one file.

Not for the public: it names the core, and holds the key by which forgotten ids can be recognised. The file is
safetensors, numbers and JSON; reading it runs no code of anybody's.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maxrr.core import Choice
from maxrr.files import write_atomically
from maxrr.nets.naming import NamedNetwork
from maxrr.nets.seeding import Network
from maxrr.svm import FORM, Certificate
from maxrr.unlearning import facts
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Tombstone, Tombstones

FORMAT, VERSION = "maxrr bundle", 2  # 2 says the same as 1 in other words
FORMER = 1  # can still be read
FORMERLY = {"setting": "blueprint", "manifest": "content_hash", "marks": "tombstones"}
WEIGHT = "extractor/"  # before the names of the extractor's weights


@dataclass(frozen=True, eq=False)
class Bundle:
    """Everything about a model but the raw records: how it was made, what it is, and what it has forgotten.

    `maxrr.unlearning.replay` makes it again from the raw records and compares. `save` and `load` keep it in a file.
    """

    blueprint: Blueprint
    choice: Choice
    content_hash: str  # the content hash of the retained records
    model_hash: str
    layers: str  # the extractor's, as text
    extractor: Mapping[str, Tensor]  # its weights
    classes: tuple[str, ...]  # of the heads
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    certificates: tuple[Certificate, ...]  # of the heads
    form: int  # the canonical form of their bytes
    technique: bool  # the extractor was changed by a caller's function
    on_influential: bool
    ids: NDArray[Any]  # of the retained records, in order
    fitted_on: NDArray[Any]  # of those that the heads were fitted on, in order
    features: NDArray[np.float64]  # theirs
    key: bytes
    tombstones: frozenset[Tombstone]  # of forgotten records
    left: frozenset[bytes]  # of those that the extractor was trained on
    receipts: tuple[str, ...]  # hashes of those that were handed out
    network: dict[str, Any] | None  # what makes the network, if that can be imported anywhere

    def __repr__(self) -> str:
        return f"<Bundle of model {self.model_hash[:12]}…, {len(self.choice.ids)} core records>"

    @property
    def conditions(self) -> list[str]:
        """What exactness is conditional on."""
        return conditions(self.choice, self.blueprint, len(self.left), self.technique)

    @classmethod
    def of(cls, fitted: Fitted) -> "Bundle":
        """A copy of what a model is."""
        rows, features = fitted.in_order()
        return cls(
            fitted.blueprint, fitted.choice, fitted.records.content_hash, fitted.model_hash, str(fitted.extractor),
            facts.weights_of(fitted.extractor), fitted.head_classes, fitted.heads.coef_, fitted.heads.intercept_,
            fitted.heads.certificate_, FORM, fitted.technique, fitted.on_influential,
            np.sort(fitted.records.ids[fitted.records.alive]), fitted.records.ids[rows], features, fitted.key,
            fitted.tombstones.stones, fitted.left, fitted.receipts,
            json.loads(json.dumps(facts.network_facts(fitted.blueprint, fitted.extractor)["network"])),
        )  # fmt: skip

    def forgotten(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these ids the model has forgotten."""
        return Tombstones(self.tombstones).knows(self.key, ids)

    def save(self, path: str | Path) -> None:
        """Write it to a file that only its owner can read."""
        import safetensors.torch  # here, because machines that only measure do without

        tensors: dict[str, Tensor] = {WEIGHT + name: value for name, value in self.extractor.items()}
        for name in ("weights", "intercepts", "features"):
            tensors[name] = torch.from_numpy(np.ascontiguousarray(getattr(self, name)))
        content = safetensors.torch.save(tensors, {"maxrr": json.dumps(self.said())})
        write_atomically(path, content, private=True)

    def said(self) -> dict[str, Any]:
        """All but its numbers, as JSON has it."""
        return {
            "format": FORMAT, "version": VERSION, "blueprint": facts.blueprint_facts(self.blueprint),
            "network": self.network,
            "core": facts.core_facts(self.blueprint.core), "core_key": facts.core_key(self.blueprint.core),
            "choice": facts.choice_facts(self.choice), "core_ids": self.choice.ids.tolist(),
            "certificates": [asdict(certificate) for certificate in self.certificates],
            "ids": self.ids.tolist(), "fitted_on": self.fitted_on.tolist(), "key": self.key.hex(),
            "tombstones": [[part.hex() for part in stone] for stone in sorted(self.tombstones)],
            "left": sorted(hmac.hex() for hmac in self.left), "receipts": list(self.receipts),
            **{name: getattr(self, name) for name in SIMPLE}, "classes": list(self.classes),
        }  # fmt: skip

    @classmethod
    def load(cls, path: str | Path, *, network: Network | None = None) -> "Bundle":
        """Read it from a file.

        Parameters
        ----------
        path
        network
            The network that was fitted, if it is not one of ours: no code is run that the file names.

        Raises
        ------
        ValueError
            It is not a bundle, is of another version, or needs a network that was not given, or is of other layers.
        """
        said, tensors = content_of(path)
        try:
            found = read(said, tensors, network)
            if json.dumps(found.said()) != json.dumps(said):
                raise ValueError("it says something else than what was read")
            return found
        except NeedsNetwork as error:
            raise ValueError(f"{path}: {error}") from None
        except Exception as error:  # nothing in the file is believed
            raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def network_in(path: str | Path) -> NamedNetwork | None:
    """What makes the network of the bundle in a file, by name; None where that has none.

    Raises
    ------
    ValueError
        It is not a bundle, or is of another version.
    """
    return facts.named_in(content_of(path)[0])


def content_of(path: str | Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """What a file says and holds, if it may be a bundle."""
    import safetensors

    if Path(path).exists() and not Path(path).is_file():
        raise ValueError(f"{path} is not a bundle: it is not a file")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            said = json.loads((file.metadata() or {})["maxrr"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
    except OSError:
        raise
    except Exception as error:  # whatever a file that is no bundle makes them raise
        raise ValueError(f"{path} is not a bundle: {type(error).__name__}: {error}") from error
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise ValueError(f"{path} is not a bundle")
    if said.get("version") == FORMER:
        said = {FORMERLY.get(name, name): value for name, value in said.items()} | {"version": VERSION}
    if said.get("version") != VERSION:
        raise ValueError(f"{path} is a bundle of version {said.get('version')}, and this program knows {VERSION}")
    return said, tensors


SIMPLE = {
    "content_hash": str, "model_hash": str, "layers": str, "form": int, "technique": bool, "on_influential": bool,
}  # fmt: skip


class NeedsNetwork(ValueError):  # noqa: N818 (what is wanted)
    """Somebody's own code must be named by whoever runs it."""


def read(said: Mapping[str, Any], tensors: Mapping[str, Tensor], network: Network | None) -> Bundle:
    """The bundle that a file holds."""
    named = facts.named_in(said)
    if network is None and named is not None and named.our_own:
        network = named
        network()  # now, rather than in the middle of a replay
    if network is None:
        maker = "" if named is None else f", which {named.maker} makes"
        raise NeedsNetwork(f"the model's network is not one of this library{maker}: give it as network=…")
    blueprint = facts.blueprint_of(said["blueprint"], network, facts.core_of(said["core"], said["core_key"]))
    weights = {name.removeprefix(WEIGHT): value for name, value in tensors.items() if name.startswith(WEIGHT)}
    if blueprint.frozen:  # what was used is what was stored, whatever the maker gives today
        blueprint = replace(blueprint, network=facts.extractor_of(blueprint, said["layers"], weights))
    simple = facts.checked({name: said[name] for name in SIMPLE}, SIMPLE)
    return Bundle(
        blueprint=blueprint, choice=facts.choice_of(said["choice"], keys(said["core_ids"])), extractor=weights,
        classes=tuple(map(str, said["classes"])), weights=tensors["weights"].numpy(),
        intercepts=tensors["intercepts"].numpy(), features=tensors["features"].numpy(),
        certificates=tuple(map(facts.certificate_of, said["certificates"])),
        ids=keys(said["ids"]), fitted_on=keys(said["fitted_on"]), key=bytes.fromhex(said["key"]),
        tombstones=frozenset(Tombstone(*map(bytes.fromhex, stone)) for stone in said["tombstones"]),
        left=frozenset(map(bytes.fromhex, said["left"])), receipts=tuple(map(str, said["receipts"])),
        network=said["network"], **simple,
    )  # fmt: skip


def keys(found: list[Any]) -> NDArray[Any]:
    """Ids from JSON."""
    if not isinstance(found, list):
        raise ValueError(f"ids are {found!r:.80}")
    return np.array(found, dtype=np.str_ if found and isinstance(found[0], str) else np.int64)
