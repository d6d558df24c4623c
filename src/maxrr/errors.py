"""What can go wrong, by what a caller can do about it. All of it is a `MaxRRError`, and each kind has its `code`.

Each is a ValueError as well, which scikit-learn and older callers expect; those of engines are RuntimeErrors. A head
that cannot be solved is an ArithmeticError as well, of the room that solves it: `maxrr.svm.ConvergenceError`.

Callers catch the kinds in `__all__`, and tell the others apart by their `code`, which never changes.
"""

import re
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
    "ServiceError",
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
        What names this kind of error for programs, and never changes: the name of the class, as in `older-copy`.
    """

    code = "error"

    def __init_subclass__(cls) -> None:
        cls.code = re.sub("(?<=.)(?=[A-Z])", "-", cls.__name__.removesuffix("Error")).lower()


class DataError(MaxRRError, ValueError):
    """Something is wrong with the data: what, with which record or file. Repair or replace it."""


class UnknownRecords(DataError):
    """Records beside those of a model that it has not forgotten either. Bring the data that it was fitted on."""


class WorkspaceError(MaxRRError, ValueError):
    """A folder that is not a workspace, is in use, or holds files that are not as they were written."""


class EvidenceError(MaxRRError, ValueError):
    """A key, signature, proof or log that is not what it must be: what, and where. Do not believe what it says."""


class Refused(MaxRRError, ValueError):
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


class NotHere(Refused, DataError):
    """A request for records or people that the model does not hold. Check their ids.

    Parameters
    ----------
    message : str
        Which ids or people are not there.
    plans : tuple of maxrr.unlearning.Plan
        As in `Refused`: always empty, because no other policy finds a record that is not there.
    """


class OlderCopy(Refused, WorkspaceError):
    """Work in a workspace that is known to be an older copy of it, or a fork: a second history would begin.

    Bring the newer copy with `Workspace.catch_up`; if it is gone for good, say so with `Workspace.declare_gone`.

    Parameters
    ----------
    message : str
        How much is missing, and what to do.
    plans : tuple of maxrr.unlearning.Plan
        As in `Refused`: always empty, because no other policy makes the copy newer.
    """


class Stale(MaxRRError, ValueError):
    """A plan for a state that the model is no longer in. Nothing was changed. Plan again, and look at the new plan."""


class Revoked(MaxRRError, ValueError):
    """A served model that still knows what was forgotten since. Export it again from its workspace."""


class RevocationsUnread(MaxRRError, ValueError):
    """The list of revocations could not be read for too long, so that nobody knows whether a model may still answer."""


class EngineError(MaxRRError, RuntimeError):
    """Work could not be done where it was sent to: a cluster does not answer, or its nodes have something else."""


class WorkerLostError(EngineError):
    """A worker process ended before its work was done, for example because it ran out of memory."""


class ServiceError(MaxRRError, ValueError):
    """A call that a service does not carry out as it is. Nothing was changed."""


class MissingColumn(DataError):
    """A table without a column that is needed. Rename one, or say which one is meant."""


class MissingIds(DataError):
    """Records without ids, by which requests name them. Give ids, or say how they are made."""


class IdTaken(DataError):
    """An id that another record has. Ids name one record each."""


class UnknownClass(DataError):
    """A label that is none of the model's classes. Check its spelling."""


class OtherShape(DataError):
    """Records of another shape or type than the model's. Bring them as they were fitted."""


class OtherRecords(DataError):
    """Data that is not what the model was fitted on. Bring the same records, unchanged."""


class RecordsMissing(DataError):
    """Work that needs the raw records, which a workspace does not keep. Say how they are read."""


class NoSubjects(DataError):
    """A question about a person to records that do not say whom they are about. Ask by record ids."""


class NoChange(DataError):
    """A correction that changes nothing."""


class UnknownSource(DataError):
    """Data that is neither a file, a folder nor a known name. Check its spelling."""


class UnreadableFile(DataError):
    """A file that is not of its kind, or damaged. Replace or convert it."""


