"""Training by a function of the caller's own, known by where it is imported from and by the hash of its module.

The function gets a network with the first weights of the seed and the records in the order of their ids, and returns
the network trained. Random numbers of PyTorch, NumPy and Python are drawn from the seed while it runs. Whether two runs
give the same bytes is looked at, not proven.
"""

import hashlib
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook

from maxrr.data import Dataset
from maxrr.errors import DataError, NoNetworkReturned, TrainingChanged, TrainingMissing
from maxrr.files import from_plain, sha256_of
from maxrr.nets.inputs import as_array, tensors
from maxrr.nets.naming import check_takes, imported_from
from maxrr.nets.probe import types_and_shapes, with_weights_of
from maxrr.nets.recipe import Recipe
from maxrr.nets.seeding import Network, all_drawing, as_asked, begin, pinned

TrainingFunction = Callable[[nn.Module, Dataset, int, torch.device], nn.Module]
"""A function that gets a network, the records to train it on, a seed and a device, and returns the network trained."""

SAME = "same"  # what two runs were seen to be
COVERS = "the module of the function, and nothing that it imports"
PART = 256  # records, about, that two runs are compared on
_one_at_a_time = threading.RLock()  # the sources of random numbers belong to the whole process


class NotRepeatableWarning(UserWarning):
    """A training function was run twice with one seed, and gave two different networks."""


@dataclass(frozen=True)
class OwnTraining:
    """A training function of the caller's own.

    Attributes
    ----------
    name
        Where it is imported from, as in `package.module:function`.
    source
        The SHA-256 of the file of its module. What the module imports is not covered.
    observed
        What two runs on a small part of the core were seen to be: "same", or what differed; empty if nobody looked.
    function
        The function itself; None where only its name is known, because a file named it and no caller gave it.
    """

    name: str
    source: str
    observed: str = ""
    function: TrainingFunction | None = field(default=None, compare=False, repr=False)

    epochs: ClassVar[int] = 1  # as far as progress is concerned

    @classmethod
    def by(cls, function: TrainingFunction) -> "OwnTraining":
        """Make the training by a function that a fresh process can import."""
        name = imported_from(function)
        if name is None:
            said = getattr(function, "__qualname__", repr(function))
            raise DataError(
                f"train is {said:.80}, which a fresh process cannot import: put the function into a module of its own, "
                "such as my_training.py, and import it from there (not from a notebook or the "
                "script itself, and no lambda or function within another)"
            )
        check_takes(function, "train", "network", "dataset", "seed", "device")
        return cls(name, source_of(function), function=function)

    @classmethod
    def of(cls, facts: Mapping[str, Any]) -> "OwnTraining":
        """Read a training from the facts of a file, without importing its function."""
        found = cls(facts["function"], facts["source_sha256"], facts.get("run_twice", ""))
        if found.facts != dict(facts) or not all(isinstance(value, str) for value in facts.values()):
            raise ValueError(f"{dict(facts)!r:.80} is no training function")
        return found

    @property
    def facts(self) -> dict[str, Any]:
        """The name and the hash of the training function, as JSON."""
        said = {"function": self.name, "source_sha256": self.source, "source_covers": COVERS}
        return said | ({"run_twice": self.observed} if self.observed else {})

    @property
    def changed(self) -> str:
        """How the function at hand differs from the recorded one; empty if it does not."""
        if self.function is None:
            return f"{self.name} was not given"
        now = OwnTraining.by(self.function)
        if now.name != self.name:
            return f"{now.name} was given, and {self.name} trained the model"
        if now.source == self.source:
            return ""
        return f"the module of {now.name} has the SHA-256 {now.source[:12]}…, and {self.name} had {self.source[:12]}…"

    def train(self, network: Network, dataset: Dataset, seed: int, device: torch.device, threads: int) -> nn.Module:
        """The network that the function gives for these records, on the CPU and in evaluation mode.

        Its weights and buffers are taken over into a network of our own: what else the function did to it (references
        to a trainer, say) stays behind, and must not be needed.
        """
        if self.function is None:
            raise TrainingMissing(self.name)
        if self.changed:
            raise TrainingChanged(f"{self.changed}: bring the module as it was, or fit again")
        started, mine = begin(network, seed), dataset.select(np.sort(dataset.ids))  # copies, to do with as it likes
        with _one_at_a_time, pinned(threads), as_asked(device), all_drawing(seed):
            torch.set_num_threads(threads)
            found = self.function(started, mine, seed, device)
        if not isinstance(found, nn.Module):
            raise NoNetworkReturned(
                f"{self.name} returned {found!r:.80} instead of the trained network: end it with `return network`"
            )
        anew = begin(network, seed)
        if types_and_shapes(found.state_dict()) != types_and_shapes(anew.state_dict()):
            raise NoNetworkReturned(f"{self.name} returned a network with other layers: return the one that it got")
        trained = with_weights_of(found, anew, dataset.shape, dataset.inputs.dtype)
        if not all(bool(value.isfinite().all()) for value in trained.parameters()):
            raise DataError(f"{self.name} returned weights that are not finite: try a smaller learning rate")
        return trained

    def watched(
        self, network: Network, dataset: Dataset, seed: int, device: torch.device, threads: int
    ) -> "OwnTraining":
        """Return the training with a note on what came of running it twice on a small part of the records.

        Receipts have what was observed. A message of the caller's code may name records, and so is only in the warning.
        """
        part, message, given = small_part(dataset), "", list[Tensor]()

        def note(module: nn.Module, inputs: tuple[Any, ...]) -> None:
            if module.training and layers_of(module) == whole and inputs and isinstance(inputs[0], Tensor):
                given.append(moments(inputs[0]))

        whole = layers_of(begin(network, seed))
        try:
            with register_module_forward_pre_hook(note):
                one, other = (self.train(network, part, seed, device, threads).state_dict() for _ in range(2))
            observed = compared(one, other)
        except NoNetworkReturned:
            raise
        except Exception as error:  # of the caller's code, which may be made for more records
            observed = f"not looked at: on a part of {len(part):,} records it fails ({type(error).__name__})"
            message = f": {error!s:.80}"
        if observed != SAME:
            warnings.warn(
                f"{self.name} was run twice with one seed: {observed}{message}. Requests that train again are still "
                "done without the records, but a replay cannot be expected to give the same bytes",
                NotRepeatableWarning,
                stacklevel=5,
            )
        if given and part.shape and (differs := scaled(torch.stack(given).mean(0), moments(tensors(part)[0]))):
            warnings.warn(f"{self.name} gives the network {differs}", stacklevel=5)
        return replace(self, observed=observed)


