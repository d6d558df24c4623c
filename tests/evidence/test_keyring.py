"""Where the key lies, rotation that survives a kill at any touch of the disk, and the file of all public keys."""

import errno
import itertools
import os
import signal
import subprocess
import warnings
from contextlib import suppress
from functools import partial

import pytest

from maxrr.errors import EvidenceError, FileExists, NotSucceeded
from maxrr.evidence import Envelope, PublicKey, PublicKeys, SigningKey, make_key, rotate_key
from maxrr.evidence.envelopes import Statement, Subject
from maxrr.evidence.public_keys import KEY_SUCCESSION, default_place, find_key, find_public_keys
from tests.cases import every
from tests.evidence.logs import flipped
from tests.workspace.faults import Points, die

TIME = "2026-11-17T08:00:00+00:00"


@pytest.fixture(autouse=True)
def settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))


def pem_text(path):
    return path.read_text()


def test_a_key_is_found_where_it_was_named_then_in_the_environment_then_at_its_place(tmp_path, monkeypatch):
    assert find_key() is find_public_keys() is None
    at_place = make_key(default_place())
    assert find_key().public == at_place.public
    named, from_environment = make_key(tmp_path / "named.pem"), make_key(tmp_path / "other.pem")
    monkeypatch.setenv("MAXRR_SIGNING_KEY", pem_text(tmp_path / "other.pem"))
    assert find_key().public == from_environment.public
    assert find_public_keys() == PublicKeys((from_environment.public,))
    assert find_key(tmp_path / "named.pem").public == named.public
    with pytest.raises(FileNotFoundError):
        find_key(tmp_path / "nothing.pem")


def test_the_default_place(tmp_path, monkeypatch):
    assert default_place() == tmp_path / "settings" / "maxrr" / "key.pem"
    monkeypatch.setenv("HOME", str(tmp_path))
    for relative in ("", "settings"):  # the XDG specification has a relative path ignored
        monkeypatch.setenv("XDG_CONFIG_HOME", relative)
        assert default_place() == tmp_path / ".config" / "maxrr" / "key.pem"


def test_modes(tmp_path):
    make_key(default_place())
    assert default_place().parent.stat().st_mode & 0o777 == 0o700
    rotate_key(default_place())
    private = [path for path in default_place().parent.iterdir() if path.suffix == ".pem"]
    assert private == [default_place()]
    assert default_place().stat().st_mode & 0o777 == 0o600
    default_place().chmod(0o644)
    with pytest.raises(EvidenceError, match="chmod 600"):
        find_key()


def test_no_file_of_a_key_is_written_over(tmp_path):
    key = make_key(tmp_path / "key.pem")
    private = tmp_path / "key.pem"
    private.rename(tmp_path / "away")
    with pytest.raises(FileExists):
        make_key(private)
    (tmp_path / "away").rename(private)
    with pytest.raises(FileExists):
        make_key(private)
    with pytest.raises(EvidenceError, match="name for a public key"):
        make_key(tmp_path / "operator.pub")
    assert find_key(tmp_path / "key.pem").public == key.public
    assert find_public_keys(tmp_path / "key.pem") == PublicKeys((key.public,))
    make_key(tmp_path / "other.pem")
    (tmp_path / "other.pub").rename(tmp_path / "key.pub")
    for ask in (find_public_keys, rotate_key):
        with pytest.raises(EvidenceError, match="another public key"):
            ask(tmp_path / "key.pem")
    assert find_key(tmp_path / "key.pem").public == key.public


def test_keys_follow_each_other(tmp_path):
    path = tmp_path / "key.pem"
    first = make_key(path)
    kept = [find_public_keys(path)]
    for _ in range(3):
        new = rotate_key(path)
        assert find_key(path).public == new.public
        kept.append(PublicKeys.load(tmp_path / "key.pub"))
        assert kept[-1].keys == (new.public, *kept[-2].keys)
        assert len(kept[-1].successions) == len(kept) - 1
    assert kept[-1].keys[-1] == first.public
    assert find_public_keys(path) == kept[-1]
    for earlier, later in itertools.combinations_with_replacement(kept, 2):
        later.require_follows(earlier)
    for earlier, later in itertools.combinations(kept, 2):
        with pytest.raises(NotSucceeded):
            earlier.require_follows(later)
    with pytest.raises(EvidenceError, match="not signed for"):
        kept[-1].require_follows(PublicKeys((SigningKey.generate().public,)))
    with pytest.raises(EvidenceError, match="not signed for"):
        PublicKeys(kept[-1].keys).require_follows(kept[0])  # the same keys, and nobody's word for them


