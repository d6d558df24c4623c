"""A fit of many heads that is interrupted goes on, and nothing that is read from a folder is believed."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from maxrr.svm import LinearSVM, heads
from maxrr.svm.checkpoint import Checkpoint
from tests.cases import some, thinned

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")

CLASSES = 12


class StoppedError(Exception):
    pass


def data(seed=0, n=400, d=6):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % CLASSES
    return 2.0 * rng.normal(size=(CLASSES, d))[y] + rng.normal(size=(n, d)), y


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    monkeypatch.setattr(heads, "groups", lambda _, classes: [classes[at : at + 3] for at in range(0, len(classes), 3)])


def interrupt(X, y, folder, after):
    def stop(_, done, __):
        if done >= after:
            raise StoppedError

    with pytest.raises(StoppedError):
        LinearSVM().fit(X, y, checkpoint=folder, progress=stop)


def assert_same(model, X, y):
    other = LinearSVM().fit(X, y)
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert model.intercept_.tobytes() == other.intercept_.tobytes()
    assert [rows.tolist() for rows in model.influential_] == [rows.tolist() for rows in other.influential_]
    assert all(certificate.decided for certificate in model.certificate_)


def test_a_fit_goes_on_where_it_was(tmp_path):
    X, y = data()
    interrupt(X, y, tmp_path / "new" / "folder", after=6)
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 6
    said = []
    model = LinearSVM().fit(X, y, checkpoint=tmp_path / "new" / "folder", progress=lambda *what: said.append(what))
    assert model.work_.cold_solves == CLASSES - 6
    assert said == [("heads", done, CLASSES) for done in (3, 6, 9, 12)]
    assert_same(model, X, y)


def test_nothing_is_left_in_the_folder(tmp_path):
    X, y = data()
    LinearSVM().fit(X, y, checkpoint=tmp_path)
    assert not list(tmp_path.iterdir())


def test_heads_of_other_samples_do_no_harm(tmp_path):
    X, y = data()
    interrupt(X, y, tmp_path, after=12)
    other = X.copy()
    other[:, 2] *= -1.5
    assert_same(LinearSVM().fit(other, y, checkpoint=tmp_path), other, y)
    interrupt(X, y, tmp_path, after=12)
    wider, labels = data(1, n=300, d=9)
    assert_same(LinearSVM().fit(wider, labels, checkpoint=tmp_path), wider, labels)


def forge(file, **changes):
    with np.load(file) as content:
        arrays = {name: content[name] for name in content.files}
    arrays.update({name: change(arrays[name]) for name, change in changes.items()})
    with file.open("wb") as written:
        np.savez(written, **arrays)


FORGERIES = {
    "other weights": {"w": lambda w: w * 1.01},
    "no weights": {"w": np.zeros_like},
    "not a number": {"w": lambda w: w * np.nan},
    "wide": {"w": lambda w: np.append(w, 1.0)},
    "another bias": {"b": lambda b: b + 3.0},
    "nobody inside": {"inside": lambda inside: inside[:0]},
    "everybody inside": {"inside": lambda _: np.arange(400)},
    "one inside too many": {"inside": lambda inside: np.union1d(inside, [399])},
    "rows that are not there": {"inside": lambda inside: inside + 10**6},
    "negative rows": {"on_margin": lambda rows: rows - 500},
    "twice": {"inside": lambda inside: np.repeat(inside, 2)},
    "other multipliers": {"multipliers": lambda multipliers: multipliers * 0.5},
    "too few multipliers": {"multipliers": lambda multipliers: multipliers[:-1]},
    "huge multipliers": {"multipliers": lambda multipliers: multipliers + 1e300},
}


@pytest.mark.parametrize("name", thinned(3, FORGERIES))
def test_forged_heads_do_no_harm(tmp_path, name):
    X, y = data()
    interrupt(X, y, tmp_path, after=12)
    for file in tmp_path.iterdir():
        forge(file, **FORGERIES[name])
    assert_same(LinearSVM().fit(X, y, checkpoint=tmp_path), X, y)


@pytest.mark.parametrize("content", some(2, [b"PK", bytes(1000), b"", b"\x93NUMPY"]))
def test_damaged_files_do_no_harm(tmp_path, content):
    X, y = data()
    interrupt(X, y, tmp_path, after=12)
    for number, file in enumerate(tmp_path.iterdir()):
        file.write_bytes(content if number % 2 else file.read_bytes()[: 100 + 40 * number])
    assert_same(LinearSVM().fit(X, y, checkpoint=tmp_path), X, y)


def test_any_bit_may_be_wrong(tmp_path):
    """Whatever a library says about a damaged file, the head is solved anew."""
    X, y = data(n=60, d=2)
    interrupt(X, y, tmp_path, after=3)
    file = next(tmp_path.iterdir())
    content, rng = file.read_bytes(), np.random.default_rng(0)
    places = {*rng.integers(8 * len(content), size=60).tolist(), *range(8 * len(content) - 3000, 8 * len(content), 7)}
    store = Checkpoint(tmp_path)
    for place in places:
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << (place % 8)
        file.write_bytes(damaged)
        store.load(int(file.name.split(".")[0]), 2, np.ones(60, dtype=bool))
    assert_same(LinearSVM().fit(X, y, checkpoint=tmp_path), X, y)


def test_what_a_killed_write_left_is_removed(tmp_path):
    X, y = data()
    (tmp_path / ".maxrr-0123456789abcdef.tmp").write_bytes(b"half a head")
    (tmp_path / "mine.txt").write_text("not ours")
    LinearSVM().fit(X, y, checkpoint=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["mine.txt"]


KILLED = """
import sys, numpy as np, tests.svm.test_checkpoint as here
from maxrr.svm import LinearSVM, heads
heads.groups = lambda _, classes: [[one] for one in classes]
X, y = here.data()
LinearSVM().fit(X, y, checkpoint=sys.argv[1], progress=lambda _, done, __: print(done, flush=True))
"""


@pytest.mark.long
def test_a_fit_that_is_killed_loses_the_group_in_progress_at_most(tmp_path):
    X, y = data()
    with subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        done = next(int(line) for line in process.stdout if int(line) >= 5)
        time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    model = LinearSVM().fit(X, y, checkpoint=tmp_path)
    assert model.work_.cold_solves <= CLASSES - done
    assert_same(model, X, y)
