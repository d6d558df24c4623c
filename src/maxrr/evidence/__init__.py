"""Evidence that a person can check alone: signed statements, and a log that nobody can quietly rewrite."""

from maxrr.evidence.append_tree import leaf_hash
from maxrr.evidence.checkpoints import Checkpoint, OlderCheckpoint, SplitView, TwoCheckpoints
from maxrr.evidence.envelopes import Envelope, EnvelopeSignature
from maxrr.evidence.log import Log
from maxrr.evidence.log_check import check_log
from maxrr.evidence.log_proofs import Consistency, Inclusion
from maxrr.evidence.log_writer import LogWriter
from maxrr.evidence.notes import Note, NoteSignature, note_key_id, verifier_key
from maxrr.evidence.signing import PublicKey, SigningKey
from maxrr.evidence.statements import Statement, Subject

__all__ = [
    "Checkpoint",
    "Consistency",
    "Envelope",
    "EnvelopeSignature",
    "Inclusion",
    "Log",
    "LogWriter",
    "Note",
    "NoteSignature",
    "OlderCheckpoint",
    "PublicKey",
    "SigningKey",
    "SplitView",
    "Statement",
    "Subject",
    "TwoCheckpoints",
    "check_log",
    "leaf_hash",
    "note_key_id",
    "verifier_key",
]
