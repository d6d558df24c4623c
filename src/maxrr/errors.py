"""What can go wrong, by what a caller can do about it. All of it is a `MaxRRError`.

Each is a ValueError as well, which scikit-learn and older callers expect; those of engines are RuntimeErrors. A head
that cannot be solved is an `ArithmeticError` of the room that solves it: `maxrr.svm.ConvergenceError`.
"""

import typing

__all__ = [
    "DataError",
    "EngineError",
    "EvidenceError",
    "MaxRRError",
    "NotHere",
    "OlderCopy",
    "Refused",
    "RevocationsUnread",
    "Revoked",
    "Stale",
    "UnknownRecords",
    "WorkerLostError",
    "WorkspaceError",
]


class MaxRRError(Exception):
    """Something that a caller can put right. The message says what was wrong, with what, and what to do.

    Attributes
    ----------
    code : str
        What names this kind of error for programs, and never changes; empty where it has no such name.
    """

    code = ""


class DataError(MaxRRError, ValueError):
    """Something is wrong with the data: what, with which record or file. Repair or replace it."""


class UnknownRecords(DataError):  # noqa: N818 (an answer, and no fault)
    """Records beside those of a model that it has not forgotten either. Bring the data that it was fitted on."""


class WorkspaceError(MaxRRError, ValueError):
    """A folder that is not a workspace, is in use, or holds files that are not as they were written."""


class EvidenceError(MaxRRError, ValueError):
    """A key, signature, proof or log that is not what it must be: what, and where. Do not believe what it says."""


class Refused(MaxRRError, ValueError):  # noqa: N818 (an answer, and no fault)
    """A request that is not carried out as it is. Nothing was changed. Ask for one of `plans`, or for something else.

    Parameters
    ----------
    message : str
        Why the request is refused, and what to do instead.
    plans : tuple of maxrr.unlearning.Plan
        What could be asked for instead, one plan each; none where no other policy would help. The exception has them
        as an attribute of the same name.
    """

    def __init__(self, message: str, plans: tuple[typing.Any, ...] = ()) -> None:
        super().__init__(message)
        self.plans = plans


class NotHere(Refused, DataError):  # noqa: N818
    """A request for records or people that the model does not hold. Check their ids.

    Parameters
    ----------
    message : str
        Which ids or people are not there.
    plans : tuple of maxrr.unlearning.Plan
        As in `Refused`: always empty, because no other policy finds a record that is not there.
    """


class OlderCopy(Refused, WorkspaceError):  # noqa: N818
    """Work in a workspace that is known to be an older copy of it, or a fork: a second history would begin.

    Bring the newer copy with `Workspace.catch_up`; if it is lost for good, say so with `Workspace.accept_loss`.

    Parameters
    ----------
    message : str
        How much is missing, and what to do.
    plans : tuple of maxrr.unlearning.Plan
        As in `Refused`: always empty, because no other policy makes the copy newer.
    """

    code = "older-copy"


class Stale(MaxRRError, ValueError):  # noqa: N818
    """A plan for a state that the model is no longer in. Nothing was changed. Plan again, and look at the new plan."""


class Revoked(MaxRRError, ValueError):  # noqa: N818
    """A served model that still knows what was forgotten since. Export it again from its workspace."""


class RevocationsUnread(MaxRRError, ValueError):  # noqa: N818
    """The list of revocations could not be read for too long, so that nobody knows whether a model may still answer."""


class EngineError(MaxRRError, RuntimeError):
    """Work could not be done where it was sent to: a cluster does not answer, or its nodes have something else."""


class WorkerLostError(EngineError):
    """A worker process ended before its work was done, for example because it ran out of memory."""
