"""Evidence that others can check alone: a salted commitment to records. Knows nothing about learning."""

from maxrr.evidence.changes import Change
from maxrr.evidence.proofs import Absence, Presence
from maxrr.evidence.salts import key_of, salt_of, value_of
from maxrr.evidence.sparse_tree import Tree

__all__ = ["Absence", "Change", "Presence", "Tree", "key_of", "salt_of", "value_of"]
