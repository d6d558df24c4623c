"""Where a search goes from Newton's method to a path, and how it begins after a change. Bytes never follow from it."""

import numpy as np
import pytest

from maxrr import LinearSVM
from maxrr.svm import heads
from maxrr.svm.search import newton, working_set
from maxrr.svm.search.path import Path


def clusters(seed, count, features, apart):
    """Two classes, and noise around their centres."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=count)
    return rng.normal(size=(count, features)) + apart * (2 * y[:, None] - 1), y


@pytest.fixture
def calls(monkeypatch):
    """What is done, in order: `newton`; or `path`, how many samples begin on the margin, and how many are in doubt."""
    found, doubts = [], [0]
    minimise, follow, walk = newton.minimise, working_set.follow, Path.follow

    def noted(*given):
        doubts[0] = given[5] if len(given) > 5 else 0
        return follow(*given)

    def begun(path, most):
        found.append(("path", int(np.count_nonzero(path.side == 0.0)), doubts[0]))
        return walk(path, most)

    monkeypatch.setattr(newton, "minimise", lambda *given: found.append(("newton",)) or minimise(*given))
    monkeypatch.setattr(working_set, "follow", noted)
    monkeypatch.setattr(Path, "follow", begun)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_room_is_left_on_the_margin_for_as_many_as_are_doubtful(calls, seed):
    features = 30
    LinearSVM().fit(*clusters(seed, 3_000, features, 0.1))
    begun = [call[1:] for call in calls if call[0] == "path"]
    assert any(doubtful for _, doubtful in begun)
    assert all(count <= max(features + 1 - doubtful, (features + 1) // 2) for count, doubtful in begun)


@pytest.mark.parametrize(("apart", "first"), [(0.8, "newton"), (0.05, "path")])
def test_with_room_on_the_margin_added_samples_go_newtons_way(calls, apart, first):
    X, y = clusters(0, 2_000, 40, apart)
    model = LinearSVM().fit(X, y)
    nearly_full = model.certificate_[0].on_margin >= 0.9 * 41
    assert nearly_full == (first == "path")
    new = X[model.support_[:1]] * 0.5
    calls.clear()
    added = model._with_more(new, 1 - y[model.support_[:1]])
    assert calls[0][0] == first
    again = LinearSVM().fit(np.concatenate([X, new]), np.append(y, 1 - y[model.support_[0]]))
    assert added.coef_.tobytes() == again.coef_.tobytes()


@pytest.mark.parametrize(("count", "wider"), [(200, True), (20_000, False)])
def test_with_few_samples_a_smoothing_after_many_changes_begins_wider(monkeypatch, count, wider):
    X, y = clusters(0, count, 40, 0.2)
    model, widths = LinearSVM().fit(X, y), []
    resume = heads.resume_head

    def noted(samples, head, change, margins):
        trial = resume(samples, head, change, margins)
        widths.append(trial.width / heads.first_width(margins, len(head.w)))
        return trial

    monkeypatch.setattr(heads, "resume_head", noted)
    gone = model.support_[:: 3 if wider else 30]
    left = model._without(gone)
    assert [width > 1.0 for width in widths] == [wider]
    rest = np.setdiff1d(np.arange(count), gone)
    assert left.coef_.tobytes() == LinearSVM().fit(X[rest], y[rest]).coef_.tobytes()
