"""Samples that stay in main memory while a device does the products; here the processor stands for the device."""

import itertools
import pickle
import weakref

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch.utils._python_dispatch import TorchDispatchMode

from maxrr.svm import LinearSVM, estimator, heads
from maxrr.svm.arrays import Device, asked_for
from maxrr.svm.cuda import streamed_start as start_streamed
from maxrr.svm.cuda import streaming
from tests.cases import some, thinned

TINY = 1 << 20  # bytes: room for Newton's method on some of the samples below, and for all of none
NO_ROOM = 1 << 14  # for blocks alone
PLENTY = 1 << 40
CONTAINERS = ["array", "memory map", "tensor"]


@pytest.fixture
def budget(monkeypatch):
    """Sets what may be used on the device."""

    def set_to(size):
        monkeypatch.setattr(estimator, "asked_for", lambda name: Device("cpu", size) if name else None)

    set_to(TINY)
    return set_to


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Sizes at which a few thousand samples are too many."""
    monkeypatch.setattr(start_streamed, "BLOCK", 64)
    monkeypatch.setattr("maxrr.svm.cuda.newton.BLOCK", 64)
    monkeypatch.setattr("maxrr.svm.cuda.start.BLOCK", 64)
    monkeypatch.setattr(start_streamed, "FEW_ROWS", (256, 48))
    monkeypatch.setattr("maxrr.svm.cuda.start.ENOUGH", 500)
    monkeypatch.setattr(start_streamed, "MEASURED", 100)
    monkeypatch.setattr(heads, "on_accelerator", lambda X: isinstance(X, torch.Tensor))


def problem(dtype=np.float32, count=3000, classes=3, width=6, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=count)
    X = rng.normal(size=(count, width)) + 2.0 * rng.normal(size=(classes, width))[y]
    y[rng.random(count) < 0.05] = 0
    return X.astype(dtype), y


def contained(X, container, folder):
    if container == "tensor":
        return torch.tensor(X)
    if container == "array":
        return X
    mapped = np.lib.format.open_memmap(folder / "X.npy", "w+", X.dtype, X.shape)
    mapped[:] = X
    return mapped


def assert_same(model, other):
    assert all(certificate.decided for certificate in model.certificate_)
    assert model.coef_.tobytes() == other.coef_.tobytes()
    assert model.intercept_.tobytes() == other.intercept_.tobytes()
    assert np.array_equal(model.classes_, other.classes_)


def on_processor(X, y, **options):
    return LinearSVM(**options).fit(np.asarray(X, np.float64), y)


@pytest.mark.parametrize(
    ("dtype", "container"), thinned(2, itertools.product([np.float16, np.float32, np.float64], CONTAINERS))
)
def test_fit_forget_and_insert_end_in_the_bytes_of_the_processor(dtype, container, tmp_path, budget):
    X, y = problem(dtype)
    model = LinearSVM(device="cuda").fit(contained(X[:2900], container, tmp_path), y[:2900])
    kept = model._fitted.solution.samples
    assert kept.X.dtype == dtype
    assert isinstance(kept.X, np.ndarray)
    assert kept.device == Device("cpu", TINY)
    assert_same(model, on_processor(X[:2900], y[:2900]))
    model.forget(model.support_[:1])
    model.forget(np.union1d(model.support_[::3], model.rows_[:3]))
    model.insert(X[2900:], y[2900:])
    assert model._fitted.solution.samples.device is not None
    left = model.rows_
    assert_same(model, on_processor(X[left], y[left]))


@pytest.mark.parametrize("size", some(2, [TINY, PLENTY, NO_ROOM]))
def test_many_heads_and_weights(size, budget, monkeypatch):
    budget(size)
    monkeypatch.setattr(heads, "group_size", lambda samples: 4)
    X, y = problem(count=2500, classes=10)
    weight = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], len(y))
    options = {"class_weight": {2: 5.0}, "C": 0.1}
    calls = []
    guess_run = start_streamed.guess_run
    monkeypatch.setattr(start_streamed, "guess_run", lambda *given: calls.append(given) or guess_run(*given))
    model = LinearSVM(device="cuda", **options).fit(X, y, sample_weight=weight)
    assert len(calls) == (0 if size == PLENTY else 3)  # groups
    other = LinearSVM(**options).fit(X, y, sample_weight=weight)
    assert_same(model, other)
    rows = other.support_[:40]
    model.forget(rows)
    other.forget(rows)
    assert_same(model, other)


def test_a_new_class_gets_a_head(budget):
    X, y = problem(count=2000, classes=4)
    first, later = np.flatnonzero(y < 3), np.flatnonzero(y == 3)
    model = LinearSVM(device="cuda").fit(X[first], y[first])
    model.insert(X[later], y[later])
    order = np.concatenate([first, later])
    assert_same(model, on_processor(X[order], y[order]))


def test_the_start_ends_near_the_solution(budget, monkeypatch):
    """Otherwise it is no use: heads are settled on bands, without another start on the processor."""
    choices, choose = [], start_streamed.choose
    monkeypatch.setattr(start_streamed, "choose", lambda *given: choices.append(choose(*given)) or choices[-1])
    monkeypatch.setattr(heads, "start_heads", lambda *given: pytest.fail("the start was poor"))
    budget(2 * TINY)
    X, y = problem(count=20_000)
    model = LinearSVM(device="cuda").fit(X, y)
    assert choices[0].weight > 2.0  # a part of the samples stood for all
    guess = start_streamed.guess_run(model._fitted.solution.samples, [0, 1, 2])
    assert set(guess.head) == {0, 1, 2}  # and in the end all near each margin were there
    assert np.max(np.abs(guess.w - model.coef_)) <= 0.01 * np.max(np.abs(model.coef_))


def test_a_nonsensical_guess_is_only_slow(budget, monkeypatch):
    X, y = problem(count=800)
    monkeypatch.setattr(start_streamed, "minimise", lambda rows, heads, narrowest: heads)
    assert_same(LinearSVM(device="cuda").fit(X, y), on_processor(X, y))


class Held(TorchDispatchMode):
    """The most bytes that tensors made meanwhile held at once."""

    def __init__(self):
        super().__init__()
        self.now, self.most, self.known = 0, 0, {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else [found]:
            if isinstance(tensor, torch.Tensor):
                self.note(tensor.untyped_storage())
        return found

    def note(self, storage):
        if storage.data_ptr() not in self.known:
            self.known[storage.data_ptr()] = size = storage.nbytes()
            self.now += size
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self.forget, storage.data_ptr())

    def forget(self, place):
        self.now -= self.known.pop(place)


def test_what_is_held_is_counted():
    with Held() as held:
        some = [torch.zeros(1000) for _ in range(3)]
        some[0] = some[0].view(10, 100) + 1.0
        assert held.most == 16_000
        del some[1:]
        assert held.now == 4000


@pytest.mark.parametrize(("size", "width"), some(2, [(NO_ROOM, 6), (TINY, 6), (40 * TINY, 140)]))
def test_no_more_than_the_budget_is_held(size, width, budget):
    """Buffers in main memory count here, too, and so do numbers on their way there and back."""
    budget(size)
    X, y = problem(count=5000, width=width)
    with Held() as held:
        model = LinearSVM(device="cuda", copy_X=False).fit(X, y)
        fitted = held.most
        model.without(model.support_[:40])
    assert 0 < fitted <= size
    assert held.most <= size
    used = start_streamed.guess_run(model._fitted.solution.samples, [0, 1, 2])
    assert (used is None) == (size == NO_ROOM)


class Watched(np.ndarray):
    """An array that remembers the largest part that was taken of it."""

    largest = 0

    def __getitem__(self, chosen):
        found = super().__getitem__(chosen)
        if isinstance(found, np.ndarray) and found.ndim == 2:
            Watched.largest = max(Watched.largest, len(found))
        return np.asarray(found)


def test_a_memory_map_is_read_in_blocks(tmp_path, budget):
    budget(TINY // 4)
    X, y = problem(np.float16, count=20_000, width=8)
    mapped = contained(X, "memory map", tmp_path)
    samples = LinearSVM(device="cuda", copy_X=False).fit(mapped, y)._fitted.solution.samples
    assert np.shares_memory(samples.X, mapped)
    Watched.largest = 0
    weights = np.random.default_rng(0).normal(size=(8, 3))
    found = streaming.scores(samples.X.view(Watched), weights, samples.device)
    np.testing.assert_allclose(found, X.astype(np.float64) @ weights, rtol=1e-12, atol=1e-12)
    assert 0 < Watched.largest < len(X) / 4


@pytest.mark.parametrize("step", [1, 7, 49, 50, 51, 1000])
def test_every_row_is_sent_once_and_in_order(step):
    X = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
    X.flags.writeable = False
    sent = [(rows, block.clone()) for rows, block in streaming.sent(X, step, Device("cpu"))]
    assert np.array_equal(torch.cat([block for _, block in sent]).numpy(), X)
    assert [rows.start for rows, _ in sent] == list(range(0, 50, step))
    assert all(len(block) == rows.stop - rows.start <= step for rows, block in sent)


def test_samples_that_fit_are_there_for_the_fit_alone(budget, monkeypatch):
    budget(PLENTY)
    X, y = problem()
    monkeypatch.setattr(start_streamed, "guess_run", lambda *given: pytest.fail("they fit"))
    model = LinearSVM(device="cuda").fit(X, y)
    assert isinstance(model._fitted.solution.samples.X, np.ndarray)
    assert_same(model, on_processor(X, y))


def test_without_a_copy_a_tensor_is_worked_on_and_erased(budget):
    X, y = problem()
    given = torch.tensor(X)
    model = LinearSVM(device="cuda", copy_X=False).fit(given, y)
    model.forget([5, 17])
    assert not given[[5, 17]].any()
    assert np.array_equal(np.delete(given.numpy(), [5, 17], 0), np.delete(X, [5, 17], 0))


def test_a_pickle_is_for_any_machine(budget):
    X, y = problem(count=600)
    model = LinearSVM(device="cuda").fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.device == "cuda"
    assert again._fitted.solution.samples.device is None
    again.forget(model.support_[:3])
    model.forget(model.support_[:3])
    assert_same(again, model)


def test_the_device_is_a_parameter_like_others():
    model = LinearSVM(device="cuda")
    assert model.get_params()["device"] == clone(model).device == "cuda"
    assert "device='cuda'" in repr(model)
    assert "device" not in repr(LinearSVM())


def test_which_device():
    assert asked_for(None) is asked_for("cpu") is asked_for(torch.device("cpu")) is None
    X, y = problem(count=100)
    for wrong in ("gpu", "mps", 3):
        with pytest.raises(ValueError, match="'cpu' or 'cuda'"):
            LinearSVM(device=wrong).fit(X, y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is CUDA here")
def test_without_cuda_the_message_says_what_to_do():
    X, y = problem(count=100)
    with pytest.raises(ValueError, match="leave `device` out"):
        LinearSVM(device="cuda").fit(X, y)


@pytest.mark.parametrize("wrong", [np.empty((0, 3), np.float32), np.zeros(4, np.float32), torch.zeros(4)])
def test_samples_of_another_shape_are_refused_as_without_a_device(wrong, budget):
    with pytest.raises(ValueError, match=r"at least 1 is needed|2D array|samples and features"):
        LinearSVM(device="cuda").fit(wrong, np.arange(4))


def test_numbers_that_are_not_finite_are_found(budget):
    X, y = problem()
    X[2222, 2] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity"):
        LinearSVM(device="cuda").fit(X, y)
