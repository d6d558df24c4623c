"""Kill a process at every touch of the disk, and look at what is left. Run as a program: it forks, which needs a
process without threads.

    python -m tests.workspace.crashing FOLDER STRIDE SCENARIO…

STRIDE is 1 for every touch, 3 for each third.
"""

import itertools
import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import torch

from maxrr.core import HashCore
from maxrr.evidence import Log, SigningKey, check_log
from maxrr.nets import MLP
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import Commit, Workspace, WorkspaceError
from maxrr.workspace.names import origin_of
from tests.unlearning.problems import fresh
from tests.workspace.disk import forked
from tests.workspace.faults import Points, die
from tests.workspace.problems import (
    HASHED,
    IN_SHARDS,
    NEW,
    NEWCOMERS,
    belongs,
    cases,
    contents,
    copied,
    facts,
    found,
    given,
    history_in,
    kinds,
    named,
    needles,
    receipts_in,
    together,
    token_of,
)

HEX = "0123456789abcdef"
IN = " in shards"
RECORDS = cases()["hash, words"][0]
MODEL = fresh(HASHED, RECORDS, epochs=2)
SHARDED = fresh(replace(IN_SHARDS, shards=2), RECORDS, epochs=2)
ADDED = named(NEWCOMERS)
KEY = SigningKey.generate()
UNSIGNED = " unsigned"
OTHER = fresh(HashCore(0.3, key="other"), RECORDS, MLP(5, 3, hidden=(6,)), epochs=2)


def acts(core, influential, free):
    """What is done to an open workspace, by name, and the ids of records that are gone afterwards."""
    return {
        "untouched": (lambda w: w.model.unlearn(free[:2]), free[:2]),
        "refit": (lambda w: w.model.unlearn(influential[:2]), influential[:2]),
        "retrain": (lambda w: given(w, RECORDS).model.unlearn(core[:2], core_policy="retrain"), core[:2]),
        "keep": (lambda w: w.model.unlearn(core[:2], core_policy="keep-extractor"), core[:2]),
        "replace": (lambda w: w.model.replace(str(free[0]), NEW), free[:1]),
        "add": (lambda w: w.model.add(ADDED, source={"name": "later"}), []),
        "each free": (lambda w: together(w, [free[:1], free[1:3]]), free[:3]),
        "each": (lambda w: together(w, [free[:1], influential[:1]]), [free[0], influential[0]]),
        "fit again": (lambda w: w.model.fit(RECORDS.without(free[:1]), OTHER), free[:1]),
        "finish": (lambda w: None, free[:2]),  # opening does it
    }  # fmt: skip


