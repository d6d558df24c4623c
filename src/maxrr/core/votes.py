"""Which records were influential in each run, in a folder: a run's votes are there whole, or not at all.

The folder is one of `maxrr.nets.run_store`: it belongs to one kind of run, here with one C, and refuses others. A
finished network stays in it only until its votes are on the disk: it was trained on records that may have to go.
"""

import io
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.files import write_atomically
from maxrr.nets.run_store import RunStore


@dataclass(frozen=True, eq=False)
class Votes:
    """The influential records of one run, in the order of their ids."""

    packed: NDArray[np.uint8]  # eight records per byte, as np.packbits has them
    gap: float  # the largest relative gap of a head


class VoteStore:
    """The votes of all runs of one kind, and the networks of runs that are not counted yet.

    Raises
    ------
    ValueError
        The folder holds runs of another kind, or another process works in it.
    """

    def __init__(self, folder: str | Path, kind: dict[str, Any], count: int) -> None:
        self.runs = RunStore(folder, kind)
        self.count = count  # of records
        for network in self.networks():
            if network.with_name(network.name.replace("run-", "votes-")).exists():  # killed just before it was deleted
                network.unlink()

    def networks(self) -> list[Path]:
        return list(self.runs.folder.glob("run-*.npz"))

    def path(self, seed: int) -> Path:
        return self.runs.folder / f"votes-{seed}.npz"

    def __contains__(self, seed: int) -> bool:
        return self.path(seed).exists()

    def add(self, seed: int, votes: Votes) -> None:
        """Store the votes of a run, then delete its network."""
        content = io.BytesIO()
        np.savez(content, packed=votes.packed, gap=np.float64(votes.gap), seed=np.str_(seed))
        write_atomically(self.path(seed), content.getvalue())
        self.runs.path(seed).unlink(missing_ok=True)

    def get(self, seed: int) -> Votes:
        path = self.path(seed)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                packed, gap, found = stored["packed"], float(stored["gap"]), int(str(stored["seed"]))
        except (zipfile.BadZipFile, zlib.error, ValueError, LookupError, TypeError, OSError, EOFError) as error:
            raise damaged(path, str(error)) from error
        if found != seed:
            raise damaged(path, f"it is the run of seed {found}")
        if packed.dtype != np.uint8 or packed.shape != ((self.count + 7) // 8,):
            raise damaged(path, f"its votes are not those of {self.count} records")
        return Votes(packed, gap)

    def finish(self) -> None:
        """Delete the networks that are left: those of seeds that were not asked for again."""
        for network in self.networks():
            network.unlink()


def damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is damaged ({why}): delete it, and the run is repeated")
