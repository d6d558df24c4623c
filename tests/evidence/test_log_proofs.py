"""Roots and proofs of RFC 6962: those of Go's sumdb/tlog and of pymerkle, and those that were published."""

import hashlib
import json
from functools import cache, partial
from pathlib import Path

import pymerkle
import pytest
from pymerkle.proof import verify_inclusion

from maxrr.errors import EvidenceError
from maxrr.evidence.exact_text import canonical_json, read_json, to_base64
from maxrr.evidence.log_proofs import (
    EMPTY_ROOT,
    Inclusion,
    Subtrees,
    leaf_hash,
)
from tests.cases import every
from tests.evidence.logs import digits as numbers
from tests.evidence.logs import flipped, tree_hash

GO = json.loads((Path(__file__).parents[1] / "fixtures" / "evidence" / "go_tlog.json").read_text())
MOST = 70

# The tree of the Certificate Transparency project's tests: its leaves, and the roots over the first 1, 2, … of them.
PUBLISHED = {
    "": "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "00": "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "10": "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "2021": "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "3031": "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "40414243": "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "5051525354555657": "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "606162636465666768696a6b6c6d6e6f": "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
}


@cache
def subtrees():
    return Subtrees(map(leaf_hash, numbers(0, MOST)))


@cache
def roots():
    return [tree_hash(numbers(0, size)) for size in range(MOST + 1)]


def digest(proofs):
    """As the Go program has it."""
    return hashlib.sha256(b"".join(bytes([len(each.path)]) + b"".join(each.path) for each in proofs)).hexdigest()


def test_published_roots():
    subtrees = Subtrees()
    assert subtrees.root(0, 0).hex() == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    for size, (leaf, root) in enumerate(PUBLISHED.items(), start=1):
        subtrees.extend([leaf_hash(bytes.fromhex(leaf))])
        assert subtrees.root(0, size).hex() == root


def test_subtrees_are_those_of_the_tree_over_all_entries():
    subtrees = Subtrees()
    for size, entry in enumerate(numbers(0, MOST)):
        assert (len(subtrees.rows[0]), subtrees.root(0, size)) == (size, roots()[size])
        subtrees.extend([leaf_hash(entry)])
    for height, row in enumerate(subtrees.rows):
        for index in range(MOST >> height):
            assert row[index] == tree_hash(numbers(index << height, (index + 1) << height))
    subtrees.cut(MOST // 3)
    assert subtrees.root(0, MOST // 3) == roots()[MOST // 3]


@pytest.mark.parametrize("said", GO["all"], ids=lambda said: said["size"])
def test_all_roots_and_proofs_are_those_of_go(said):
    size = said["size"]

    assert to_base64(roots()[size]) == said["root"]
    assert digest([subtrees().prove_inclusion(i, size) for i in range(size)]) == said["inclusion"]


@pytest.mark.parametrize("size", [*range(1, 18), *every(7, MOST)[3:], MOST])
def test_every_proof_holds_and_holds_for_nothing_else(size):
    entries = numbers(0, size)
    for index in range(size):
        proof = subtrees().prove_inclusion(index, size)
        leaf, root = leaf_hash(entries[index]), roots()[size]
        assert proof.verify(leaf, size, root)
        assert not proof.verify(leaf_hash(b"another"), size, root)
        assert not proof.verify(leaf, size, roots()[size - 1])
        assert not proof.verify(leaf, size + 1, root)
        assert not any(Inclusion(i, size, proof.path).verify(leaf, size, root) for i in range(size) if i != index)
        assert not taken(partial(Inclusion, index, size, (*proof.path, leaf)), leaf, size, root)
        assert not proof.path or not Inclusion(index, size, proof.path[:-1]).verify(leaf, size, root)


def taken(make, *claim):
    """Whether a proof is neither refused for its form nor found not to hold."""
    try:
        return make().verify(*claim)
    except EvidenceError:
        return False


def test_roots_and_inclusion_proofs_are_those_of_pymerkle():
    tree = pymerkle.InmemoryTree(algorithm="sha256")
    for size, entry in enumerate(numbers(0, MOST), 1):
        tree.append_entry(entry)
        root = roots()[size]
        assert tree.get_root() == root == subtrees().root(0, size)
        for index in range(size):
            theirs, ours = tree.prove_inclusion(index + 1, size), subtrees().prove_inclusion(index, size)
            verify_inclusion(leaf_hash(numbers(0, size)[index]), root, theirs)
            assert tuple(theirs.path[1:]) == ours.path


def test_a_log_of_nothing():
    assert subtrees().root(0, 0) == EMPTY_ROOT == tree_hash([])


@pytest.mark.parametrize("size", [1, 2, 7, 13, 64, 70])
def test_every_bit_of_a_proof_counts(size):
    for index in {0, size // 3, size - 1}:
        made = subtrees().prove_inclusion(index, size)
        leaf, root = leaf_hash(b"%d" % index), roots()[size]
        only_as_it_is(made, leaf, size, root)


def only_as_it_is(proof, *claim):
    """The proof holds as it is, and with no bit of its text changed."""
    text = canonical_json(proof.to_object())
    assert read_as(type(proof), text) == proof
    assert proof.verify(*claim)
    for bit in range(8 * len(text)):
        changed = flipped(text, bit)
        assert not taken(partial(read_as, type(proof), changed), *claim), changed


def read_as(kind, text):
    return kind.from_object(read_json(text, "it"))


@pytest.mark.parametrize(
    "said",
    [
        {"index": 0, "size": 1},
        {"index": 0, "size": 1, "path": [], "root": ""},
        {"index": 1, "size": 1, "path": []},
        {"index": -1, "size": 1, "path": []},
        {"index": 0, "size": 0, "path": []},
        {"index": True, "size": 2, "path": []},
        {"index": 0, "size": 1.0, "path": []},
        {"index": "0", "size": "1", "path": []},
        {"index": 0, "size": 1 << 63, "path": []},
        {"index": 0, "size": 4, "path": [""]},
        {"index": 0, "size": 4, "path": ["00"]},
        {"index": 0, "size": 4, "path": {}},
        {"index": 0, "size": 4, "path": ["00" * 32] * 5},
        [],
    ],
)
def test_proofs_of_another_form_are_refused(said):
    with pytest.raises(EvidenceError):
        Inclusion.from_object(said)