def test_what_was_signed_before_stays_valid(tmp_path):
    path = tmp_path / "key.pem"
    said = Statement((Subject("model", "0" * 64),), "https://example.com/said/v1", {})
    signed = [Envelope.sign(said, make_key(path))]
    signed += [Envelope.sign(said, rotate_key(path)) for _ in range(2)]
    keys = PublicKeys.load(tmp_path / "key.pub").keys
    assert [each.verify(keys) for each in signed] == [said] * 3
    assert [each.key_id for each in reversed(signed)] == [key.id for key in keys]


class Killed(BaseException):
    pass


def stopped(_path):
    raise Killed


def interrupted(work, at):
    """Whether Ctrl-C came at this touch of the disk: what is done about it may touch the disk."""
    with Points(at, stopped).patched() as points, suppress(Killed):
        work()
    return points.count >= at


def killed(work, at):
    """Whether another process was killed, with a signal that nobody can catch, at this touch of the disk."""
    child = os.fork()
    if child == 0:
        with suppress(BaseException), Points(at, die).patched():
            work()
            os._exit(0)
        os._exit(1)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ended in (0, -signal.SIGKILL)
    return ended != 0


def again(work):
    """What the same command gives once more, whatever it warns of."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return work()


def private_files(folder):
    """The files with private keys, each by its name, and nothing unfinished beside them."""
    assert all(path.stat().st_size for path in folder.iterdir())
    found = {path for path in folder.iterdir() if b"PRIVATE KEY" in path.read_bytes()}
    assert os.name == "nt" or all(path.stat().st_mode & 0o777 == 0o600 for path in found)
    assert not list(folder.glob(".*"))
    return {path.name for path in found}


STOPPED = pytest.mark.parametrize("by", [interrupted, killed])


@STOPPED
def test_a_rotation_that_is_stopped_anywhere_is_finished_by_the_next(tmp_path, by):
    finished = set()
    for at in itertools.count(1):
        path = tmp_path / f"{at}" / "key.pem"
        first = make_key(path)
        if not by(partial(rotate_key, path), at):
            break
        now, public = find_key(path), find_public_keys(path)
        public.require_follows(PublicKeys((first.public,)))
        assert now.public in public.keys[:2]
        if done := now.public != first.public:
            assert public.newest == now.public
        finished.add(done)
        begun = None if done or not (there := path.with_name("key.pem.next")).exists() else SigningKey.load(there)
        new = again(partial(rotate_key, path))
        assert begun is None or new.public == begun.public
        assert find_key(path).public == new.public
        keys = PublicKeys.load(path.with_suffix(".pub"))
        assert keys.keys == (new.public, *([now.public] if done else []), first.public)
        assert private_files(path.parent) == {"key.pem"}
        keys.require_follows(PublicKeys((first.public,)))
    assert at > 5
    assert finished == {False, True}
    assert private_files(path.parent) == {"key.pem"}


@STOPPED
def test_a_key_whose_making_is_stopped_anywhere_is_made_by_the_next(tmp_path, by):
    outcomes = set()
    for at in itertools.count(1):
        path = tmp_path / f"{at}" / "key.pem"
        if not by(partial(make_key, path), at):
            break
        begun = SigningKey.load(path) if path.exists() else None
        whole = path.with_suffix(".pub").exists()
        outcomes.add((begun is not None, whole))
        if not whole:
            made = again(partial(make_key, path))
            assert begun is None or made.public == begun.public
        else:
            with pytest.raises(EvidenceError, match="there already"):
                make_key(path)
        assert private_files(path.parent) == {"key.pem"}
        assert find_public_keys(path) == PublicKeys((find_key(path).public,))
    assert at > 6
    assert outcomes == {(False, False), (True, False), (True, True)}


def test_what_was_found_unfinished_is_told(tmp_path):
    path = tmp_path / "key.pem"
    first = make_key(path)
    path.with_suffix(".pub").unlink()
    with pytest.warns(UserWarning, match="no other key was made"):
        assert make_key(path).public == first.public
    coming = SigningKey.generate()
    coming.save(tmp_path / "key.pem.next")
    with pytest.warns(UserWarning, match="interrupted"):
        assert rotate_key(path).public == coming.public


def test_two_processes_cannot_both_make_a_key(tmp_path, monkeypatch):
    """Also where there are no hard links, and the other one comes at the last moment."""
    path, other = tmp_path / "key", SigningKey.generate()
    link = os.link

    def late(source, target):
        monkeypatch.setattr(os, "link", link)
        other.save(path)
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises((EvidenceError, OSError)):
        SigningKey.generate().save(path)
    assert SigningKey.load(path).public == other.public

    def unknown(source, target):
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", unknown)
    SigningKey.generate().save(tmp_path / "second")
    with pytest.raises(EvidenceError, match="there already"):
        SigningKey.generate().save(path)
    assert SigningKey.load(path).public == other.public
    assert private_files(tmp_path) == {"key", "second"}


def a_history():
    first, second, third = (SigningKey.generate() for _ in range(3))
    history = PublicKeys((first.public,)).succeeded_by(second.public, first, TIME)
    return (first, second, third), history.succeeded_by(third.public, second, TIME)


def test_the_file_holds_what_was_saved_and_others_read_its_newest_key(tmp_path):
    _, history = a_history()
    path = tmp_path / "operator.pub"
    history.save(path)
    assert PublicKeys.load(path) == history
    with suppress(FileNotFoundError):  # no OpenSSL here
        done = subprocess.run(["openssl", "pkey", "-pubin", "-in", path, "-outform", "DER"], capture_output=True)
        assert done.returncode == 0
        assert done.stdout[-32:] == history.newest.raw
    path.write_bytes(b"\n" + path.read_bytes().replace(b"\n", b"\r\n") + b" \n")
    assert PublicKeys.load(path) == history
    path.write_bytes(history.newest.pem)
    assert PublicKeys.load(path) == PublicKeys((history.newest,))
    assert PublicKey.from_pem(path.read_bytes()) == history.newest


def test_several_files_in_one(tmp_path):
    path, other = tmp_path / "operator.pub", SigningKey.generate().public
    _, history = a_history()
    path.write_bytes(history.to_bytes() + other.pem)
    assert PublicKeys.load(path).keys == (*history.keys, other)
    path.write_bytes(other.pem + history.to_bytes())
    with pytest.raises(EvidenceError, match="not signed for"):
        PublicKeys.load(path).require_follows(history)


def test_every_bit_of_a_file_of_keys_counts(tmp_path):
    _, history = a_history()
    path = tmp_path / "operator.pub"
    content = history.to_bytes()
    for bit in every(61, 8 * len(content)):
        path.write_bytes(flipped(content, bit))
        with pytest.raises(EvidenceError):
            PublicKeys.load(path)


def test_what_is_no_file_of_keys(tmp_path):
    (first, second, third), history = a_history()
    path = tmp_path / "operator.pub"
    private = tmp_path / "key.pem"
    first.save(private)

    def refused(content, match):
        path.write_bytes(content)
        with pytest.raises(EvidenceError, match=match):
            PublicKeys.load(path)

    pem, line = history.newest.pem, history.successions[0].to_bytes()
    refused(b"", "no public key")
    refused(b"\xff", "no file of public keys")
    refused(pem + pem, "one of them twice")
    refused(pem[:-20], "no Ed25519 public key")
    refused(pem + b"and more", "something in it")
    refused(pem + private.read_bytes(), "holds a private key")
    refused(pem + line, "not signed by a key that is trusted")  # the former key is not there
    refused(second.public.pem + line, "not that one of these keys succeeds another")  # nor the new one
    refused(pem + b"{}", "no field")

    def said(key, kind=KEY_SUCCESSION, subjects=(third.public.id,), **predicate):
        named = tuple(Subject(f"key{number or ''}", each) for number, each in enumerate(subjects))
        predicate = {"former": second.public.id, "time": TIME} | predicate
        return Envelope.sign(Statement(named, kind, predicate), key)

    PublicKeys(history.keys, (said(second),))
    for wrong in (
        said(first), said(second, kind="https://example.com/v1"), said(second, more=1),
        said(second, subjects=(third.public.id, first.public.id)), said(second, subjects=(second.public.id,)),
        said(second, time="now"), said(second, time=5), said(second, former=first.public.id),
        said(SigningKey.generate()),
    ):  # fmt: skip
        with pytest.raises(EvidenceError):
            PublicKeys(history.keys, (wrong,))
    with pytest.raises(EvidenceError, match="while it is the newest"):
        history.succeeded_by(SigningKey.generate().public, second, TIME)
    with pytest.raises(EvidenceError, match="twice"):
        history.succeeded_by(first.public, third, TIME)
