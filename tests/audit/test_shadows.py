"""Models to compare with are those that fitting anew gives; on a disk they leave no trace of the records."""

import copy

import numpy as np
import pytest

from maxrr.audit import audit
from maxrr.audit.case import make_case
from maxrr.audit.shadows import BEFORE, KEPT, RETRAINED, Shadows, shadow_models, shadow_seeds, with_and_without
from maxrr.core import HashCore
from maxrr.nets import embed
from maxrr.unlearning import blueprint as blueprint_module
from tests.audit.problems import CLASSES, FEW, SHARDED, TEST, TRAINING, asked, contents, core, fitted
from tests.cases import some
from tests.unlearning.problems import fresh

SEED = fitted().seed
PARTS = ("forgotten", "retained", "test")
NOT_CORE = np.setdiff1d(TRAINING.ids, core())
CORE_IDS, OTHER_IDS = core()[[1, 3, 5]], NOT_CORE[:4]
HAD = 4  # of FEW shadow models
VIEWS = FEW + HAD + 2  # of an audit of core records


def makes(now, folder=None):
    return Shadows(make_case(*now), "cpu", folder)


def never_saw(now, view):
    """Nothing but rounding differs from what another model says, fitted by itself on what it may know."""

    def check(model):
        case = make_case(*now)
        for part in PARTS:
            records = getattr(case, part)
            expected = model.predict_proba(records.select(records.ids[case.sample]) if part == "retained" else records)
            np.testing.assert_allclose(getattr(view, part)[:, model.heads_.classes_], expected, rtol=0, atol=1e-9)

    return check


def test_seeds_are_their_own_and_more_of_them_begin_with_the_same():
    many = shadow_seeds(SEED, 200)
    assert shadow_seeds(SEED, 24) == many[:24]
    assert len({SEED, *many}) == 201
    assert not set(many) & set(shadow_seeds(SEED + 1, 200))


@pytest.mark.parametrize("ids", [CORE_IDS, OTHER_IDS], ids=["core", "not"])
def test_no_model_has_a_twin(ids):
    """With and without the records: no two shadow models share a seed."""
    case = make_case(*asked(ids))
    seeds = [
        seed
        for _, some in shadow_models(case, *with_and_without(100))
        for seed in some
    ]  # fmt: skip
    assert len({SEED, *seeds}) == 1 + 100


@pytest.mark.parametrize(
    "ids", [CORE_IDS, OTHER_IDS, np.concatenate([CORE_IDS, OTHER_IDS])], ids=["core", "not", "mix"]
)
def test_equal_models_fitted_with_and_without_the_records(ids):
    """By a core that is decided for each record by itself: the naive oracle is to fit anew."""
    now = asked(ids)
    seeds = shadow_seeds(SEED, 2)
    found = makes(now).views([((BEFORE, RETRAINED), seeds)])
    for number, seed in enumerate(seeds):
        for kind, records in ((BEFORE, TRAINING), (RETRAINED, TRAINING.without(ids))):
            model = fresh(HashCore(0.5, key="house"), records, seed=seed).fit(records)
            never_saw(now, found[kind][number])(model)


def test_one_that_kept_them_in_the_extractor_is_the_model_after_a_refit_of_the_head():
    now = asked(CORE_IDS)
    (view,) = makes(now).views([((KEPT,), [7])])[KEPT]
    model = fresh(HashCore(0.5, key="house"), TRAINING, seed=7).fit(TRAINING)
    model.unlearn(CORE_IDS, core_policy="keep-extractor")
    never_saw(now, view)(model)


def test_rebuilt_ones_have_the_recorded_seed():
    now = asked(CORE_IDS)
    maker = makes(now)
    found = maker.views([maker.again])
    retained = TRAINING.without(CORE_IDS)
    never_saw(now, found[BEFORE][0])(fitted())
    never_saw(now, found[RETRAINED][0])(fresh(HashCore(0.5, key="house"), retained).fit(retained))


