"""Requests in any order, mixed with closing and opening the folder, against the oracle after every step."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis.stateful import rule

from maxrr.nets import MLP
from maxrr.workspace import Workspace
from tests.cases import THOROUGH
from tests.unlearning.problems import EVERY_CORE, fresh, joined, table
from tests.unlearning.test_machine import InShards, Requests, pytestmark  # noqa: F401
from tests.workspace.problems import copied, given, with_replaced

TEMPLATES = {}


def template(core):
    """A folder with a workspace on the table, made once."""
    if core not in TEMPLATES:
        place = tempfile.TemporaryDirectory()
        Workspace.create(Path(place.name) / "workspace", fresh(EVERY_CORE[core], table()), table()).close()
        TEMPLATES[core] = place  # which ends with the process
    return Path(TEMPLATES[core].name) / "workspace"


class InAFolder:
    """A workspace that is asked like a model, and is given the source where that is needed."""

    def __init__(self, folder):
        self.folder, self.source = folder, table()
        self.network = MLP(5, 3, hidden=(12,))  # as it was given, for those who train it again
        self.workspace = Workspace.open(folder)

    def __getattr__(self, name):
        return getattr(self.workspace.model, name)

    def predict(self, X):
        return self.workspace.model.predict(X)

    def predict_proba(self, X):
        return self.workspace.model.predict_proba(X)

    def plan(self, ids=None, **request):
        return self.workspace.model.plan(ids, **request)

    def unlearn(self, ids=None, **request):
        return given(self.workspace, self.needed(request)).model.unlearn(ids, **request)

    def replace(self, id_, features, label, **request):
        receipt = given(self.workspace, self.needed(request)).model.replace(id_, features, label, **request)
        self.source = with_replaced(self.source, id_, features, label)
        return receipt

    def add(self, new):
        receipt = self.workspace.model.add(new)
        self.source = joined(self.source, new)
        return receipt

    def needed(self, request):
        return self.source if request["core_policy"] == "retrain" else None

    def reopen(self):
        self.workspace.close()
        self.workspace = Workspace.open(self.folder)


class Kept(Requests):
    """The machine of `tests.unlearning`, with a folder behind it."""

    def __init__(self):
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.model = InAFolder(copied(template(self.core), self.place / "workspace"))

    @rule()
    def close_and_open(self):
        before = [receipt.to_json() for receipt in self.model.workspace.receipts()]
        self.model.reopen()
        assert [receipt.to_json() for receipt in self.model.workspace.receipts()] == before
        assert len(before) == self.requests == self.model.workspace.status().requests

    @rule()
    def read_beside(self):
        """What somebody else finds in a copy."""
        with Workspace.open(copied(self.model.folder, self.place / "beside"), read_only=True) as other:
            assert other.model.model_hash_ == self.model.model_hash_
            assert other.status().records == len(self.books.records)
            assert np.array_equal(other.model.decision_function(table()), self.model.decision_function(table()))

    def teardown(self):
        self.model.workspace.close()
        shutil.rmtree(self.place)


class KeptRetraining(Kept):
    policy = "retrain"


class KeptAll(Kept):
    policy, core = "retrain", "full"


class KeptInShards(Kept, InShards):
    pass


few = settings(max_examples=12 if THOROUGH else 2, stateful_step_count=8)
TestHead, TestRetrain, TestFull, TestShards = (
    machine.TestCase for machine in (Kept, KeptRetraining, KeptAll, KeptInShards)
)
for case in (TestHead, TestRetrain, TestFull, TestShards):
    case.settings = few
del case
if not THOROUGH:  # a full core and a single extractor are among what the others do
    del TestHead, TestFull
