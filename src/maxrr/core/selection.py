"""Cores that need no training to be chosen: by a hash, all records, none."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.core.choice import Choice, check_classes, chosen
from maxrr.core.hashing import as_key, keyed_hashes
from maxrr.data import Dataset
from maxrr.nets import Recipe
from maxrr.nets.seeding import Network
from maxrr.progress import Progress


@dataclass(frozen=True)
class HashCore:
    """A record is core if a keyed hash of its id says so: decided for each by itself, whatever others there are.

    So forgetting any of them leaves the choice as it would have been without them, and exactness is unconditional.

    Parameters
    ----------
    fraction : float
        Of all records, about; above 0, at most 1.
    key : bytes or str
        To be kept secret: who knows it knows which records are core.

    Examples
    --------
    >>> core = HashCore(0.25, key="secret")
    >>> int(core.is_core(np.arange(10_000)).sum()), core
    (2478, HashCore(fraction=0.25))
    """

    fraction: float
    key: bytes | str = field(repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fraction", float(self.fraction))
        if not 0.0 < self.fraction <= 1.0:
            raise ValueError(f"a fraction of the records is above 0 and at most 1, not {self.fraction:g}")
        object.__setattr__(self, "key", as_key(self.key))

    def is_core(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """Whether records with these ids are core: the first 64 bits of the hash, as a fraction, are below ours."""
        bound = self.fraction * 2.0**64  # exact, and Python compares integers with it exactly
        hashes = keyed_hashes(ids, as_key(self.key))
        return np.array([int.from_bytes(value[:8], "big") < bound for value in hashes], dtype=bool)

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Recipe, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    ) -> Choice:  # fmt: skip
        """The core; as `Core.choose`, but only the ids and whether two classes are left matter."""
        check_classes(dataset)
        return chosen(
            dataset, dataset.ids[self.is_core(dataset.ids)], kind="hash", unconditional=True,
            depended_on="whether a record is core depends on its id and a key alone, not on any other record",
            fraction=self.fraction,
        )  # fmt: skip


@dataclass(frozen=True)
class FullCore:
    """Every record is core, as in the paper's plain model splitting: what is forgotten was always seen."""

    def is_core(self, ids: NDArray[Any]) -> NDArray[np.bool_]:
        """All are."""
        return np.ones(len(ids), dtype=bool)

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Recipe, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    ) -> Choice:  # fmt: skip
        """All records; as `Core.choose`."""
        check_classes(dataset)
        return chosen(
            dataset, dataset.ids, kind="full", unconditional=True,
            depended_on="every record is core: nothing was chosen",
        )  # fmt: skip


@dataclass(frozen=True)
class Frozen:
    """No record is core: the network is a pretrained extractor, used as it is."""

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Recipe, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    ) -> Choice:  # fmt: skip
        """No records; as `Core.choose`."""
        return Choice(
            ids=dataset.ids[:0].copy(), unconditional=False, details={"kind": "frozen", "k": 0},
            depended_on="no record is core: the extractor is used as it was given, on the word of whoever gave it that "
            "these records had no part in its training",
        )  # fmt: skip
