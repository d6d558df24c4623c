"""A real audit and a real replay, as jobs beside requests."""

from dataclasses import replace

import numpy as np

from maxrr.data import Dataset
from maxrr.service.jobs import Jobs
from tests.service.conftest import fitted, folder, house, settings
from tests.unlearning.problems import table

__all__ = ["fitted", "folder", "house", "settings"]


def test_an_approximate_answer_is_audited_and_an_exact_one_replayed(house):
    approximate, exact = house.submit(ids=house.ids("core")[:8]), house.submit(ids=house.ids("influential")[:1])
    house.call("POST", f"/v1/requests/{approximate['id']}/approve", json={"policy": "keep-extractor"})
    house.work()
    house.call("POST", f"/v1/requests/{exact['id']}/jobs", json={"kind": "replay"})
    unseen = table(60, seed=9)
    test = Dataset(unseen.inputs, unseen.labels, unseen.class_names, np.arange(60) + 5, unseen.subjects)
    told = replace(house.service.settings, sides=lambda workspace: (table(), test), shadows=32)
    jobs = Jobs(told, house.service.requests.database)
    while jobs.turn("one"):
        pass
    (audited,) = house.call("GET", f"/v1/requests/{approximate['id']}/jobs").json()
    (replayed,) = house.call("GET", f"/v1/requests/{exact['id']}/jobs").json()
    assert (audited["state"], replayed["state"]) == ("done", "done"), (audited, replayed)
    assert audited["progress"]
    assert audited["result"]
    assert replayed["result"] == "superseded"  # by the approximate answer, which stays in the extractor
