"""Cores for the study: each is what its name says, whatever the ranking."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from lab import scores
from lab.lab import Lab
from lab.selectors import FEW, SELECTORS, frequency, hashed
from maxrr.core.shards import keyed_hashes
from maxrr.nets import runs as runs_cpu
from maxrr.nets import train
from tests.cases import THOROUGH
from tests.lab.problems import CLASSES, RECORDS, TINY, tiny_lab, with_votes

rankings = settings(
    deadline=None, derandomize=True, max_examples=20 if THOROUGH else 8,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
NETWORKS = 4  # of which forgetting looks at two
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(1, RECORDS)


def ranked(lab, seed, runs=4):
    """A lab with a ranking at random; some records are influential more often than others."""
    random = np.random.default_rng(seed)
    return with_votes(lab, random.random((runs, RECORDS)) < random.random(RECORDS))


def frequencies(lab):
    return dict(zip(lab.training.ids.tolist(), lab.ranking.frequency().tolist(), strict=True))


@pytest.mark.parametrize("name", SELECTORS)
def test_as_many_distinct_records_as_asked_for(lab, measured, name):
    for k in (2, 31, RECORDS):
        core = SELECTORS[name](lab, k)
        assert len(core) == len(np.unique(core)) == k
        assert np.isin(core, lab.training.ids).all()


@rankings
@given(seeds, sizes)
def test_frequency_is_the_top_of_the_ranking(lab, seed, k):
    other = ranked(lab, seed)
    counts = frequencies(other)
    best = sorted(counts, key=lambda id_: (-counts[id_], keyed_hashes(np.array([id_]), b"maxrr")))
    assert frequency(other, k).tolist() == other.ranking.top(k).tolist() == best[:k]


def test_hash_does_not_look_at_the_ranking(lab, monkeypatch):
    monkeypatch.setattr(Lab, "ranking", property(lambda lab: pytest.fail("it looked")))
    ids = lab.training.ids
    wanted = sorted(ids.tolist(), key=lambda id_: keyed_hashes(np.array([id_]), b"maxrr"))
    assert hashed(lab, 40).tolist() == wanted[:40]


@rankings
@given(seeds, st.integers(2, RECORDS))
def test_mixed_is_the_top_and_then_the_hash(lab, seed, k):
    other = ranked(lab, seed)
    core, top = SELECTORS["mixed"](other, k).tolist(), frequency(other, RECORDS).tolist()[: k // 2]
    assert core[: k // 2] == top
    assert core[k // 2 :] == [id_ for id_ in hashed(other, RECORDS).tolist() if id_ not in top][: k - k // 2]


@rankings
@given(seeds, st.integers(2, 42))
def test_balanced_is_balanced_and_the_top_of_each_class(lab, seed, k):
    other = ranked(lab, seed)
    core = SELECTORS["balanced"](other, k)
    labels = dict(zip(lab.training.ids.tolist(), lab.training.labels.tolist(), strict=True))
    for label in range(CLASSES):
        of_class = [id_ for id_ in core.tolist() if labels[id_] == label]
        assert len(of_class) in (k // CLASSES, -(-k // CLASSES))
        assert of_class == [id_ for id_ in frequency(other, RECORDS).tolist() if labels[id_] == label][: len(of_class)]
    half = SELECTORS["balanced mixed"](other, k).tolist()
    assert half[: k // 2] == core.tolist()[: k // 2]


@rankings
@given(seeds, sizes, st.integers(1, 14))
def test_middle_are_those_nearest_to_half_of_the_runs(lab, seed, k, runs):
    other = ranked(lab, seed, runs)
    first = with_votes(lab, np.unpackbits(other.ranking.votes, axis=1, count=RECORDS)[:10])
    for name, of in (("middle", other), (FEW, first)):
        away = {id_: abs(count - len(of.ranking.seeds) / 2) for id_, count in frequencies(of).items()}
        core = SELECTORS[name](other, k).tolist()
        assert [away[id_] for id_ in core] == sorted(away.values())[:k]
        assert max(away[id_] for id_ in core) <= min(
            (distance for id_, distance in away.items() if id_ not in core), default=np.inf
        )


# How hard a record is to learn


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A lab whose networks say what was stored of them, by their age; and what they say."""
    random = np.random.default_rng(0)
    said = {epochs: 2.0 * random.normal(size=(NETWORKS, RECORDS, CLASSES)) for epochs in TINY.looks}
    asked = []

    def outputs(lab, seeds, epochs):
        asked.append(epochs)
        return said[epochs][: len(seeds)]

    monkeypatch.setattr(scores, "outputs", outputs)
    return tiny_lab(tmp_path, trials=NETWORKS), said, asked


