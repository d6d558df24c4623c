"""What a model of memory-mapped embeddings takes: seconds and memory for a fit, a request of each kind, and a scoring.

The embeddings are made up: one centre per class, noise, and some labels that are wrong, as embeddings of a pretrained
network have them. Anonymous memory is what the process has for itself; the rest is the file, which the system drops
from memory when it needs the room. Beside it stands a fit of scikit-learn's LinearSVC on as many records as `--peer`.
"""

import argparse
import json
import os
import platform
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import sklearn
from sklearn.svm import LinearSVC

from maxrr import MaxRR
from maxrr.data import Dataset

BLOCK = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float32")
    parser.add_argument("--wrong", type=float, default=0.0, help="Share of labels that are wrong.")
    parser.add_argument("--peer", type=int, default=0, help="On how many records to fit LinearSVC; 0 for none.")
    parser.add_argument("--folder", type=Path, default=None, help="Where the file of embeddings is made.")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "embeddings.npy"
        labels = make(path, options)
        found = measure(path, labels, options)
    asked = {name: getattr(options, name) for name in ("records", "width", "classes", "dtype", "wrong", "peer")}
    found = {**circumstances(), **asked, **found}
    print(json.dumps(found, indent=1))
    if options.out:
        options.out.write_text(json.dumps(found, indent=1) + "\n")


def circumstances() -> dict:
    """When, where and with what it was measured."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "numpy": np.__version__, "scikit-learn": sklearn.__version__,
    }  # fmt: skip


def make(path: Path, options: argparse.Namespace) -> np.ndarray:
    """Write the embeddings block by block; the labels."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(options.classes, options.width))
    labels = rng.integers(options.classes, size=options.records)
    inputs = np.lib.format.open_memmap(path, "w+", options.dtype, (options.records, options.width))
    for first in range(0, options.records, BLOCK):
        of = labels[first : first + BLOCK]
        noise = rng.normal(size=(len(of), options.width))
        inputs[first : first + BLOCK] = (0.2 * centres[of] + noise) / np.sqrt(options.width) * 4
    inputs.flush()
    wrong = rng.random(options.records) < options.wrong
    labels[wrong] = rng.integers(options.classes, size=int(wrong.sum()))
    return labels


def measure(path: Path, labels: np.ndarray, options: argparse.Namespace) -> dict:
    inputs = np.load(path, mmap_mode="r")
    names = tuple(map(str, range(options.classes)))
    found = {"bytes_of_the_file": path.stat().st_size}
    with watched() as fit:
        records = Dataset(inputs, labels, names, np.arange(len(labels)))
        model = MaxRR.on_features().fit(records)
    found["fit"] = fit
    influential = model.ids_of("influential")
    free = np.setdiff1d(records.ids, influential)
    found["influential"] = len(influential)
    for kind, ids in (("forget_one_free", free[:1]), ("forget_one_influential", influential[:1])):
        if len(ids):
            with watched() as cost:
                guarantee = model.unlearn(ids).guarantee
            found[kind] = cost | {"guarantee": guarantee}
    with watched() as cost:
        found["accuracy_on_first"] = model.score(np.asarray(inputs[2:10_002]), labels[2:10_002])
    found["score_10000"] = cost
    if options.peer:
        X, y = np.asarray(inputs[: options.peer], dtype=np.float64), labels[: options.peer]
        with watched() as cost:
            LinearSVC(loss="hinge", tol=1e-4, max_iter=20_000).fit(X, y)
        found["peer_linearsvc"] = cost
        with watched() as cost:
            MaxRR.on_features().fit(X, y)
        found["same_here"] = cost
    return found


@contextmanager
def watched():
    """Seconds, and the most memory in bytes that the process had for itself, and with files, meanwhile."""
    cost, done = {}, threading.Event()
    most = {"RssAnon": 0, "VmRSS": 0}

    def watch() -> None:
        while not done.is_set():
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in most:
                    most[name] = max(most[name], 1024 * int(value.split()[0]))
            done.wait(0.05)

    watcher = threading.Thread(target=watch)
    watcher.start()
    started = time.perf_counter()
    try:
        yield cost
    finally:
        cost["seconds"] = round(time.perf_counter() - started, 4)
        done.set()
        watcher.join()
        cost.update(anonymous_bytes=most["RssAnon"], resident_bytes=most["VmRSS"])


if __name__ == "__main__":
    main()