class Scenario:
    """One act on one workspace, as it was before, as it is afterwards, and as it goes on from both."""

    def __init__(self, name, place):
        self.place, self.template = place, place / "template"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        self.key, name = None if name.endswith(UNSIGNED) else KEY, name.removesuffix(UNSIGNED)
        model, name = SHARDED if name.endswith(IN) else MODEL, name.removesuffix(IN)
        with Workspace.create(self.template, model, RECORDS, signing_key=self.key) as workspace:
            model = workspace.model
            groups = kinds(model)
            self.act, gone = acts(*groups)[name]
            self.needles = {
                f"{what} of {id_}": needle
                for id_ in gone for what, needle in needles(model, RECORDS, id_).items()
                if name != "replace" or not what.startswith("id ")  # which the new record has, too
            }  # fmt: skip
        self.next = groups[2][5:6]
        if name == "finish":
            self.leave_unfinished(groups[2][:2])
        assert found(self.needles, self.template) or name == "add"
        self.old, self.old_next = self.followed("old", lambda workspace: None)
        self.new, self.new_next = self.followed("new", self.act)
        assert (self.old == self.new) == (name == "finish")

    def followed(self, name, act):
        """What an act leads to, and then the next request."""
        with Workspace.open(copied(self.template, self.place / name), signing_key=self.key) as workspace:
            act(workspace)
            first = facts(workspace, RECORDS)
            workspace.model.unlearn(self.next, core_policy="keep-extractor")
            return first, hashes(workspace)

    def leave_unfinished(self, gone):
        """A request that was committed, with nothing of it purged, and rubbish of others who were killed."""
        run_killed(
            self.template,
            lambda workspace: workspace.model.unlearn(gone, core_policy="keep-extractor"),
            1,
            self.key,
            only={"overwrite"},
        )
        token = token_of(self.template)
        (self.template / f"ranking-{token}-0").mkdir()
        rubbish = (
            f".maxrr-{HEX}.tmp",
            f"heads-{token}-{HEX}.safetensors",
            f"rows-{token}-9.bin",
            f"ranking-{token}-0/votes-1.npz",
        )
        for name in rubbish:
            (self.template / name).write_bytes(b"left behind")
        for path in (self.template / f"rows-{token}-1.bin", history_in(self.template)):
            with open(path, "ab") as file:
                file.write(b"half")

    def run(self, stride):
        """Kill it everywhere; how often it was, and how often the act had counted by then."""
        killed = counted = 0
        for point in itertools.count(1, stride):
            folder = copied(self.template, self.place / "workspace")
            if not run_killed(folder, self.act, point, self.key):
                break
            killed += 1
            counted += self.check(folder, point)
        return {"killed": killed, "counted": counted}

    def check(self, folder, point):
        """Returns whether the act counted."""
        assert self.key is None or logged(folder) <= Commit.last(folder).requests, f"logged too soon at point {point}"
        with Workspace.open(folder, signing_key=self.key) as workspace:
            assert self.key is None or logged(folder) == workspace.status().requests, f"not logged at point {point}"
            seen = facts(workspace, RECORDS)
            assert seen in (self.old, self.new), f"neither the old nor the new state at point {point}"
            counts = seen == self.new
            assert not counts or not found(self.needles, folder), f"not purged at point {point}"
            workspace.model.unlearn(self.next, core_policy="keep-extractor")
            assert hashes(workspace) == (self.new_next if counts else self.old_next), f"goes on at point {point}"
        assert set(contents(folder)) == belongs(folder), f"strays at point {point}"
        return counts


def hashes(workspace):
    """In short, what is in a workspace."""
    return workspace.model.model_hash_, workspace.model.content_hash_, workspace.status().requests


class Creation:
    """The first fit, in a folder that is not there yet."""

    def __init__(self, place):
        self.place = place
        place.mkdir(exist_ok=True)

    def run(self, stride):
        killed = counted = 0
        for point in itertools.count(1, stride):
            folder = self.place / "workspace"
            shutil.rmtree(folder, ignore_errors=True)
            if not forked(
                lambda folder=folder: Workspace.create(folder, MODEL, RECORDS, signing_key=KEY).close(),
                Points(point, die).patched(),
            ):
                break
            killed += 1
            counted += self.check(folder, point)
        return {"killed": killed, "counted": counted}

    def check(self, folder, point):
        try:
            opened, there = Workspace.open(folder, signing_key=KEY), True
        except WorkspaceError:
            assert Commit.last(folder) is None, f"a workspace that cannot be opened at point {point}"
            opened, there = Workspace.create(folder, OTHER, RECORDS, signing_key=KEY), False
        with opened as workspace:
            assert workspace.status().records == len(RECORDS)
            assert logged(folder) == 0
        assert set(contents(folder)) == belongs(folder), f"strays at point {point}"
        return there


def logged(folder):
    """How many receipts are in the log: each once, in their order. All of its hashes are computed again."""
    if not (folder / "log" / "checkpoint").exists():
        return 0
    checkpoint = check_log(folder / "log", origin_of(token_of(folder)), [KEY.public])
    entries = [HandedReceipt.from_bytes(each).sha256 for each in receipts_in(folder)[: checkpoint.size]]
    assert [entry.hex() for entry in Log(folder / "log", checkpoint).entries()] == entries
    return checkpoint.size


def run_killed(folder, act, at, key, only=None):
    """Whether the process was killed while it did this."""

    def work():
        with Workspace.open(folder, signing_key=key) as workspace:
            act(workspace)

    return forked(work, Points(at, die, only).patched())


def main(place, stride, names):
    torch.set_num_threads(1)
    for name in names:
        scenario = Creation(Path(place)) if name == "create" else Scenario(name, Path(place))
        print(json.dumps({"scenario": name, **scenario.run(stride)}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
