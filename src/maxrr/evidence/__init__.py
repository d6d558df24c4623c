"""Evidence that others can check alone: a salted commitment to records, signed statements, and a log that nobody can
quietly rewrite. Knows nothing about learning.
"""

from maxrr.evidence.checkpoints import (
    Checkpoint,
    Note,
    NoteSignature,
    note_key_id,
    verifier_key,
)
from maxrr.evidence.dossiers import Check, Dossier, DossierRecord
from maxrr.evidence.envelopes import Envelope, EnvelopeSignature, Statement, Subject
from maxrr.evidence.log import History, Log, check_log, compare_logs
from maxrr.evidence.log_proofs import Consistency, Inclusion, leaf_hash
from maxrr.evidence.log_writer import LogWriter
from maxrr.evidence.proofs import Absence, Presence
from maxrr.evidence.public_keys import PublicKeys, find_key, find_public_keys, make_key, rotate_key
from maxrr.evidence.signing import PublicKey, SigningKey
from maxrr.evidence.sparse_tree import Change, Tree, key_of, salt_of, value_of

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
    "Presence",
    "PublicKey",
    "PublicKeys",
    "SigningKey",
    "Statement",
    "Subject",
    "Tree",
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
