"""1,000 requests to two workers on PostgreSQL and 200 to one on SQLite, while processes are killed at random."""

import json
import subprocess
import sys


def test_every_request_ends_once_and_the_model_is_the_one_that_never_saw_the_records(tmp_path):
    runs = ["postgresql,2,1000,50", "sqlite,1,200,10"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.faults", str(tmp_path), *runs],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(each["requests"], each["killed"]) for each in found] == [(1000, 50), (200, 10)]
