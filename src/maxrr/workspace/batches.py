"""Several requests, collected in a block and answered together when it ends."""

from maxrr.errors import Refused
from maxrr.unlearning import Receipt
from maxrr.unlearning.aliases import Ids
from maxrr.unlearning.groups import Named


class Ticket:
    """What became of one request of a batch, once the block has ended."""

    def __init__(self) -> None:
        self._answer: Receipt | Refused | None = None

    @property
    def receipt(self) -> Receipt:
        """The receipt of the request. Where it was refused, that is raised: `maxrr.errors.Refused`."""
        if self._answer is None:
            raise ValueError("the request was not answered: its batch has not ended, or ended with an error")
        if isinstance(self._answer, Refused):
            raise self._answer
        return self._answer


class Batch:
    """Requests that are answered together when the block of `Workspace.batch` ends."""

    def __init__(self) -> None:
        self._tickets: list[tuple[Named, Ticket]] = []

    def unlearn(self, ids: Ids | None = None, *, subjects: Ids | None = None) -> Ticket:
        """Ask to forget records, by their ids or all records of some subjects.

        Parameters
        ----------
        ids, subjects : int, str or array, optional
            As in `MaxRR.unlearn`: one of the two.

        Returns
        -------
        Ticket
            Has the receipt, once the block has ended.
        """
        if (ids is None) == (subjects is None):
            raise ValueError("a request names records by ids, or people by subjects: one of the two")
        ticket = Ticket()
        self._tickets.append(((ids, subjects), ticket))
        return ticket