class TrainingMissing(DataError):
    """Training by a function of the caller, who has to give it again.

    Parameters
    ----------
    name : str
        Where the function is imported from, as in package.module:function.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"this trains again, by {name}: give that as train=…, in the shell by MAXRR_TRAIN={name}")


class NoNetworkReturned(DataError):
    """A training function that does not return the network that it was given, trained. End it with `return network`."""


class TrainingChanged(DataError):
    """A training function that is no longer the one that was used. Bring its module as it was."""


class NetworkMissing(DataError):
    """Work with a network of the caller, who has to give it again.

    Parameters
    ----------
    maker : str or None
        What made the network that was fitted, as in package.module:function, if that is known.
    """

    def __init__(self, maker: str | None) -> None:
        made = "" if maker is None else f", which {maker} makes"
        called = maker or "package.module:function"
        super().__init__(f"this needs the model's own network{made}: network=…, in the shell MAXRR_NETWORK={called}")


class OtherNetwork(WorkspaceError):
    """A network that is not the one that was fitted. Name that one."""


class OtherWeights(WorkspaceError):
    """A network without the weights that training started from. Give it with those."""


class Damaged(WorkspaceError):
    """A file of a workspace that is not as it was written. Restore the folder, or fit again."""


class WorkspaceVersion(WorkspaceError):
    """A workspace that another version of maxrr has written. Use that version, or fit again."""


class NotAWorkspace(WorkspaceError):
    """A folder that is no workspace. Check its name, or fit one."""


class OtherWorkspace(WorkspaceError):
    """A receipt, history or folder of another workspace."""


class FolderTaken(WorkspaceError):
    """A folder that holds something else already. Name one that is new or empty."""


class InUse(WorkspaceError):
    """A workspace that another process works in. Wait until it is done."""


class WorkspaceClosed(WorkspaceError):
    """A workspace that was closed, or opened in another process. Open it again."""


class ReadOnly(WorkspaceError):
    """A change to a workspace that was opened to be read."""


class ParametersChanged(WorkspaceError):
    """A request to a model whose parameters were changed since its fit. Fit it again."""


class DetachedCopy(WorkspaceError):
    """A receipt from a copy of a workspace's model, where numbers would be given twice."""


class KeyMissing(WorkspaceError, EvidenceError):
    """Work that has to be signed, and no key to sign it with."""


class NotSigned(WorkspaceError):
    """Evidence of a receipt that nobody has signed."""


class UnsafeMode(WorkspaceError, EvidenceError):
    """A key or folder that others than its owner can use or change."""


class FileExists(DataError, EvidenceError):
    """A file that is there already and is not written over. Choose another name."""


class NotAKey(EvidenceError):
    """A file that holds no key of the kind that is needed."""


class UntrustedKey(EvidenceError):
    """A signature by a key that is not among those trusted."""


class NotSucceeded(EvidenceError):
    """A key that the kept one has not signed for. Ask the operator, by another way."""


class WrongSignature(EvidenceError):
    """Something that was changed after it was signed."""


class WrongProof(EvidenceError):
    """A proof that does not lead to what it should prove."""


class Contradiction(EvidenceError):
    """Parts of the same evidence that contradict each other."""


class WrongLog(EvidenceError):
    """A log that lacks something, or was rewritten."""


class OtherLog(EvidenceError):
    """A checkpoint or proof of another log."""


class PageChanged(EvidenceError):
    """A person's page that is not what the evidence inside it gives."""


class CoreRefused(Refused):
    """A request for core records under a policy that refuses them. Choose one of `plans`."""


class UnknownId(NotHere):
    """A request for a record that the model does not hold. Check its id; records for testing are in no model."""


class UnknownSubject(NotHere):
    """A request for a person whom no record is about. Check the name."""


class UnknownReceipt(NotHere):
    """A receipt that the workspace does not have."""


class AlreadyForgotten(NotHere):
    """Records or people that were forgotten before, and must not come back."""


class CopyOfForgotten(NotHere):
    """New records with exactly the values of forgotten ones. Say why they may come."""


class OtherVersions(EngineError):
    """A node with other versions, which would give other bytes. Install the same ones."""


class NoToken(ServiceError):
    """A call without a token, or with one that is not known or was revoked."""


class NotAllowed(ServiceError):
    """A call that the role of the token does not allow."""


class UnknownRequest(ServiceError):
    """A request that is not there, or is somebody else's. Check its id."""


class WrongState(ServiceError):
    """A step that a request cannot take in its present state, such as cancelling one that was carried out."""


class KeyReused(ServiceError):
    """An idempotency key that came with another body before, or with one that cannot be compared any more."""


class NamesDestroyed(ServiceError):
    """A question about the people in a request whose answer was delivered. What named them was destroyed."""


class HostNotAllowed(ServiceError):
    """An address to call back at a host that the operator of the service does not allow."""


class TooLarge(ServiceError):
    """A call with a larger body than the service takes."""


class TooMany(ServiceError):
    """More calls than a token may make in that time. Wait a moment."""


class DatabaseAway(ServiceError):
    """A database that does not answer, is full or locked. Try again."""


class DatabaseGone(DatabaseAway):
    """A database or keys of requests that are gone, or were replaced in use. Stop the service first, restore them."""


class DatabaseVersion(ServiceError):
    """A database that a later release has written. Start that one."""


class ModelAway(ServiceError):
    """A model that could not be read yet. Try again."""