def test_of_a_core_in_shards_each_has_an_extractor_for_every_seed():
    """The naive oracle is to fit anew, with the recorded seed and with others."""
    ids = core("shards")[[1, 3]]
    now = asked(ids, "shards", core_policy="retrain")
    retained, seed = TRAINING.without(ids), shadow_seeds(SEED, 1)[0]
    maker = makes(now)
    found = maker.views([((BEFORE, RETRAINED), [seed])])
    for kind, records in ((BEFORE, TRAINING), (RETRAINED, retained)):
        never_saw(now, found[kind][0])(fresh(SHARDED, records, seed=seed).fit(records))
    rebuilt = maker.views([maker.again])
    never_saw(now, rebuilt[BEFORE][0])(fitted("shards"))
    never_saw(now, rebuilt[RETRAINED][0])(now.model)
    never_saw(now, rebuilt[RETRAINED][0])(fresh(SHARDED, retained).fit(retained))


def test_an_audit_of_a_core_in_shards():
    now = asked(core("shards")[[1, 3]], "shards", core_policy="retrain")
    found = audit(*now, shadows=FEW)
    assert contents(found) == contents(audit(*now, shadows=FEW))
    assert (found.finding.at_most.models + found.finding.retrained, found.guarantee) == (FEW, "exact-retrain")
    for said in found.attacks.values():  # of the same model
        assert said["after"].statistic == said["retrained"].statistic


def test_the_audited_model_speaks_for_itself():
    now = asked(CORE_IDS)
    never_saw(now, makes(now).own(now.model))(now.model)


def test_a_class_that_is_gone_has_a_column_of_zeros():
    ids = TRAINING.ids[TRAINING.labels == 1]
    now = asked(ids, core_policy="retrain")
    maker = makes(now)
    views = maker.views([((BEFORE, RETRAINED), shadow_seeds(SEED, 1))])
    for view in (views[RETRAINED][0], maker.own(now.model)):
        for part in PARTS:
            assert getattr(view, part).shape[1] == CLASSES
            assert not getattr(view, part)[:, 1].any()
            np.testing.assert_allclose(getattr(view, part).sum(axis=1), 1.0, atol=1e-9)
    assert views[BEFORE][0].forgotten[:, 1].mean() > 0.5


# On a disk


class Counting:
    """Counts views that are made, and stops after so many shadow models."""

    def __init__(self, monkeypatch, stop=None):
        self.made, self.trained, self.stop = [], [], stop
        keep, train_many = Shadows.keep, blueprint_module.train_many

        def counted(maker, seed, kind, view):
            self.made.append((seed, kind))
            keep(maker, seed, kind, view)

        def counted_training(network, records, seeds, **settings):
            self.trained += [(seed, len(records)) for seed in seeds]
            return train_many(network, records, seeds, **settings)

        monkeypatch.setattr(Shadows, "keep", counted)
        monkeypatch.setattr(blueprint_module, "train_many", counted_training)

    def __call__(self, what, done, total, **numbers):
        if what == "models" and done == self.stop:
            raise KeyboardInterrupt


def interrupted(now, folder, monkeypatch, stop):
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        audit(*now, shadows=FEW, folder=folder, progress=Counting(patch, stop))


