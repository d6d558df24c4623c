"""Votes are those of a fit after a plain training; the top is that of a naive oracle, whatever the order of rows."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from maxrr import LinearSVM
from maxrr.core import rank, ranking
from maxrr.core.shards import keyed_hashes
from maxrr.nets import Recipe, embed, split, train
from maxrr.svm import Certificate
from maxrr.svm.influence import Influence
from tests.core.problems import RECIPE, SEEDS, C, made_up, network, records


@st.composite
def tables(draw):
    """Ids in any order, and votes of some runs for them."""
    kind = st.integers(-99, 99) if draw(st.booleans()) else st.text("abc", min_size=1, max_size=3)
    ids = draw(st.lists(kind, min_size=1, max_size=20, unique=True))
    runs = draw(st.integers(1, 4))
    votes = [draw(st.lists(st.booleans(), min_size=len(ids), max_size=len(ids))) for _ in range(runs)]
    return ids, votes


def test_votes_are_those_of_a_fit_after_a_plain_training(undisturbed):
    dataset = records()
    assert np.array_equal(undisturbed.ids, np.sort(dataset.ids))
    assert undisturbed.seeds == SEEDS
    gaps = []
    for row, seed in list(enumerate(SEEDS))[-2:]:
        run = train(network(), dataset, seed, **RECIPE.facts, device="cpu")
        features = embed(split(run.network)[0], dataset, device="cpu")
        model = LinearSVM(C).fit(features, dataset.labels)
        votes = np.unpackbits(undisturbed.votes[row], count=len(dataset)).astype(bool)
        assert np.array_equal(undisturbed.ids[votes], np.sort(dataset.ids[model.support_]))
        assert 0 < votes.sum() < len(dataset)
        gaps.append(max(certificate.relative_gap for certificate in model.certificate_))
    assert max(*gaps, undisturbed.worst_gap) <= 1e-10  # bounds, which may differ with the way there


def test_votes_are_packed(undisturbed):
    assert undisturbed.votes.dtype == np.uint8
    assert undisturbed.votes.shape == (len(SEEDS), len(records()) // 8)


def test_neither_the_order_of_rows_nor_other_runs_matter(undisturbed, again):
    """Nor whether the network is given, or a function that makes it: MLP's layers draw the same weights."""
    assert np.array_equal(again.ids, undisturbed.ids)
    assert again.seeds == SEEDS[1:3]
    assert np.array_equal(again.votes, undisturbed.votes[1:3])


def test_without_a_folder_nothing_touches_the_disk(again, written):
    assert written == []


@given(tables(), st.sampled_from([b"one", "two"]), st.data())
def test_the_top_is_that_of_a_naive_oracle(table, tie_breaker, data):
    ids, votes = table
    order = data.draw(st.permutations(range(len(ids))))
    found = made_up(ids, votes)
    shuffled = made_up([ids[place] for place in order], [[row[place] for place in order] for row in votes])
    counts = {id_: sum(row[place] for row in votes) for place, id_ in enumerate(ids)}
    hashed_with = tie_breaker.encode() if isinstance(tie_breaker, str) else tie_breaker
    best = sorted(ids, key=lambda id_: (-counts[id_], keyed_hashes(np.array([id_]), hashed_with)))
    for k in range(1, len(ids) + 1):
        assert found.top(k, tie_breaker).tolist() == shuffled.top(k, tie_breaker).tolist() == best[:k]
    assert found.frequency().tolist() == [counts[id_] for id_ in found.ids.tolist()]
    assert found.ever == sum(count > 0 for count in counts.values())
    assert found.always == sum(count == len(votes) for count in counts.values())


def test_ties_depend_on_the_tie_breaker():
    found = made_up(range(100), np.ones((2, 100)))
    assert found.top(50).tolist() == found.top(50, "maxrr").tolist() != found.top(50, b"another").tolist()


@pytest.mark.parametrize("k", [0, 4, -1])
def test_a_top_that_is_not_there(k):
    with pytest.raises(ValueError, match="top of 3"):
        made_up(range(3), [[1, 0, 1]]).top(k)


def test_ids_are_not_shown():
    found = made_up([700001, 700002, 700003], [[1, 0, 1], [1, 0, 0]])
    assert repr(found) == "<Ranking of 3 records: of 2 runs, 2 were influential in some, 1 in all>"


def test_progress_is_one_number_that_grows_to_the_end(undisturbed, reports):
    total = 4 * (RECIPE.epochs + 1) * len(records())
    assert {(what, total) for what, _, total, _ in reports} == {("ranking by 4 runs", total)}
    done = [done for _, done, _, _ in reports]
    assert done == sorted(done)
    assert done[0] == 0
    assert done[-1] == total > done[-2]
    assert reports[-1][3].keys() == {"loss", "accuracy", "solved"}
    assert [numbers["solved"] for *_, numbers in reports][-2:] == [3, 4]


def test_a_head_that_is_not_solved_names_the_seed(monkeypatch):
    def second_fails(runs, y, **options):
        for number, _ in enumerate(runs):
            certificate = Certificate(False, 0.0, 0.0, 0.25 * number, 0.0, 1.0, 1, 1)
            yield Influence(np.ones(len(y), dtype=bool), (certificate,), np.zeros((1, 1)), np.zeros(1))

    monkeypatch.setattr(ranking, "influential_in", second_fails)
    with pytest.raises(ValueError, match=r"only to 2\.5e-01"):
        rank(network(), records(40), [8, 9], recipe=Recipe(epochs=1), device="cpu")


def test_features_that_are_not_finite_name_the_seed():
    class Overflowing(nn.Module):
        """Scores are fine, features are not."""

        def __init__(self):
            super().__init__()
            self.head = nn.Linear(64, 10)

        def forward(self, x):
            x = x.flatten(1) if self.training else x.flatten(1) + torch.inf
            return self.head(x)

    with pytest.raises(ValueError, match="seed 4"):
        rank(Overflowing(), records(40), [4], recipe=Recipe(epochs=1), device="cpu")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": []}, "one seed or more"), ({"seeds": [1, 1]}, "all different"), ({"seeds": [-1]}, "from 0 upwards"),
        ({"C": 0.0}, "C must be a positive"), ({"device": "tpu"}, "tpu|device"),
        ({"network": nn.Flatten()}, "no weights to train"), ({"network": nn.Linear(64, 10)}, "nothing comes before it"),
        ({"dataset": records(40).select(records(40).ids[:1])}, "two classes or more, but these have 1"),
        ({"dataset": records(40).select([])}, "two classes or more, but these have 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_ranked_is_said_before_any_work(tmp_path, change, message):
    arguments = {"network": network(), "dataset": records(40), "seeds": [0], **change}
    with pytest.raises((ValueError, RuntimeError), match=message):
        rank(**arguments, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
