"""Kill a process at touches of the disk, and open what it leaves. Run as a program: it forks, which needs a process
without threads.

    python -m tests.workspace.killing FOLDER STRIDE ACT…

STRIDE is 1 for every touch, 3 for each third. The folder is one that is not there yet.
"""

import itertools
import json
import shutil
import sys
from pathlib import Path

import torch

from maxrr.workspace import Workspace
from tests.workspace.disk import Disk, dies, forked
from tests.workspace.outside import ACTS, KEY, created, facts, working


def work(folder, act):
    """Do it, and the state that it leads to."""
    with Workspace.open(folder, signing_key=KEY) as workspace:
        act(workspace)
        return facts(workspace)


def killed(place, every, act):
    """How often the process was killed, how often the request counted by then, and what is wrong."""
    old = working(place / "start", KEY).facts
    new = work(shutil.copytree(place / "start", place / "new"), act)
    count, counted, wrong = 0, 0, []
    for at in itertools.count(1, every):
        folder = shutil.copytree(place / "start", place / f"killed at {at}")
        if not forked(lambda folder=folder: work(folder, act), Disk(folder, dies(at)).watched()):
            break
        seen = working(folder, KEY)
        count, counted = count + 1, counted + (seen.facts == new)
        if seen.facts not in (old, new):
            wrong.append(f"at touch {at}: {seen.told or 'neither state'}")
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