def searched(folder):
    """All bytes below a folder, names too."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return files, b"\n".join(str(path).encode() + path.read_bytes() for path in files)


@pytest.mark.parametrize("stop", some(1, [6, 1, 8]))
def test_what_is_done_is_not_done_again(tmp_path, monkeypatch, stop):
    now, folder = asked(CORE_IDS), tmp_path / "audit"
    interrupted(now, folder, monkeypatch, stop)
    kept = {tuple(path.stem.split("-")) for path in folder.rglob("*.npz")}
    assert len(kept) == stop + min(stop, HAD)  # a model with the records is also looked at with a head without them
    counting = Counting(monkeypatch)
    audit(*now, shadows=FEW, folder=folder, progress=counting)
    assert not kept & {(kind, str(seed)) for seed, kind in counting.made}
    assert len(counting.trained) == FEW - stop + 2  # the last by the model's own seed
    assert len(counting.made) == VIEWS - len(kept)


@pytest.mark.parametrize("stop", some(1, [5, 2, 8]))
def test_models_that_share_an_extractor_train_it_once(tmp_path, monkeypatch, stop):
    """Where no core record was forgotten, the model before and the one without them, with the recorded seed."""
    now, folder = asked(OTHER_IDS), tmp_path / "audit"
    interrupted(now, folder, monkeypatch, stop)
    assert len(list(folder.rglob("*.npz"))) == stop
    counting = Counting(monkeypatch)
    audit(*now, shadows=FEW, folder=folder, progress=counting)
    assert len(counting.trained) == FEW - stop + 1


def test_views_hold_nothing_of_the_records(tmp_path, monkeypatch):
    now, folder = asked(np.concatenate([CORE_IDS, OTHER_IDS])), tmp_path / "audit"
    interrupted(now, folder, monkeypatch, 6)
    files, found = searched(folder)
    assert len(files) >= 6
    for path in folder.rglob("*"):
        assert path.stat().st_mode & 0o077 == 0
    files = [path for path in files if path.suffix == ".npz"]
    features = embed(fitted().extractor_, now.forgotten, device="cpu")
    wanted = [
        *(str(id_).encode() for id_ in now.forgotten.ids), *(id_.tobytes() for id_ in now.forgotten.ids),
        *(row.tobytes() for row in now.forgotten.inputs), *(value.tobytes() for value in now.forgotten.inputs.flat),
        *(value.tobytes() for value in now.forgotten.inputs.astype(np.float64).flat),
        *(value.tobytes() for value in features.astype(np.float64).flat if value),
        *(now.forgotten.record_hashes()[row].tobytes() for row in range(len(now.forgotten))),
        now.model._fitted.key, now.model._fitted.key.hex().encode(),
    ]  # fmt: skip
    assert [content for content in wanted if content in found] == []
    some = np.load(files[0])
    assert set(some.files) == {*PARTS, "relearned"}
    assert all(((some[part] >= 0) & (some[part] <= 1)).all() for part in PARTS)


@pytest.mark.long
def test_views_of_another_case_are_not_used(tmp_path, monkeypatch):
    """Another model, other records or another test set: all begins anew, and the other's views stay."""
    now, folder = asked(CORE_IDS), tmp_path / "audit"
    interrupted(now, folder, monkeypatch, 8)
    others, _ = searched(folder)
    for other in (asked(CORE_IDS[:2]), asked(CORE_IDS, core_policy="retrain")):
        counting = Counting(monkeypatch)
        audit(*other, shadows=FEW, folder=folder, progress=counting)
        assert len(counting.made) == VIEWS
        assert searched(folder)[0] == others


def test_a_damaged_view_is_named(tmp_path, monkeypatch):
    now, folder = asked(CORE_IDS), tmp_path / "audit"
    interrupted(now, folder, monkeypatch, 8)
    path = next(folder.rglob(f"{RETRAINED}-*.npz"))
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match=f"{path.name} is damaged"):
        audit(*now, shadows=FEW, folder=folder)
    path.unlink()
    counting = Counting(monkeypatch)
    audit(*now, shadows=FEW, folder=folder, progress=counting)
    assert (int(path.stem.split("-")[1]), RETRAINED) in counting.made
    assert not path.exists()


def test_more_shadows_begin_with_those_that_are_there(tmp_path, monkeypatch):
    now, folder = asked(OTHER_IDS), tmp_path / "audit"
    interrupted(now, folder, monkeypatch, 8)
    counting = Counting(monkeypatch)
    audit(*now, shadows=FEW + 4, folder=folder, progress=counting)
    assert len(counting.made) == 4 + 2


def test_nothing_is_written_without_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    audit(*asked(OTHER_IDS), shadows=FEW)
    assert list(tmp_path.iterdir()) == []


def test_the_model_is_left_as_it_was():
    now = asked(CORE_IDS)
    state, before = now.model._state, copy.deepcopy(now.model)
    audit(*now, shadows=FEW)
    assert now.model._state is state
    assert now.model.model_hash_ == before.model_hash_
    assert now.model.content_hash_ == before.content_hash_
    assert now.model.predict_proba(TEST).tobytes() == before.predict_proba(TEST).tobytes()
