"""Finished runs in a folder: each is there whole, or not at all.

A folder belongs to one kind of run: the same network, recipe and records. What that is stands in `runs.json`, so that
runs of different kinds are never mixed, and each seed has a file of its own. Nothing is unpickled: weights are plain
arrays.
"""

import dataclasses
import hashlib
import io
import json
import zipfile
import zlib
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.files import Lock, from_plain, write_atomically
from maxrr.nets.architecture import architecture
from maxrr.nets.recipe import Environment, Recipe, Run

KIND = "runs.json"
LOCK = ".lock"
ABOUT = "about"  # the array that holds what is not a weight, as JSON
WEIGHTS = "weights/"  # before the names of the others
DAMAGE = zipfile.BadZipFile, zlib.error, ValueError, LookupError, TypeError, OSError, EOFError, RuntimeError


class HasFacts(Protocol):
    """A way to train: what is asked of it here."""

    @property
    def facts(self) -> dict[str, Any]: ...


class RunStore:
    """The finished runs of one kind, in a folder.

    Parameters
    ----------
    folder
        Created if it does not exist.
    kind
        What all runs have in common, as `kind_of` gives it.

    Raises
    ------
    ValueError
        The folder holds runs of another kind, or another process is training into it.
    """

    def __init__(self, folder: str | Path, kind: dict[str, Any]) -> None:
        self.folder = Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.lock = Lock(self.folder / LOCK, of_process=True)
        except BlockingIOError as error:
            raise ValueError(
                f"another process is training into {folder}: wait for it, or use another folder"
            ) from error
        for left_behind in self.folder.glob(".maxrr-*.tmp"):  # by a process that was killed while it wrote
            left_behind.unlink()
        there = self.folder / KIND
        if there.exists():
            check_same(kind, read_kind(there), self.folder)
        else:
            write_atomically(there, json.dumps(kind, indent=2).encode())

    def path(self, seed: int) -> Path:
        return self.folder / f"run-{seed}.npz"

    def __contains__(self, seed: int) -> bool:
        return self.path(seed).exists()

    def add(self, run: Run) -> None:
        """Store a run; when this returns, it is on the disk."""
        write_atomically(self.path(run.seed), content_of(run))

    def get(self, seed: int, network: nn.Module) -> Run:
        """A stored run; `network` is one of its kind and receives the weights."""
        path = self.path(seed)
        try:
            return run_in(path.read_bytes(), seed, network)
        except DAMAGE as error:
            raise ValueError(f"{path} is damaged ({error}): delete it, and the run is repeated") from error


def content_of(run: Run) -> bytes:
    """A run as its file has it."""
    environment = dataclasses.asdict(run.environment)
    about = {"seed": run.seed, "loss": run.loss, "accuracy": run.accuracy, "environment": environment}
    arrays: dict[str, Any] = {WEIGHTS + name: as_array(value) for name, value in run.network.state_dict().items()}
    arrays[ABOUT] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, **arrays)
    return content.getvalue()


def run_in(content: bytes, seed: int, network: nn.Module) -> Run:
    """The run of which this is the content; `network` is one of its kind and receives the weights."""
    with np.load(io.BytesIO(content), allow_pickle=False) as stored:
        about = json.loads(stored[ABOUT].tobytes())
        arrays = {name.removeprefix(WEIGHTS): stored[name] for name in stored.files if name != ABOUT}
    kinds = {name: value.dtype for name, value in network.state_dict().items()}
    network.load_state_dict({name: as_tensor(value, kinds.get(name)) for name, value in arrays.items()})
    if about["seed"] != seed:
        raise ValueError(f"it is the run of seed {about['seed']}")
    return Run(seed, network.eval(), about["loss"], about["accuracy"], from_plain(Environment, about["environment"]))


def as_array(value: Tensor) -> NDArray[Any]:
    """A tensor's numbers; NumPy does not know bfloat16, and gets its bits."""
    array: NDArray[Any] = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    return array


def as_tensor(array: NDArray[Any], kind: torch.dtype | None) -> Tensor:
    """The tensor that was stored."""
    value = torch.from_numpy(array)
    return value.view(kind) if kind == torch.bfloat16 else value


def kind_of(network: nn.Module, dataset: Dataset, recipe: HasFacts) -> dict[str, Any]:
    """What runs have in common, whatever their seeds."""
    frozen = hashlib.sha256()
    for place, layer in network.named_modules():
        kept = [(name, value) for name, value in layer.named_parameters(recurse=False) if not value.requires_grad]
        if not layer.training:
            kept += layer.named_buffers(recurse=False)
        for name, value in kept:
            frozen.update(f"{place}.{name} {value.dtype} {tuple(value.shape)}\n".encode())
            frozen.update(as_array(value.detach().cpu().contiguous()).tobytes())
    return {
        "layers": architecture(network),
        "frozen": frozen.hexdigest(),
        "recipe": recipe.facts | ({} if type(recipe) is Recipe else {"kind": type(recipe).__qualname__}),
        "records": dataset.content_hash(),
    }


def read_kind(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}): empty the folder to start anew") from error


def check_same(kind: dict[str, Any], there: Any, folder: Path) -> None:
    """Refuse to mix runs of different kinds, saying in what they differ."""
    different = [name for name in kind if not isinstance(there, dict) or there.get(name) != kind[name]]
    if different:
        raise ValueError(
            f"{folder} holds runs with other {' and '.join(different)}: use another folder, or empty it to start anew"
        )
