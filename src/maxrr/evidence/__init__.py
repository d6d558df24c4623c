"""Evidence that others can check alone: a salted commitment to records, signed statements, and a log that nobody can
quietly rewrite. Knows nothing about learning.
"""

from maxrr.evidence.checkpoints import Checkpoint
from maxrr.evidence.dossiers import Check, Dossier
from maxrr.evidence.envelopes import Envelope
from maxrr.evidence.log import Log, check_log, compare_logs
from maxrr.evidence.public_keys import PublicKeys, make_key, rotate_key
from maxrr.evidence.signing import PublicKey, SigningKey

__all__ = [
    "Check",
    "Checkpoint",
    "Dossier",
    "Envelope",
    "Log",
    "PublicKey",
    "PublicKeys",
    "SigningKey",
    "check_log",
    "compare_logs",
    "make_key",
    "rotate_key",
]
