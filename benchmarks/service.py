"""How many requests a second a service answers, and how long predictions take meanwhile.

    python benchmarks/service.py --out benchmarks/service.json

Records are 60,000 embeddings of 64 numbers, signed and logged, behind `maxrr serve` on loopback. A request is answered
when its end is durable in the database: from the first submission to the last end. Predictions, one record each, are
timed alone, and while requests move heads and the server reads the model anew. Where the seconds go is said by the
processor time of the server, the worker and those who call.
"""

import argparse
import http.client
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from circumstances import circumstances
from maxrr.evidence import make_key
from maxrr.unlearning import MaxRR
from maxrr.workspace import Workspace
from requests import fitted, flush_seconds, records_of  # type: ignore[attr-defined]

SIZE, CALLERS, PORT = 60_000, 8, 8765
REQUESTS, PREDICTIONS, REFITS = 3_000, 1_000, 40
TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--database", help="a URL; by default a file of SQLite")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(Path(folder), asked.size, asked.requests, asked.database)
    found = {"command": "python benchmarks/service.py", "circumstances": circumstances(), **found}
    print(json.dumps(found, indent=1))
    if asked.out:
        asked.out.write_text(json.dumps(found, indent=1) + "\n")


def measured(folder: Path, size: int, requests: int, database: str | None) -> dict[str, Any]:
    """All measurements of one service."""
    make_key(folder / "key.pem")
    environment = {
        **os.environ, "MAXRR_SIGNING_KEY": (folder / "key.pem").read_text(), "XDG_STATE_HOME": str(folder / "state"),
        "OMP_NUM_THREADS": "1", **({"MAXRR_DATABASE": database} if database else {}),
    }  # fmt: skip
    records, (_, free) = records_of(size), fitted(size)
    workspace = folder / "ws"
    Workspace.create(workspace, MaxRR.on_features(), records).close()
    with Workspace.open(workspace) as opened:
        influential = opened.model.ids_of("influential").tolist()
    tokens = {role: token(workspace, role, environment) for role in ("requester", "operator", "predictor")}
    with serving(workspace, environment) as server:
        wait(lambda: call(tokens["operator"], "GET", "/v1/status", None)[1]["workers"])
        some = [{"records": [each.tolist()]} for each in records.inputs[:PREDICTIONS]]
        alone = timed_predictions(tokens["predictor"], some, lambda: False)
        before, begun = cpu_seconds(server.pid), time.perf_counter()
        latency = submitted(tokens["requester"], [[id_] for id_ in free[:requests]])
        accepted = time.perf_counter() - begun
        wait(lambda: ended(tokens["operator"]) >= requests)
        took, after = time.perf_counter() - begun, cpu_seconds(server.pid)
        refits = threading.Thread(target=refit, args=[tokens["requester"], tokens["operator"], influential[:REFITS]])
        refits.start()
        meanwhile = timed_predictions(tokens["predictor"], some, refits.is_alive)
        refits.join()
    return {
        "records": size, "flush_seconds": flush_seconds(folder), "requests": requests,
        "a_second": round(requests / took, 1), "accepted_a_second": round(requests / accepted, 1),
        "submission": quantiles(latency), "predictions_alone": quantiles(alone), "predictions": quantiles(meanwhile),
        "processor_ms_a_request": {name: round(1e3 * (after[name] - before[name]) / requests, 2) for name in after},
    }  # fmt: skip


def submitted(token: str, asked: Sequence[list[int]]) -> list[float]:
    """Submit requests from several callers, and return how long each took."""
    left, took = iter(list(asked)), list[float]()
    taking = threading.Lock()

    def submit() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", PORT)
        while True:
            with taking:
                ids = next(left, None)
            if ids is None:
                return
            begun = time.perf_counter()
            status, _ = call(token, "POST", "/v1/requests", {"ids": ids}, connection)
            assert status == 201, status
            took.append(time.perf_counter() - begun)

    callers = [threading.Thread(target=submit) for _ in range(CALLERS)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    return took


def refit(requester: str, operator: str, ids: Sequence[int]) -> None:
    """Forget influential records one after the other, each moving heads."""
    before = ended(operator)
    for number, id_ in enumerate(ids, start=1):
        call(requester, "POST", "/v1/requests", {"ids": [id_]})
        wait(lambda number=number: ended(operator) >= before + number)  # type: ignore[misc]


def timed_predictions(token: str, bodies: Sequence[Any], go_on: Callable[[], bool]) -> list[float]:
    """Predict with these, again for as long as is said, a hundred times a second, and return how long each took."""
    connection, took = http.client.HTTPConnection("127.0.0.1", PORT), list[float]()
    while True:
        for body in bodies:
            begun = time.perf_counter()
            status, _ = call(token, "POST", "/v1/predictions", body, connection)
            assert status == 200, status
            took.append(time.perf_counter() - begun)
            time.sleep(max(0.0, 0.01 - took[-1]))
        if not go_on():
            return took


def ended(operator: str) -> int:
    return int(call(operator, "GET", "/v1/status", None)[1]["requests"].get("done", 0))


def call(
    token: str, method: str, path: str, body: Any, connection: http.client.HTTPConnection | None = None
) -> tuple[int, Any]:  # fmt: skip
    """Call the service, and return the status and the answer."""
    connection = connection or http.client.HTTPConnection("127.0.0.1", PORT)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, None if body is None else json.dumps(body), headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def token(workspace: Path, role: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-m", "maxrr", "token", "new", str(workspace), role, "--role", role]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


@contextmanager
def serving(workspace: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The service, once it is ready."""
    command = [sys.executable, "-m", "maxrr", "serve", str(workspace), "--port", str(PORT)]
    server = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL)
    try:
        wait(is_ready)
        yield server
    finally:
        server.terminate()
        server.wait()


def is_ready() -> bool:
    try:
        return call("", "GET", "/ready", None)[0] == 200
    except OSError:
        return False


def wait(true: Callable[[], Any], seconds: float = 300.0) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not come about"
        time.sleep(0.05)


def cpu_seconds(server: int) -> dict[str, float]:
    """The processor time of the server, its worker, and this process."""
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    others = {"server": server, **({"worker": int(children[0])} if children else {}), "callers": os.getpid()}
    found = {}
    for name, process in others.items():
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        found[name] = (int(fields[11]) + int(fields[12])) / TICK
    return found


def quantiles(took: Sequence[float]) -> dict[str, float]:
    """Milliseconds."""
    names = {"p50": 50, "p95": 95, "p99": 99, "most": 100}
    return {"count": len(took), **{name: round(1e3 * float(np.percentile(took, at)), 2) for name, at in names.items()}}


if __name__ == "__main__":
    main()
