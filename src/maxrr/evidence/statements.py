"""What is said of a model, by its digest: a Statement of in-toto, version 1."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from maxrr.errors import EvidenceError
from maxrr.evidence.exact_text import canonical_json, exactly, read_json, text

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
RECEIPT_TYPE = "https://maxrr.dev/receipt/v1"  # the predicate's, where a receipt is what is said


@dataclass(frozen=True)
class Subject:
    """What a statement is about.

    Attributes
    ----------
    name : str
        What it is called. It has a meaning within the statement only.
    sha256 : str
        The SHA-256 of its bytes, in 64 lower-case hexadecimal digits: this is what identifies it.
    """

    name: str
    sha256: str

    def __post_init__(self) -> None:
        if not self.name:
            raise EvidenceError("a subject has a name")
        if not re.fullmatch("[0-9a-f]{64}", self.sha256):
            raise EvidenceError("a subject's SHA-256 has 64 lower-case hexadecimal digits")


@dataclass(frozen=True)
class Statement:
    """A predicate about one or several subjects.

    Attributes
    ----------
    subjects : tuple of Subject
        What it is about; no two of one name.
    predicate_type : str
        The URI that says how the predicate is to be read.
    predicate : mapping
        What is said, as JSON can say it.
    """

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, Any]

    def __post_init__(self) -> None:
        if not self.subjects or len({subject.name for subject in self.subjects}) < len(self.subjects):
            raise EvidenceError("a statement has at least one subject, and no two of one name")
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*:\S+", self.predicate_type):
            raise EvidenceError("a statement's predicate type is a URI")

    def to_bytes(self) -> bytes:
        """The statement as JSON, in the one form that is written here.

        Returns
        -------
        bytes
            Names sorted, no spaces, UTF-8.
        """
        subjects = [{"name": each.name, "digest": {"sha256": each.sha256}} for each in self.subjects]
        return canonical_json({
            "_type": STATEMENT_TYPE, "subject": subjects, "predicateType": self.predicate_type,
            "predicate": dict(self.predicate),
        })  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read a statement, in whatever order and spacing its JSON is.

        Parameters
        ----------
        data : bytes
            The JSON text: the payload of an envelope whose signature was verified.

        Returns
        -------
        Statement
            What it says.

        Raises
        ------
        EvidenceError
            It is no such statement, has fields that are not known here, or one name twice.
        """
        said = exactly(
            read_json(data, "the statement"), ("_type", "subject", "predicateType", "predicate"), "the statement"
        )  # fmt: skip
        if said["_type"] != STATEMENT_TYPE:
            raise EvidenceError(f"the statement is not of the type {STATEMENT_TYPE}")
        if not isinstance(said["subject"], list):
            raise EvidenceError("the statement's subjects are not a list")
        subjects = []
        for each in said["subject"]:
            subject = exactly(each, ("name", "digest"), "a subject")
            digest = exactly(subject["digest"], ("sha256",), "a subject's digest")
            subjects.append(Subject(text(subject["name"], "a subject's name"), text(digest["sha256"], "a digest")))
        if not isinstance(said["predicate"], dict):
            raise EvidenceError("the statement's predicate is not a JSON object")
        return cls(tuple(subjects), text(said["predicateType"], "the predicate type"), said["predicate"])
