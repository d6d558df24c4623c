"""Killed at any touch of the disk, or without power, the log is the old one or the new one, and goes on."""

import os
import sys
from contextlib import suppress
from unittest import mock

import pytest

from maxrr.evidence import Log, check_log, compare_logs
from maxrr.evidence.log import LogRelation, LogWriter
from tests.cases import stride
from tests.evidence.logs import KEY, ORIGIN, log_of, numbers
from tests.workspace.faults import Points

STEPS = [(0, 1), (1, 2), (6, 30)]


@pytest.fixture(autouse=True)
def unflushed(monkeypatch):
    """A flush is a point like others, and need not take its time."""
    monkeypatch.setattr("os.fsync", lambda _: None)


class Killed(BaseException):
    pass


def killed(_path):
    raise Killed


@pytest.mark.parametrize("lasting", [True, False], ids=["killed", "interrupted"])
@pytest.mark.parametrize(("before", "after"), STEPS)
def test_the_old_log_or_the_new_one(tmp_path, before, after, lasting):
    def append(folder, at):
        """The log of before, who was to make it longer, and how many points were reached."""
        writer = log_of(folder, *([before - 1] if before > 1 else []), before)
        old, points = writer.checkpoint, Points(at, killed, lasting=lasting)
        with points.patched(), suppress(Killed):
            writer.append(numbers(before, after))
        return old, writer, points.count

    *_, count = append(tmp_path / "whole", 0)
    outcomes = []
    for at in reversed(range(count, 0, -stride(3))):  # the last among them
        folder = tmp_path / f"{at}"
        old, writer, _ = append(folder, at)
        now = check_log(folder, ORIGIN, [KEY.public])
        outcomes.append(now.size)
        assert now.size in (before, after)
        assert list(Log(folder, old).entries()) == numbers(0, before)
        again = writer if writer.checkpoint == now and not lasting else LogWriter.open(folder, ORIGIN, KEY)
        assert again.checkpoint == now
        for size in (now.size + 1, after + 3):  # with other entries than those that were interrupted
            again.append([b"other %026d" % i for i in range(again.checkpoint.size, size)])
            assert check_log(folder, ORIGIN, [KEY.public]) == again.checkpoint
        log = Log(folder, again.checkpoint)
        assert compare_logs(old, log) is compare_logs(now, log) is LogRelation.extends
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {before, after}


def test_a_log_is_created_whole_or_can_be_created_again(tmp_path):
    at = 0
    while True:
        at += 1
        folder = tmp_path / f"{at}"
        points = Points(at, killed, lasting=True)
        with points.patched(), suppress(Killed):
            LogWriter.create(folder, ORIGIN, KEY)
        if points.count < at:
            break
        if not (folder / "checkpoint").exists():
            LogWriter.create(folder, ORIGIN, KEY)
        assert check_log(folder, ORIGIN, [KEY.public]).size == 0
    assert at > 3


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc what is flushed")
@pytest.mark.parametrize("reopened", [False, True])
@pytest.mark.parametrize(("before", "after"), STEPS)
def test_all_is_on_the_disk_before_the_checkpoint_speaks_of_it(tmp_path, before, after, reopened):
    """A name is on the disk once its folder was flushed after it; bytes are, once flushed before they took a name."""
    folder = tmp_path / "log"
    writer = log_of(folder, before) if before else LogWriter.create(folder, ORIGIN, KEY)
    if reopened:
        writer = LogWriter.open(folder, ORIGIN, KEY)
    flushed, pending, seen = set(), set(), []
    fsync, replace, mkdir, unlink = os.fsync, os.replace, os.mkdir, os.unlink

    def flush(descriptor):
        fsync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        flushed.add(path)
        pending.difference_update({name for name in pending if os.path.dirname(name) == path})

    def take_name(source, target):
        assert os.fspath(source) in flushed
        if os.path.basename(target) == "checkpoint":
            seen.append(set(pending))
        replace(source, target)
        pending.add(os.fspath(target))

    def make(path, *args):
        mkdir(path, *args)
        pending.add(os.fspath(path))

    def remove(path, *args, **options):
        assert len(seen) == 1
        assert str(folder / "checkpoint") not in pending
        unlink(path, *args, **options)

    with (
        mock.patch.object(os, "fsync", flush), mock.patch.object(os, "replace", take_name),
        mock.patch.object(os, "mkdir", make), mock.patch.object(os, "unlink", remove),
    ):  # fmt: skip
        writer.append(numbers(before, after))
    assert seen == [set()]
    assert pending == set()
