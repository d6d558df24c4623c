"""Many runs at once: the same influential samples as one fit after the other, in order; errors name the run."""

import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch

from maxrr import LinearSVM
from maxrr.errors import WorkerLostError
from maxrr.parallel.engine import InProcess
from maxrr.svm import influence, influential_in
from maxrr.svm.arrays import to_numpy
from tests.svm.problems import make


@pytest.fixture
def here(monkeypatch):
    """The runs are solved in this process: before another has started they are."""
    monkeypatch.setattr(influence, "staying", lambda module: nullcontext(InProcess()))


@pytest.fixture
def problem():
    return make("well_behaved", 0, n=300, d=5, classes=3)


def runs_of(problem, count):
    """The same samples in other features, of every kind that may come."""
    rng = np.random.default_rng(1)
    for number in range(count):
        X = (problem.X * rng.uniform(0.5, 2.0, problem.X.shape[1])).astype(np.float32 if number % 2 else np.float64)
        yield torch.tensor(X) if number % 3 == 2 else X


def assert_same(one, model, rows):
    """The heads of a run are those of a fit to these rows, to the byte."""
    assert np.array_equal(np.flatnonzero(one.mask), rows[model.support_])
    assert one.weights.tobytes() == model.coef_.tobytes()
    assert one.biases.tobytes() == model.intercept_.tobytes()
    assert len(one.certificates) == len(model.certificate_)
    for ours, theirs in zip(one.certificates, model.certificate_, strict=True):
        assert ours.decided
        assert theirs.decided
        assert ours.relative_gap == pytest.approx(theirs.relative_gap, abs=1e-15)


@pytest.mark.parametrize("on_a_device", [False, True])
def test_the_same_samples_as_one_fit_after_the_other(problem, on_a_device, monkeypatch, request):
    """The runs that start on a device are solved in this process, the others in processes of their own."""
    if on_a_device:
        monkeypatch.setattr(influence, "staying", lambda module: nullcontext(InProcess()))
        request.getfixturevalue("tensors_on_a_device")
    seen = []
    found = influential_in(runs_of(problem, 7), problem.y, C=0.5, progress=lambda *now, **_: seen.append(now))
    for X, one in zip(runs_of(problem, 7), found, strict=True):
        assert_same(one, LinearSVM(0.5).fit(X, problem.y), np.arange(len(problem.y)))
    assert [done for _, done, _ in seen] == list(range(1, 8))
    assert seen[-1] == ("influential samples", 7, 7)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("on_a_device", [False, True])
def test_each_run_may_have_samples_of_its_own(problem, on_a_device, request):
    if on_a_device:
        request.getfixturevalue("tensors_on_a_device")
    some, others = (np.random.default_rng(seed).random(len(problem.y)) < 0.7 for seed in (0, 1))
    others &= problem.y != problem.y[0]  # one class less, so a single head
    masks = [some, some, None, others, some]
    runs = [torch.tensor(np.array(to_numpy(X), dtype=np.float64)) for X in runs_of(problem, 5)]
    found = influential_in(runs, problem.y, C=0.5, masks=masks)
    for X, mask, one in zip(runs, masks, found, strict=True):
        rows = np.flatnonzero(np.ones(len(X), dtype=bool) if mask is None else mask)
        assert_same(one, LinearSVM(0.5).fit(X[rows], problem.y[rows]), rows)


@pytest.mark.usefixtures("here")
@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")
@pytest.mark.parametrize("classes", [2, 4])
def test_from_a_device_unequal_classes(classes, request):
    """The last class has a single sample."""
    request.getfixturevalue("tensors_on_a_device")
    problem = make("well_behaved", 2, n=200, d=4, classes=classes)
    y = problem.y.copy()
    y[np.flatnonzero(y == classes - 1)[1:]] = 0
    (one,) = influential_in([torch.tensor(problem.X)], y)
    assert_same(one, LinearSVM().fit(problem.X, y), np.arange(len(y)))


@pytest.mark.usefixtures("here")
def test_no_more_runs_are_taken_than_are_needed(problem):
    taken = []

    def runs():
        for number, X in enumerate(runs_of(problem, 1000)):
            taken.append(number)
            yield X

    found = influential_in(runs(), problem.y)
    assert not taken
    next(found)
    assert len(taken) == 1  # engines with workers take a few ahead
    found.close()


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_bad_features_name_their_run(problem, kind):
    bad = problem.X.copy()
    bad[3, 1] = np.nan
    found = influential_in([problem.X, kind(bad), problem.X], problem.y)
    assert next(found).mask.any()
    with pytest.raises(ValueError, match=r"run 1: .*NaN"):
        next(found)


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("on_a_device", [False, True])
def test_a_mask_that_leaves_one_class_names_its_run(problem, on_a_device, request):
    if on_a_device:
        request.getfixturevalue("tensors_on_a_device")
    X = torch.tensor(problem.X)
    found = influential_in([X, X], problem.y, masks=[None, problem.y == problem.y[0]])
    assert next(found).mask.any()
    with pytest.raises(ValueError, match=r"run 1: .*two"):
        next(found)


@pytest.mark.usefixtures("here")
def test_a_run_of_another_size_is_named(problem):
    with pytest.raises(ValueError, match="run 0: X"):
        list(influential_in([problem.X[1:]], problem.y))


def test_a_worker_that_is_lost_is_an_error_that_names_the_run(problem, monkeypatch):
    class Losing(InProcess):
        def map(self, function, items, *shared):
            yield from super().map(function, [next(items)], *shared)
            raise WorkerLostError("a worker process ended early")

    monkeypatch.setattr(influence, "staying", lambda module: nullcontext(Losing()))
    with pytest.raises(RuntimeError, match="process ended early"):
        list(influential_in(runs_of(problem, 2), problem.y))


@pytest.mark.parametrize(
    ("y", "keywords", "message"),
    [
        ([0, 0, 0], {}, "two classes"),
        ([0.5, 0.1, 0.2], {}, "continuous"),
        ([0, 1, 1], {"C": -1.0}, "C must be"),
    ],
)
def test_what_all_runs_share_is_checked_at_once(y, keywords, message):
    with pytest.raises(ValueError, match=message):
        influential_in([], y, **keywords)


def test_no_runs():
    assert list(influential_in([], [0, 1])) == []


@pytest.mark.long
def test_a_script_needs_no_guard(tmp_path):
    """Worker processes do not run the script that started them; `tests/parallel` has the engine's own test of it."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np\n"
        "from maxrr.svm import influential_in\n"
        "print('script')\n"
        "X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1]\n"
        "print([int(found.mask.sum()) for found in influential_in([X, 2 * X], y)])\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout == "script\n[3, 2]\n"