Training = Recipe | OwnTraining
"""How a network is trained: by a recipe, or by a function of the caller's own."""


def training_of(facts: Mapping[str, Any], function: TrainingFunction | None = None) -> Training:
    """Make the recipe, or the training by the caller's function, that facts describe. No function is imported."""
    if "function" in facts:
        return replace(OwnTraining.of(facts), function=function)
    found = from_plain(Recipe, dict(facts))
    if found.facts != dict(facts):
        raise ValueError(f"{dict(facts)!r:.80} is no recipe")
    return found


def source_of(function: Any) -> str:
    """Hash the file that defines a function."""
    file = getattr(sys.modules[function.__module__], "__file__", None)
    if file is None or not file.endswith(".py") or not Path(file).is_file():
        raise DataError(f"{function.__module__} is no Python file whose source could be recorded: define train in one")
    return sha256_of(Path(file))


def small_part(dataset: Dataset) -> Dataset:
    """Select a few records of every class."""
    ordered = dataset.in_order()
    classes = np.unique(ordered.labels)
    each = max(2, PART // len(classes))
    return ordered.select(np.sort(np.concatenate([ordered.ids[ordered.labels == one][:each] for one in classes])))


def layers_of(network: nn.Module) -> list[type[nn.Module]]:
    """Return the types of all layers: what tells a network from one of its parts."""
    return [type(layer) for layer in network.modules()]


def moments(inputs: Tensor) -> Tensor:
    """Return the mean of numbers, and of their squares."""
    found = inputs.detach().double().cpu()
    return torch.stack([found.mean(), found.square().mean()])


def scaled(given: Tensor, own: Tensor) -> str:
    """Say how inputs differ from those of the records by their moments; empty if they are about the same."""
    mean, own_mean = float(given[0]), float(own[0])
    width, own_width = (max(float(each[1] - each[0] ** 2), 0.0) ** 0.5 for each in (given, own))
    if max(width, own_width) <= 2.0 * min(width, own_width) and abs(mean - own_mean) <= max(width, own_width):
        return ""
    return (
        f"inputs of mean {mean:.2g} and deviation {width:.2g}, and those of the records are of {own_mean:.2g} and "
        f"{own_width:.2g}. If it scales them, let the first layer of the network do so instead: features are computed "
        "of the records as they are"
    )


def compared(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> str:
    """Say whether two networks have the same bytes, or which weights differ most."""
    gaps = {
        name: float((value.double() - other[name].double()).abs().max()) if value.numel() else 0.0
        for name, value in one.items()
        if digest(value) != digest(other[name])
    }
    if not gaps:
        return SAME
    worst = max(gaps, key=lambda name: gaps[name])
    return f"{len(gaps)} of {len(one)} weights and buffers differed, {worst!r} most, by up to {gaps[worst]:.1e}"


def digest(value: Tensor) -> bytes:
    return hashlib.sha256(as_array(value.detach().cpu().contiguous()).tobytes()).digest()
