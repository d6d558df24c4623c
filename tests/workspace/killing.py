"""Kill a process at its system calls, and open what it leaves. Run as a program: it forks, which needs a process
without threads.

    python -m tests.workspace.killing FOLDER EVERY ACT…

EVERY is 1 for every call that changes files, 3 for each third. The folder is one that is not there yet. The kernel does
the killing, told by strace: nothing in Python is patched.
"""

import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import torch

from maxrr.workspace import Workspace
from tests.workspace.outside import ACTS, KEY, created, facts, working

CALLS = ("openat", "write", "pwrite64", "fsync", "ftruncate", "rename", "unlink", "mkdir", "rmdir", "flock", "close")


def work(folder, act):
    """Do it, and the state that it leads to."""
    with Workspace.open(folder, signing_key=KEY) as workspace:
        act(workspace)
        return facts(workspace)


def killed_at(call, number, do):
    """Do something in another process, which is killed where it makes this call for the n-th time; whether it was."""
    waiting, go = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.read(waiting, 1)
            do()
            os._exit(0)
        finally:
            os._exit(1)
    tracer = subprocess.Popen(
        ["strace", "-p", str(child), "-o", os.devnull, "-e", f"inject={call}:signal=KILL:when={number}"],
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert "attached" in tracer.stderr.readline()
    os.write(go, b"!")
    _, status = os.waitpid(child, 0)
    os.close(waiting)
    os.close(go)
    tracer.communicate()
    ended = os.waitstatus_to_exitcode(status)
    assert ended in (0, -signal.SIGKILL), f"the child failed by itself ({ended})"
    return ended != 0


def killed(place, every, act):
    """How often the process was killed, how often the request counted by then, and what is wrong."""
    old = working(place / "start", KEY).facts
    new = work(shutil.copytree(place / "start", place / "new"), act)
    count, counted, wrong = 0, 0, []
    for call in CALLS:
        for number in itertools.count(1, every):
            folder = shutil.copytree(place / "start", place / f"killed at {call} {number}")
            if not killed_at(call, number, lambda folder=folder: work(folder, act)):
                break
            seen = working(folder, KEY)
            count, counted = count + 1, counted + (seen.facts == new)
            if seen.facts not in (old, new):
                wrong.append(f"at {call} {number}: {seen.told or 'neither state'}")
            shutil.rmtree(folder)
    return {"killed": count, "counted": counted, "wrong": wrong}


def main(place, every, names):
    torch.set_num_threads(1)
    for name in names:
        (place / name).mkdir(parents=True)
        created(place / name / "start", KEY)
        print(json.dumps({"act": name, **killed(place / name, every, ACTS[name])}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
