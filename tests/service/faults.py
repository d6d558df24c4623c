"""Kill workers and the server of a service at random while requests come in. Run as a program: it forks, which needs a
process without threads.

    python -m tests.service.faults FOLDER sqlite,1,200,10 postgresql,2,1000,50

Each run is named by its database, and how many workers, requests and kills there are.
"""

import json
import logging
import os
import random
import signal
import sys
import time
from pathlib import Path

import httpx2
import numpy as np
import torch
import uvicorn

from maxrr.evidence import SigningKey
from maxrr.service import app
from maxrr.service.api import Service
from maxrr.service.database import Database
from maxrr.service.settings import Settings
from maxrr.service.tokens import Tokens
from maxrr.service.worker import Worker
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace import Workspace, check_receipt_log
from tests.service.postgres import Postgres, free_port
from tests.unlearning.problems import fresh, table
from tests.workspace.problems import HASHED

KEY = SigningKey.generate()
ENDED = ("done", "refused", "failed", "cancelled")


def forked(work) -> int:
    """Do some work in another process, and return its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            logging.exception("a child failed")
            os._exit(1)
    return child


class House:
    """Workers and a server, in processes of their own, which are killed and started again."""

    def __init__(self, place: Path, url: str, workers: int, records) -> None:
        self.records = records
        self.settings = Settings(place / "ws", self.open, url, "retrain", gather=0.05, rate=10_000.0)
        database = Database(self.settings.url)
        token = Tokens(database).make("shop", "requester")
        database.close()
        self.port = free_port()
        self.client = httpx2.Client(
            base_url=f"http://127.0.0.1:{self.port}", headers={"Authorization": f"Bearer {token}"}, timeout=20.0
        )
        self.works = [self.serve, *[self.carry_out] * workers]
        self.running = [forked(work) for work in self.works]

    def open(self, read_only: bool) -> Workspace:
        key = None if read_only else KEY
        return Workspace.open(
            self.settings.workspace, records=lambda: self.records, signing_key=key, read_only=read_only
        )

    def serve(self) -> None:
        logging.disable(logging.INFO)
        uvicorn.run(app(self.settings), port=self.port, access_log=False, log_config=None)

    def carry_out(self) -> None:
        logging.disable(logging.INFO)
        Worker(self.settings, Service.of(self.settings).requests).run()

    def kill(self, number: int) -> None:
        """Kill one of them, and start it again."""
        os.kill(self.running[number], signal.SIGKILL)
        ended = os.waitstatus_to_exitcode(os.waitpid(self.running[number], 0)[1])
        assert ended == -signal.SIGKILL, f"it had ended by itself: {ended}"
        self.running[number] = forked(self.works[number])

    def ask(self, method: str, path: str, **options):
        """Call until there is an answer, as one who submits does."""
        until = time.monotonic() + 120.0
        while True:
            try:
                answer = self.client.request(method, path, **options)
                if answer.status_code < 500:
                    return answer
            except httpx2.TransportError:
                pass
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.02)

    def all(self):
        """All requests."""
        found, after = [], ""
        while after is not None:
            page = self.ask("GET", f"/v1/requests?limit=500{after and f'&after={after}'}").json()
            found, after = found + page["requests"], page["next"]
        return found

    def end(self) -> None:
        for each in self.running:
            os.kill(each, signal.SIGKILL)
            os.waitpid(each, 0)


def main(place: Path, kind: str, workers: int, requests: int, kills: int) -> None:
    torch.set_num_threads(1)
    logging.basicConfig(level=logging.ERROR)
    drawn, postgres = random.Random(0), None
    records = table(requests * 3 // 2 + 80)
    with Workspace.create(place / "ws", fresh(HASHED, records), records, signing_key=KEY) as workspace:
        core, others = (drawn.sample(ids, len(ids)) for ids in (
            workspace.model.ids_of("core").tolist(),
            workspace.model.ids_of("influential").tolist() + workspace.model.ids_of("free").tolist(),
        ))  # fmt: skip
    ids = core[: requests // 3] + others[: requests - requests // 3]
    drawn.shuffle(ids)
    assert len(ids) == requests
    url = ""
    if kind == "postgresql":
        postgres = Postgres(durable=True)
        url = postgres.url
    house, asked, killed = House(place, url, workers, records), dict[str, int](), 0
    try:
        for place_, id_ in enumerate(ids):
            body, key = {"ids": [id_]}, {"Idempotency-Key": f"key {id_}"}
            asked[house.ask("POST", "/v1/requests", json=body, headers=key).json()["id"]] = id_
            if (place_ + 1) * kills // requests > killed:
                time.sleep(drawn.uniform(0.0, 0.4))
                house.kill(drawn.randrange(len(house.works)))
                killed += 1
        until = time.monotonic() + 300.0
        while {each["state"] for each in house.all()} - set(ENDED):
            assert time.monotonic() < until, "some requests did not end"
            time.sleep(0.1)
        found = house.all()
        told = {each["id"]: house.ask("GET", f"/v1/requests/{each['id']}").json()["events"] for each in found}
        answers = {each["id"]: house.ask("GET", f"/v1/requests/{each['id']}/receipt").content for each in found}
    finally:
        house.end()
        if postgres is not None:
            postgres.remove()
    assert {each["id"] for each in found} == set(asked), "a request was lost, or is there twice"
    assert all((each["state"], each["outcome"]) == ("done", "done") for each in found)
    assert all([event["state"] in ENDED for event in events].count(True) == 1 for events in told.values())
    receipts = {id_: HandedReceipt.from_bytes(answer) for id_, answer in answers.items()}
    for each in receipts.values():
        each.verify([KEY.public])
    assert sorted(each.receipt.number for each in receipts.values()) == list(range(1, requests + 1))
    kinds = {"exact-retrain"} if requests < 100 else {"exact-retrain", "exact-untouched"}  # few may be one batch
    assert {each.receipt.guarantee for each in receipts.values()} >= kinds
    assert check_receipt_log(place / "ws", [KEY.public]).checkpoint.size == requests
    retained = records.without(np.array(ids))
    with Workspace.open(place / "ws", read_only=True) as workspace:
        assert workspace.status().requests == requests
        assert set(workspace.model.ids_of().tolist()) == set(retained.ids.tolist())
        same = workspace.model.model_hash_ == fresh(HASHED, retained).fit(retained).model_hash_
    assert same, "the model is not the one that never saw them"
    batches = len({(each.receipt.model_before, each.receipt.model_after) for each in receipts.values()})
    print(json.dumps({"requests": len(found), "killed": killed, "changes": batches}))


if __name__ == "__main__":
    os.environ["XDG_STATE_HOME"] = sys.argv[1] + "/state"
    for place, run in enumerate(sys.argv[2:]):
        database, *counts = run.split(",")
        folder = Path(sys.argv[1], str(place))
        folder.mkdir()
        main(folder, database, *map(int, counts))
