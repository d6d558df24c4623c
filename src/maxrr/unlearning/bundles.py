"""What the operator of a model hands to those who replay its training: as an object, or in one file.

Not for the public: it names the core, and holds the key by which forgotten ids can be recognised. Of the commitment it
has the salts of the retained records, and not the secret, from which those of forgotten ones come as well. The file is
safetensors, numbers and JSON; reading it runs no code but this library's.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from maxrr.core.choice import Choice
from maxrr.data import Dataset
from maxrr.errors import NetworkMissing, OtherRecords, OtherWeights, TrainingMissing, UnknownRecords, UnreadableFile
from maxrr.files import from_plain, parse_json, to_plain, write_atomically
from maxrr.files.strict_json import Digest, PositiveFloat, body_of, json_text
from maxrr.nets.naming import NamedNetwork
from maxrr.nets.public_weights import GivenStart
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.svm.arrays import wide
from maxrr.svm.certificate import FORM
from maxrr.unlearning import codec
from maxrr.unlearning.blueprint import Blueprint, extractor_tensors
from maxrr.unlearning.commitment import salts_of, tree_of
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.facts import Facts
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.tombstones import Forgotten, Tombstone, Tombstones

FORMAT, VERSION = "maxrr bundle", 1
WEIGHT = "extractor/"  # before the names of the extractor's weights
ARRAYS = ("weights", "intercepts", "features", "salts", "probe")

Ids = tuple[int, ...] | tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Contents:
    """Everything that a bundle's JSON holds: all but the network and the arrays. Attributes are those of `Bundle`."""

    facts: Facts
    classes: tuple[str, ...]
    class_weight: dict[str, PositiveFloat]
    core_key: bytes | None
    core_ids: Ids
    ids: Ids
    waiting: Ids
    key: bytes
    commitment: Digest
    form: int
    tombstones: frozenset[Tombstone]
    people: dict[Digest, Forgotten]
    receipts: tuple[Digest, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Bundle(Contents):
    """Everything about a model but the raw records: how it was made, what it is, and what it has forgotten.

    `MaxRR.bundle` makes it. `maxrr.unlearning.replay` trains again from the raw records and compares. `save` and `load`
    keep it in a file. It is not for the public: it names the core, and holds the key.

    Attributes
    ----------
    facts : maxrr.unlearning.facts.Facts
        What the model is beside arrays, secrets and names: its hash, the layers of its extractor, the certificates of
        its heads, and what the extractor keeps of forgotten records.
    classes, class_weight : tuple of str, dict of str to float
        The names of the classes that the heads tell apart, and how much the records of some count.
    core_key, core_ids : bytes or None, tuple
        What the rule for the core hashes ids with, and the ids of the core.
    ids, waiting : tuple
        The ids of the retained records, sorted; and of those that were added and become core at the next fit.
    key : bytes
        The key of the model's HMACs. Whoever has it can find out whether an id was forgotten.
    commitment, form : str, int
        The commitment to the retained records, and the canonical form of the heads' bytes, as receipts have them.
    tombstones, people : frozenset of Tombstone, dict of str to Forgotten
        What stays of forgotten and replaced records; HMACs of the subject ids of people of whom no record is left.
    receipts : tuple of str
        The hashes of all receipts that the model handed out, from the first.
    blueprint : Blueprint
        How the model was made: network, seed, recipe, C, device, threads, versions, and the rule for the core.
    choice : maxrr.core.choice.Choice
        Which retained records are core, and what choosing them depended on.
    extractor : dict of str to Tensor
        The weights of the extractor by name.
    weights, intercepts : array of shape (heads, features), array of shape (heads,)
        The weights and biases of the heads.
    features : array of shape (records, features)
        The features of the retained records, in the order of `ids`. Without rows where the records are embeddings, and
        so are with whoever holds the data.
    salts : array of shape (records, 32)
        The salts of the retained records in the commitment, in the order of `ids`.
    probe : array of shape (records, features)
        The extractor's features of a few made-up records, by which a network that is made again is recognised.
    """

    blueprint: Blueprint
    choice: Choice
    extractor: Mapping[str, Tensor]
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    features: NDArray[np.float64]
    salts: NDArray[np.uint8]
    probe: NDArray[np.float64]

    def __repr__(self) -> str:
        return f"<Bundle of model {self.facts.model_hash[:12]}…, {len(self.choice.ids)} core records>"

    @property
    def conditions(self) -> list[str]:
        """What exactness is conditional on, one sentence each; empty where it holds without conditions."""
        facts = self.facts
        return conditions(
            self.choice, self.blueprint, len(facts.in_extractor), facts.technique, facts.adopted, len(self.waiting)
        )

    @classmethod
    def _of(cls, fitted: ModelState) -> "Bundle":
        """Copy a state into a bundle."""
        rows, made = fitted.in_order(), fitted.blueprint
        ids = fitted.records.ids[rows]
        features = wide(fitted.heads._features_of(rows[:0] if made.embeddings else rows))
        return cls(
            codec.facts_of(fitted, codec.network_facts(made.network)), fitted.head_classes, dict(made.class_weight),
            codec.core_key(made.core), tuple(fitted.choice.ids.tolist()), tuple(ids.tolist()),
            tuple(fitted.waiting.tolist()), fitted.key, fitted.commitment, FORM, frozenset(fitted.tombstones),
            dict(fitted.people), fitted.receipts, *copy.deepcopy((made, fitted.choice)),
            extractor_tensors(fitted.extractor), fitted.heads.coef_, fitted.heads.intercept_, features,
            salts_of(fitted.secret, ids), fitted.fingerprint.features,
        )  # fmt: skip

    def forgotten(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Return a mask of the ids that the model has forgotten.

        Parameters
        ----------
        ids : array
            Record ids. An integer and its text are the same id.

        Returns
        -------
        array of bool
            One answer per id.
        """
        return Tombstones(self.tombstones).knows(self.key, ids)

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
        own = ids_of(self.ids)
        others = records.ids[~np.isin(records.ids, own)]
        unknown = others[~self.forgotten(others)]
        if len(unknown):
            raise UnknownRecords(
                f"{len(unknown):,} of the records are neither retained nor forgotten by the model, such as "
                f"{unknown[0].item()!r}: it was not fitted on this data, or somebody left them out. Without them a "
                "replay would be of other data"
            )
        missing = own[~np.isin(own, records.ids)]
        if len(missing):
            raise OtherRecords(
                f"{len(missing):,} of the {len(self.ids):,} records that the model retains are not there, such as "
                f"{missing[0].item()!r}: bring all of them, with the ids that they were fitted under, and those that "
                "were added (Dataset.join puts them together; in the shell, name each file with --source)"
            )
        kept = records if len(records) == len(self.ids) else records.select(own)
        used = tuple(kept.class_names[label] for label in np.unique(kept.labels).tolist())
        if used == self.classes:
            return kept
        if set(used) != set(self.classes):
            raise OtherRecords(f"the classes are {', '.join(used)}: call them {', '.join(self.classes)}, as at the fit")
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
        return tree_of(self.salts, ordered.ids, ordered.record_hashes()).root.hex() == self.commitment

    def save(self, path: str | Path) -> None:
        """Write the bundle to a file that only its owner can read.

        Parameters
        ----------
        path : str or Path
            The file. One that is there is replaced in one step.
        """
        import safetensors.torch  # here, because machines that only measure do without

        tensors: dict[str, Tensor] = {WEIGHT + name: value for name, value in self.extractor.items()}
        tensors |= {name: torch.tensor(getattr(self, name)) for name in ARRAYS}
        contents = Contents(**{field.name: getattr(self, field.name) for field in fields(Contents)})
        said = json_text({"format": FORMAT, "version": VERSION, **to_plain(contents)})
        write_atomically(path, safetensors.torch.save(tensors, {"maxrr": said}), private=True)

    @classmethod
    def load(
        cls, path: str | Path, *, network: Network | None = None, train: TrainingFunction | None = None
    ) -> "Bundle":
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
        contents, tensors = content_of(path)
        try:
            return read(contents, tensors, network, train)
        except (NetworkMissing, OtherWeights, TrainingMissing):
            raise
        except Exception as error:  # nothing in the file is believed
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise UnreadableFile(f"{path} is damaged: {why}. Have it written again") from error


def facts_in(path: str | Path) -> Facts:
    """Read what the bundle in a file says of its model, such as which function makes its network. Nothing is made.

    Parameters
    ----------
    path : str or Path
        A file that `Bundle.save` wrote.

    Returns
    -------
    maxrr.unlearning.facts.Facts
        What the model is beside arrays, secrets and names.

    Raises
    ------
    ValueError
        The file is not a bundle, is damaged, or is of another version.
    """
    return content_of(path)[0].facts


def content_of(path: str | Path) -> tuple[Contents, dict[str, Tensor]]:
    """Read the contents and the tensors of a bundle's file; refuse any other file."""
    import safetensors

    if Path(path).exists() and not Path(path).is_file():
        raise UnreadableFile(f"{path} is not a bundle: it is not a file")
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            said = body_of(parse_json((file.metadata() or {}).get("maxrr", "")), FORMAT, VERSION)
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (it is no mapping)
        return from_plain(Contents, said), tensors
    except OSError:
        raise
    except Exception as error:  # whatever a file that is no bundle makes them raise
        raise UnreadableFile(f"{path} is not a bundle, or is damaged: {error}") from error


def read(
    contents: Contents, tensors: Mapping[str, Tensor], network: Network | None, train: TrainingFunction | None
) -> Bundle:
    """Make a bundle from the contents and the tensors of its file."""
    facts, network = contents.facts, codec.network_of(contents.facts, network)
    if network is None:
        raise NetworkMissing(None if facts.network is None else facts.network.maker)
    if isinstance(network, NamedNetwork) and network.our_own:
        network()  # now, rather than in the middle of a replay
    if facts.function is not None and train is None:
        raise TrainingMissing(facts.function)
    blueprint = codec.blueprint_of(facts, contents.class_weight, contents.core_key, network, train)
    weights = {name.removeprefix(WEIGHT): value for name, value in tensors.items() if name.startswith(WEIGHT)}
    if isinstance(blueprint.network, GivenStart):
        blueprint.network()  # now, likewise
    if blueprint.frozen:  # what was used is what was stored, whatever the maker gives today
        blueprint = replace(blueprint, network=blueprint.stored_extractor(weights))
    arrays: dict[str, Any] = {name: tensors[name].numpy() for name in ARRAYS}
    choice = codec.choice_of(facts, ids_of(contents.core_ids))
    bundle = Bundle(**vars(contents), blueprint=blueprint, choice=choice, extractor=weights, **arrays)
    check_parts(bundle)
    return bundle


def check_parts(bundle: Bundle) -> None:
    """Refuse a bundle with waiting ids that it lacks, without a salt for each record, or with people forgotten by later
    requests.
    """
    if len(np.intersect1d(bundle.waiting, bundle.ids)) != len(bundle.waiting):
        raise ValueError("the ids of 'waiting' are not among those of the records, each once")
    if bundle.salts.shape != (len(bundle.ids), 32) or bundle.salts.dtype != np.uint8:
        raise ValueError("there is not one salt of 32 bytes for each record")
    if any(then.number > len(bundle.receipts) for then in bundle.people.values()):
        raise ValueError(f"people were forgotten by a request after the last, which is {len(bundle.receipts)}")


def ids_of(found: Ids) -> NDArray[Any]:
    """Ids as an array: of whole numbers, or of texts."""
    return np.array(found, dtype=np.str_ if found and isinstance(found[0], str) else np.int64)
