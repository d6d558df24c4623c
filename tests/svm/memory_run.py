"""How much memory a fit takes: `python -m tests.svm.memory_run`, a process of its own, which prints it as JSON.

Features are made a block at a time, in memory or in a file. From the moment that they are there, the memory that the
process has for itself (RssAnon: not pages of files, which the system can drop) is read every millisecond. It works on
two cores at most, because each one has rows of its own: what is found does not depend on how many a machine has.
"""

import argparse
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np

from maxrr import LinearSVM
from maxrr.svm import validation

ROWS = 4096  # made at a time
CORES = 2


def own_bytes() -> int:
    """RssAnon of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024


class Watch:
    """The most that was seen while it was open."""

    def __enter__(self) -> "Watch":
        self.before = self.most = own_bytes()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.look)
        self.thread.start()
        return self

    def look(self) -> None:
        while not self.done.wait(0.001):
            self.most = max(self.most, own_bytes())

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()
        self.most = max(self.most, own_bytes())

    @property
    def grown(self) -> int:
        return self.most - self.before


def fill(X: Any, y: Any, seed: int = 0) -> None:
    """Each class around a centre of its own, apart from the others: few samples are near any margin."""
    rng = np.random.default_rng(seed)
    d = X.shape[1]
    centres = rng.normal(size=(int(y.max()) + 1, d)) / np.sqrt(d)
    for first in range(0, len(X), ROWS):
        labels = y[first : first + ROWS]
        X[first : first + ROWS] = 4.0 * centres[labels] + rng.normal(size=(len(labels), d)) / np.sqrt(d)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--columns", type=int, required=True)
    parser.add_argument("--classes", type=int, default=3)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--file", type=Path)
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument("--large", type=int, default=validation.LARGE)
    given = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    shape, y = (given.rows, given.columns), np.arange(given.rows) % given.classes
    X = np.lib.format.open_memmap(given.file, "w+", given.dtype, shape) if given.file else np.empty(shape, given.dtype)
    fill(X, y)
    LinearSVM().fit(X[:300].astype(np.float64), y[:300])  # what libraries keep for themselves is there from now on
    validation.LARGE = given.large
    with Watch() as fit:
        model = LinearSVM(copy_X=not given.in_place).fit(X, y)
    rows = model.support_[:2]
    with Watch() as forget:
        model.forget(rows)
    print(json.dumps({"features": X.nbytes, "fit": fit.grown, "forget": forget.grown}))


def measure(*given: object) -> dict[str, int]:
    """The same from a test: bytes of the features, and by how much the process grew in a fit and in a request."""
    command = [sys.executable, "-m", "tests.svm.memory_run", *map(str, given)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
