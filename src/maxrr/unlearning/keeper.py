"""Who holds a live model: gives it raw records, and makes each next state durable before the model takes it over."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from maxrr.data import Dataset
from maxrr.unlearning.forgetting import Change


class Keeper(Protocol):
    """What a model asks of whoever holds it. A model in memory has none."""

    def check_open(self) -> None:
        """Refuse to be asked after the model was given up. After a commit that failed, find out what the state is."""

    def check_newest(self) -> None:
        """Refuse to hand out anything of a state that is known to be an older one."""

    def changing(self, *, receipts: bool = True, newest: bool = True) -> AbstractContextManager[None]:
        """Refuse a change before any work: by one who may only read, without a key where receipts are signed, …"""

    def raw_records(self) -> Dataset | None:
        """Return the raw records, which are dropped when the verb that needs them ends; None if nobody gives them."""

    def commit(self, change: Change) -> None:
        """Make the next state durable, and the model's own. If it raises, the model has the state before."""

    def ranking(self) -> Path:
        """Return the folder where a ranking keeps its runs."""

    @property
    def note_audit(self) -> Callable[[str], int]:
        """Return a function that counts an audit of the receipt with this hash, and says how many there were before."""