def test_el2n_is_the_mean_length_of_the_error_at_the_first_look(stored):
    lab, said, asked = stored
    wanted = []
    for record, label in enumerate(lab.training.labels):
        lengths = []
        for network in said[TINY.looks[0]]:
            error = softmax(network[record])
            error[label] -= 1.0
            lengths.append(np.sqrt(sum(value**2 for value in error)))
        wanted.append(sum(lengths) / len(lengths))
    np.testing.assert_allclose(scores.el2n(lab), wanted, rtol=1e-12)
    assert np.array_equal(scores.el2n(lab), scores.el2n(lab))
    assert asked == [TINY.looks[0]]  # measured once


def test_forgetting_counts_steps_from_right_to_wrong(stored):
    lab, said, asked = stored
    wanted = []
    for record, label in enumerate(lab.training.labels):
        events = []
        for network in range(NETWORKS // 2):
            right = [int(np.argmax(said[epochs][network, record])) == label for epochs in TINY.looks]
            steps = sum(before and not after for before, after in pairwise(right))
            events.append(steps if any(right) else len(TINY.looks))
        wanted.append(sum(events) / len(events))
    assert scores.forgetting(lab).tolist() == wanted
    assert len(set(wanted)) > 2
    assert scores.forgetting(lab).tolist() == wanted
    assert asked == list(TINY.looks)


def test_a_network_of_few_epochs_is_what_a_longer_training_was_after_them(lab, monkeypatch):
    """Byte for byte, on the processor."""
    groups_of, shuffle, trained, at_start = runs_cpu.groups_of, runs_cpu.shuffle, [], []

    def grouped(network, recipe):
        (group,) = groups_of(network, recipe)
        trained.append(group.optimiser.weights)
        return [group]

    def shuffled(seed, epoch, count):
        at_start.append(trained[-1].detach().clone())
        return shuffle(seed, epoch, count)

    def weights_after(epochs):
        run = train(lab.network, lab.training, 5, **replace(TINY.recipe, epochs=epochs).facts, device="cpu", threads=1)
        return np.concatenate([value.detach().numpy().ravel() for value in run.network.parameters()])

    with monkeypatch.context() as patch:
        patch.setattr(runs_cpu, "groups_of", grouped)
        patch.setattr(runs_cpu, "shuffle", shuffled)
        weights_after(4)
    assert len(at_start) == 4
    for epochs in (1, 3):
        assert weights_after(epochs).tobytes() == at_start[epochs].numpy().tobytes()
    assert weights_after(1).tobytes() != at_start[2].numpy().tobytes()


def test_outputs_are_those_of_networks_of_this_age(lab, tmp_path):
    other = tiny_lab(tmp_path)
    young, old = scores.outputs(other, [4, 5], 1), scores.outputs(other, [5], 2)
    assert (young.shape, old.shape) == ((2, RECORDS, CLASSES), (1, RECORDS, CLASSES))
    run = train(lab.network, lab.training, 5, **replace(TINY.recipe, epochs=1).facts, device="cpu", threads=1)
    assert young[1].tobytes() == scores.embed(run.network, lab.training, device="cpu").tobytes()
    assert young[1].tobytes() != old[0].tobytes()
