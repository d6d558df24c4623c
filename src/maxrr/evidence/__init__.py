"""Evidence that others can check alone: a salted commitment to records, signed statements, and a log that nobody can
quietly rewrite. Knows nothing about learning.
"""

from maxrr.evidence.append_tree import leaf_hash
from maxrr.evidence.changes import Change
from maxrr.evidence.checkpoints import Checkpoint, OlderCheckpoint, SplitView, TwoCheckpoints
from maxrr.evidence.dossiers import Check, Dossier, DossierRecord
from maxrr.evidence.envelopes import Envelope, EnvelopeSignature
from maxrr.evidence.histories import History, compare_logs
from maxrr.evidence.keyring import find_key, find_public_keys, make_key, rotate_key
from maxrr.evidence.log import Log
from maxrr.evidence.log_check import check_log
from maxrr.evidence.log_proofs import Consistency, Inclusion
from maxrr.evidence.log_writer import LogWriter
from maxrr.evidence.notes import Note, NoteSignature, note_key_id, verifier_key
from maxrr.evidence.proofs import Absence, Presence
from maxrr.evidence.public_keys import PublicKeys
from maxrr.evidence.salts import key_of, salt_of, value_of
from maxrr.evidence.signing import PublicKey, SigningKey
from maxrr.evidence.sparse_tree import Tree
from maxrr.evidence.statements import Statement, Subject

__all__ = [
    "Absence",
    "Change",
    "Check",
    "Checkpoint",
    "Consistency",
    "Dossier",
    "DossierRecord",
    "Envelope",
    "EnvelopeSignature",
    "History",
    "Inclusion",
    "Log",
    "LogWriter",
    "Note",
    "NoteSignature",
    "OlderCheckpoint",
    "Presence",
    "PublicKey",
    "PublicKeys",
    "SigningKey",
    "SplitView",
    "Statement",
    "Subject",
    "Tree",
    "TwoCheckpoints",
    "check_log",
    "compare_logs",
    "find_key",
    "find_public_keys",
    "key_of",
    "leaf_hash",
    "make_key",
    "note_key_id",
    "rotate_key",
    "salt_of",
    "value_of",
    "verifier_key",
]
