"""What the operator of a model hands to those who replay its training: as an object, or in one file.

Not for the public: it names the core, and holds the key by which forgotten ids can be recognised. Of the commitment it
has the salts of the retained records, and not the secret, from which those of forgotten ones come as well. The file is
safetensors, numbers and JSON; reading it runs no code but this library's.
"""

import copy
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
from maxrr.data import Dataset
from maxrr.errors import DataError, UnknownRecords
from maxrr.files import write_atomically
from maxrr.nets.naming import NamedNetwork, as_recorded
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.svm import FORM, Certificate
from maxrr.svm.arrays import wide
from maxrr.unlearning import facts
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.commitment import salts_of, tree_of
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Forgotten, Stones, Tombstone, Tombstones

FORMAT, VERSION = "maxrr bundle", 5  # the first whose models are hashed with their layers: no other is read
WEIGHT = "extractor/"  # before the names of the extractor's weights


@dataclass(frozen=True, eq=False)
class Bundle:
    """Everything about a model but the raw records: how it was made, what it is, and what it has forgotten.

    `MaxRR.bundle` makes it. `maxrr.unlearning.replay` trains again from the raw records and compares. `save` and `load`
    keep it in a file. It is not for the public: it names the core, and holds the key.

    Attributes
    ----------
    blueprint : Blueprint
        How the model was made: network, seed, recipe, C, device, threads, versions, and the rule for the core.
    choice : maxrr.core.Choice
        Which retained records are core, and what choosing them depended on.
    commitment : str
        The commitment to the retained records, as receipts have it.
    salts : array of shape (records, 32)
        The salts of the retained records in it, in the order of `ids`.
    model_hash : str
        The hash of extractor and heads, as `MaxRR.model_hash_`.
    layers : str
        The layers of the extractor: the tree of modules with their settings, and the source of own classes as a hash.
    probe : array of shape (records, features)
        The extractor's features of a few made-up records, by which a network that is made again is recognised.
    extractor : dict of str to Tensor
        The weights of the extractor by name.
    classes : tuple of str
        The names of the classes that the heads tell apart.
    weights : array of shape (heads, features)
        The weights of the heads.
    intercepts : array of shape (heads,)
        The biases of the heads.
    certificates : tuple of maxrr.svm.Certificate
        One certificate per head.
    form : int
        The canonical form of the heads' bytes (`maxrr.svm.FORM`). Only bytes of the same form can be compared.
    technique : bool
        Whether a function of the caller changed the extractor.
    ids : array
        The ids of the retained records, sorted.
    features : array of shape (records, features)
        The features of the retained records, in the order of `ids`. Without rows where the records are embeddings, and
        so are with whoever holds the data.
    key : bytes
        The key of the model's HMACs. Whoever has it can find out whether an id was forgotten.
    tombstones : frozenset of Tombstone
        What stays of forgotten and replaced records.
    left : frozenset of bytes
        HMACs of the ids of forgotten core records that the extractor was trained on and still keeps.
    receipts : tuple of str
        The hashes of all receipts that the model handed out, from the first.
    network : dict or None
        What makes the network: `maker`, as in package.module:function, and its `arguments`. None where it has no name
        that can be imported.
    late : array
        The ids of the retained records that were added after the last fit, sorted.
    waiting : array
        Those of them that the rule makes core, and that wait for the next fit, sorted.
    people : dict of str to Forgotten
        HMACs of the subject ids of people of whom no record is left, with the number and time of the request.
    adopted : bool
        Whether the extractor was trained elsewhere, and is as it was given (`MaxRR.adopt`).
    stale : frozenset of int
        Where the core is in several shards, those whose extractors keep something of forgotten records.
    """

    blueprint: Blueprint
    choice: Choice
    commitment: str
    salts: NDArray[np.uint8]
    model_hash: str
    layers: str
    probe: NDArray[np.float64]
    extractor: Mapping[str, Tensor]
    classes: tuple[str, ...]
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    certificates: tuple[Certificate, ...]
    form: int
    technique: bool
    ids: NDArray[Any]
    features: NDArray[np.float64]
    key: bytes
    tombstones: frozenset[Tombstone]
    left: frozenset[bytes]
    receipts: tuple[str, ...]
    network: dict[str, Any] | None
    late: NDArray[Any]
    waiting: NDArray[Any]
    people: Mapping[str, Forgotten]
    adopted: bool = False
    stale: frozenset[int] = frozenset()

    def __repr__(self) -> str:
        return f"<Bundle of model {self.model_hash[:12]}…, {len(self.choice.ids)} core records>"

    @property
    def conditions(self) -> list[str]:
        """What exactness is conditional on, one sentence each; empty where it holds without conditions."""
        return conditions(
            self.choice, self.blueprint, len(self.left), self.technique, self.adopted, len(self.waiting)
        )  # fmt: skip

    @classmethod
    def _of(cls, fitted: Fitted) -> "Bundle":
        """A copy of what a model is."""
        rows = fitted.in_order()
        ids = fitted.records.ids[rows]
        features = wide(fitted.heads.features_of(rows[:0] if fitted.blueprint.embeddings else rows))
        return cls(
            *copy.deepcopy((fitted.blueprint, fitted.choice)), fitted.commitment, salts_of(fitted.secret, ids),
            fitted.model_hash,
            fitted.fingerprint.layers, fitted.fingerprint.features, facts.weights_of(fitted.extractor),
            fitted.head_classes, fitted.heads.coef_, fitted.heads.intercept_, fitted.heads.certificate_, FORM,
            fitted.technique, ids, features, fitted.key,
            frozenset(fitted.tombstones.stones), fitted.left, tuple(fitted.receipts),
            json.loads(json.dumps(facts.network_facts(fitted.blueprint))),
            fitted.late.array(), fitted.waiting.array(), dict(fitted.people), fitted.adopted,
            fitted.stale if fitted.blueprint.sharding.count > 1 else frozenset(),
        )  # fmt: skip

    def forgotten(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these ids the model has forgotten.

        Parameters
        ----------
        ids : array
            Record ids. An integer and its text are the same id.

        Returns
        -------
        array of bool
            One answer per id.
        """
        return Tombstones(Stones(self.tombstones)).knows(self.key, ids)

    def retained(self, records: Dataset) -> Dataset:
        """The records that the model has now, out of those that it was fitted on or were added.

        Parameters
        ----------
        records : Dataset
            All records that the model has. Others must be ones that it says it has forgotten.

        Returns
        -------
        Dataset
            The records without the forgotten ones, with their classes in the order of the model's.

        Raises
        ------
        maxrr.errors.UnknownRecords
            Some records are neither retained nor forgotten by the model.
        maxrr.errors.DataError
            Some records that the model retains are not there.
        """
        others = records.ids[~np.isin(records.ids, self.ids)]
        unknown = others[~self.forgotten(others)]
        if len(unknown):
            raise UnknownRecords(
                f"{len(unknown):,} of the records are neither retained nor forgotten by the model, such as "
                f"{unknown[0].item()!r}: it was not fitted on this data, or somebody left them out. Without them a "
                "replay would be of other data"
            )
        missing = self.ids[~np.isin(self.ids, records.ids)]
        if len(missing):
            raise DataError(
                f"{len(missing):,} of the {len(self.ids):,} records that the model retains are not there, such as "
                f"{missing[0].item()!r}: bring all of them, with the ids that they were fitted under, and those that "
                "were added (Dataset.join puts them together)"
            )
        kept = records if len(records) == len(self.ids) else records.select(self.ids)
        used = tuple(kept.class_names[label] for label in np.unique(kept.labels).tolist())
        if used == self.classes or set(used) != set(self.classes):
            return kept
        places = np.array([self.classes.index(name) if name in used else -1 for name in kept.class_names])
        return replace(kept, labels=places[kept.labels], class_names=self.classes)

    def has(self, records: Dataset) -> bool:
        """Whether these are the records that the model retains, each as it is there.

        Parameters
        ----------
        records : Dataset
            Records with the ids that the model retains, as `retained` gives them.

        Returns
        -------
        bool
            Whether the tree over them has the model's commitment as its root.
        """
        ordered = records.in_order()
        if not np.array_equal(ordered.ids, self.ids):
            return False
        return tree_of(self.salts, self.ids, ordered.record_hashes()).root.hex() == self.commitment

    def save(self, path: str | Path) -> None:
        """Write it to a file that only its owner can read.

        Parameters
        ----------
        path : str or Path
            The file. One that is there is replaced in one step.
        """
        import safetensors.torch  # here, because machines that only measure do without

        tensors: dict[str, Tensor] = {WEIGHT + name: value for name, value in self.extractor.items()}
        for name in ("weights", "intercepts", "features", "salts", "probe"):
            tensors[name] = torch.tensor(getattr(self, name))
        content = safetensors.torch.save(tensors, {"maxrr": json.dumps(self._said())})
        write_atomically(path, content, private=True)

    def _said(self) -> dict[str, Any]:
        """All but its arrays, as JSON has it."""
        return {
            "format": FORMAT, "version": VERSION,
            "blueprint": facts.blueprint_facts(self.blueprint), "network": self.network,
            "core": facts.core_facts(self.blueprint.core), "core_key": facts.core_key(self.blueprint.core),
            "choice": facts.choice_facts(self.choice), "core_ids": self.choice.ids.tolist(),
            "certificates": [asdict(certificate) for certificate in self.certificates],
            "ids": self.ids.tolist(), "key": self.key.hex(),
            "tombstones": [[part.hex() for part in stone] for stone in sorted(self.tombstones)],
            "left": sorted(hmac.hex() for hmac in self.left), "receipts": list(self.receipts),
            **{name: getattr(self, name) for name in SIMPLE},
            "classes": list(self.classes),
            **{name: getattr(self, name).tolist() for name in ("late", "waiting") if len(getattr(self, name))},
            **({"people": {person: list(then) for person, then in self.people.items()}} if self.people else {}),
            **({"adopted": True} if self.adopted else {}),
            **({"stale": sorted(self.stale)} if self.stale else {}),
        }  # fmt: skip

    @classmethod
    def load(
        cls, path: str | Path, *, network: Network | None = None, train: TrainingFunction | None = None
    ) -> "Bundle":  # fmt: skip
        """Read a bundle from a file that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.
        network : torch.nn.Module or function, optional
            The network that was fitted, or the function that makes it. Needed if it is not one of this library's:
            code that only the file names is not run.
        train : function, optional
            The training function that the model was fitted with. Needed if it was fitted with one, for the same reason.

        Returns
        -------
        Bundle
            The bundle as it was saved.

        Raises
        ------
        ValueError
            The file is not a bundle, is damaged, or is of another version; or its network is needed and was not given,
            or the network given has other layers.
        """
        said, tensors = content_of(path)
        try:
            found = read(said, tensors, network, train)
            if json.dumps(found._said()) != json.dumps(said):
                raise ValueError("it says something else than what was read")
            return found
        except NeedsNetwork as error:
            raise ValueError(f"{path}: {error}") from None
        except Exception as error:  # nothing in the file is believed
            raise ValueError(f"{path} is damaged: {type(error).__name__}: {error}") from error


def network_in(path: str | Path) -> NamedNetwork | None:
    """The name of what makes the network of the bundle in a file. The network is not made.

    Parameters
    ----------
    path : str or Path
        A file that `Bundle.save` wrote.

    Returns
    -------
    maxrr.nets.naming.NamedNetwork or None
        The function or class, and its arguments; None where it has no name that can be imported.

    Raises
    ------
    ValueError
        The file is not a bundle, is damaged, or is of another version.
    """
    said, _ = content_of(path)
    try:
        return facts.named_in(said)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def training_in(path: str | Path) -> str | None:
    """The name of the function that trained the network of the bundle in a file. It is not imported.

    Parameters
    ----------
    path : str or Path
        A file that `Bundle.save` wrote.

    Returns
    -------
    str or None
        As in package.module:function; None where a recipe of this library trained it.

    Raises
    ------
    ValueError
        The file is not a bundle, is damaged, or is of another version.
    """
    said, _ = content_of(path)
    try:
        return facts.trainer_in(said)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


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
    version = said.get("version")
    if version != VERSION or type(version) is not int:
        raise ValueError(f"{path} is a bundle of version {version}, and this program knows version {VERSION}")
    return said, tensors


SIMPLE = {"commitment": str, "model_hash": str, "layers": str, "form": int, "technique": bool}


class NeedsNetwork(ValueError):  # noqa: N818 (what is wanted)
    """Somebody's own code must be named by whoever runs it."""


def read(
    said: Mapping[str, Any], tensors: Mapping[str, Tensor], network: Network | None, train: TrainingFunction | None
) -> Bundle:  # fmt: skip
    """The bundle that a file holds."""
    named = facts.named_in(said)
    network = as_recorded(network, named)
    if network is None and named is not None and named.our_own:
        network = named
        network()  # now, rather than in the middle of a replay
    if network is None:
        maker = "" if named is None else f", which {named.maker} makes"
        raise NeedsNetwork(f"the model's network is not one of this library{maker}: give it as network=…")
    trainer = facts.trainer_in(said)
    if trainer is not None and train is None:
        raise NeedsNetwork(f"the model was trained by {trainer}, which is not of this library: give it as train=…")
    blueprint = facts.blueprint_of(said["blueprint"], network, facts.core_of(said["core"], said["core_key"]), train)
    weights = {name.removeprefix(WEIGHT): value for name, value in tensors.items() if name.startswith(WEIGHT)}
    if blueprint.frozen:  # what was used is what was stored, whatever the maker gives today
        blueprint = replace(blueprint, network=facts.stored_extractor(blueprint, weights))
    simple = facts.checked({name: said[name] for name in SIMPLE}, SIMPLE)
    left = frozenset(map(bytes.fromhex, said["left"]))
    bundle = Bundle(
        blueprint=blueprint, choice=facts.choice_of(said["choice"], ids_of(said["core_ids"])), extractor=weights,
        classes=tuple(map(str, said["classes"])), weights=tensors["weights"].numpy(),
        intercepts=tensors["intercepts"].numpy(), features=tensors["features"].numpy(),
        salts=tensors["salts"].numpy(), probe=tensors["probe"].numpy(),
        certificates=tuple(map(facts.certificate_of, said["certificates"])),
        ids=ids_of(said["ids"]), key=bytes.fromhex(said["key"]),
        tombstones=frozenset(Tombstone(*map(bytes.fromhex, stone)) for stone in said["tombstones"]),
        left=left, stale=facts.stale_of(said, blueprint, left), receipts=tuple(map(str, said["receipts"])),
        network=said["network"], late=ids_of(said.get("late", [])), waiting=ids_of(said.get("waiting", [])),
        people=facts.people_of(said.get("people", {})), adopted=facts.checked_flag(said, "adopted"), **simple,
    )  # fmt: skip
    check_parts(bundle)
    return bundle


def check_parts(bundle: Bundle) -> None:
    """What was added since the fit is part of what the model has, and what waits for the core is part of that.

    People were forgotten by requests that were carried out. Each record that the model has, has a salt.
    """
    for name, part, whole in (("late", bundle.late, bundle.ids), ("waiting", bundle.waiting, bundle.late)):
        if len(part) and (len(np.unique(part)) < len(part) or set(part.tolist()) - set(whole.tolist())):
            raise ValueError(f"the ids of {name!r} are not among those that they belong to, each once")
    if bundle.salts.shape != (len(bundle.ids), 32) or bundle.salts.dtype != np.uint8:
        raise ValueError("there is not one salt of 32 bytes for each record")
    if any(then.number > len(bundle.receipts) for then in bundle.people.values()):
        raise ValueError(f"people were forgotten by a request after the last, which is {len(bundle.receipts)}")


def ids_of(found: Any) -> NDArray[Any]:
    """Ids from JSON: whole numbers, or texts."""
    kinds = {type(id_) for id_ in found} if isinstance(found, list) else {None}
    if kinds - {int} and kinds - {str}:
        raise ValueError(f"ids are {found!r:.80}")
    return np.array(found, dtype=np.str_ if kinds == {str} else np.int64)
