"""Heads solved in groups on an engine are those that are solved here, to the byte."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from maxrr.parallel import InProcess, Processes, Ray, Threads
from maxrr.parallel.by_name import at_once
from maxrr.parallel.parcels import Mapped
from maxrr.svm import LinearSVM, heads_elsewhere, validation
from maxrr.svm.checkpoint import Checkpoint
from maxrr.svm.heads import group_size

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, np.array([f"digit {label}" for label in y[:400]])


def same(one, other):
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert all(map(np.array_equal, one.influential_, other.influential_))
    assert all(certificate.decided for certificate in one.certificate_)
    assert [each.decided for each in one.certificate_] == [each.decided for each in other.certificate_]


def test_the_same_bytes(digits, engine):
    seen = []
    model = LinearSVM().fit(*digits, engine=engine, progress=lambda *done: seen.append(done[:3]))
    here = LinearSVM().fit(*digits)
    same(here, model)
    heads = len(here.certificate_)
    assert len(seen) == 4  # two groups for each worker
    assert seen == sorted(seen)
    assert seen[-1] == ("heads", heads, heads)
    assert model.work_.cold_solves == here.work_.cold_solves
    rows = np.arange(5)
    here.forget(rows), model.forget(rows)
    same(here, model)


def test_weighted_samples_and_a_beginning(digits):
    X, y = digits
    weights = np.linspace(0.0, 2.0, len(X))
    here = LinearSVM().fit(X, y, sample_weight=weights)
    near = LinearSVM().fit(
        X, y, sample_weight=weights, coef_init=here.coef_, intercept_init=here.intercept_, engine=Ray()
    )  # fmt: skip
    same(here, near)


@pytest.mark.parametrize(("workers", "size"), [(1, 5), (2, 3), (5, 1), (100, 1)])
def test_groups_are_for_all_workers(digits, workers, size):
    samples = LinearSVM().fit(*digits)._state.solution.samples
    groups = heads_elsewhere.spread(samples, list(range(10)), workers)
    assert [positive for group in groups for positive in group] == list(range(10))
    assert max(map(len, groups)) == size


def test_no_group_is_larger_than_here(digits):
    samples = LinearSVM().fit(*digits)._state.solution.samples
    assert set(map(len, heads_elsewhere.spread(samples, list(range(160)), 2))) == {group_size(samples)}


def test_how_many_items_are_worked_on_at_once(cluster):
    assert [at_once(engine) for engine in (InProcess(), Threads(3), Processes(4), Ray())] == [1, 3, 4, 2]
    with Processes(2).kept() as kept:
        assert at_once(kept) == 2


def test_two_classes_are_solved_here(digits):
    X, y = digits
    two = np.isin(y, ["digit 1", "digit 7"])
    same(LinearSVM().fit(X[two], y[two], engine=Broken()), LinearSVM().fit(X[two], y[two]))


class Broken(InProcess):
    """An engine on which the group with class 1 fails."""

    def as_finished(self, function, items, *shared):
        def work(item, *given):
            if 1 in item[0]:
                raise MemoryError
            return function(item, *given)

        return super().as_finished(work, items, *shared)


def test_a_group_that_fails_names_its_classes(digits):
    with pytest.raises(MemoryError) as caught:
        LinearSVM().fit(*digits, engine=Broken())
    assert caught.value.__notes__ == [
        "raised by the work for the heads of the classes 'digit 0', 'digit 1', 'digit 2', 'digit 3', 'digit 4'"
    ]


def test_with_a_checkpoint_the_others_are_kept(digits, tmp_path):
    with pytest.raises(MemoryError):
        LinearSVM().fit(*digits, engine=Broken(), checkpoint=tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted(Checkpoint(tmp_path).file(each) for each in range(5, 10))
    model = LinearSVM().fit(*digits, engine=Ray(), checkpoint=tmp_path)
    assert model.work_.cold_solves == 5
    assert list(tmp_path.iterdir()) == []
    same(model, LinearSVM().fit(*digits))


def test_samples_in_a_file_are_read_there(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "LARGE", 0)  # so that they stay in float32, and in the file
    X, y = digits
    np.save(tmp_path / "X.npy", X.astype(np.float32))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    there = LinearSVM(copy_X=False).fit(mapped, y, engine=Ray())
    assert np.may_share_memory(there._state.solution.samples.X, mapped)
    same(LinearSVM().fit(X.astype(np.float32), y), there)
    assert isinstance(heads_elsewhere.shared(there._state.solution.samples)[0], Mapped)
