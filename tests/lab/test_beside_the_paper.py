"""On the paper's data its numbers stand beside the cells that they belong to."""

import pytest

from lab.agreement import ends
from lab.parts import PARTS, STUDIES
from lab.profiles import PAPER, SMOKE, SVC
from tests.cases import THOROUGH
from tests.lab.problems import TINY, tiny_lab

LOOKED_AT = (
    "table", "sensitivity", "verification", "agreement", "coverage", "histogram", "svms", "refit", "frontier",
    "ranking-length",
)  # fmt: skip


@pytest.fixture(scope="module")
def beside(measured, tmp_path_factory):
    """What was measured, as if the digits were Fashion-MNIST."""
    lab = tiny_lab(tmp_path_factory.mktemp("beside"), data="fashion-mnist")
    parts = {name: part for name, part in {**PARTS, **STUDIES}.items() if THOROUGH or name in LOOKED_AT}
    parts.pop("core-choice", None)  # chosen at home only
    for name in parts:
        results, part = lab.results(name), measured[name]
        results.write({"setting": results.setting, "made": part["made"], "pieces": part["pieces"]})
    return {name: part.measure(lab) for name, part in parts.items()}


def test_nothing_is_measured_again(measured, beside):
    for content in ("pieces", "made"):
        assert {name: part[content] for name, part in beside.items()} == {
            name: measured[name][content] for name in beside
        }


def papers(part):
    return {row: {column: cell["paper"] for column, cell in columns.items()} for row, columns in part["cells"].items()}


def test_table(beside):
    found = papers(beside["table"])
    assert found["SVM"]["nontop10k"] == 0.7572
    assert found["FE"]["nontop10k"] == 0.8289
    assert found["FE+SVM"]["nontop10k"] == 0.4289
    assert found["No"]["nontop20k"] == 0.904


def test_sensitivity(beside):
    (share,) = beside["sensitivity"]["forgotten"]
    wanted = {"No": {share: 0.9}, "SVM": {share: 0.8982}, "FE": {share: 0.8882}, "FE+SVM": {share: 0.8871}}
    assert papers(beside["sensitivity"]) == wanted


def test_verification(beside):
    found = papers(beside["verification"])
    accuracies = {row: columns["accuracy"] for row, columns in found.items() if columns["accuracy"]}
    assert accuracies == {
        "core20k, MaxRR": 0.879795, "core20k, perfect": 0.86252, "noncore20k, MaxRR": 0.88835,
        "noncore20k, perfect": 0.89678,
    }  # fmt: skip
    # Shares of records by runs cannot be compared with those of 20 runs; the curves are there for the figure.
    assert {columns["claimed in all runs"] for columns in found.values()} == {None}
    curve = beside["verification"]["share_by_runs_claimed_unlearned"]["core20k"]
    assert (curve["MaxRR"]["paper"][20], curve["perfect"]["paper"][0]) == (0.50035, 0.03445)


def test_agreement(beside):
    """Where there are other numbers of runs than the paper's, its curve is shown, and nothing compared."""
    assert {paper for row in papers(beside["agreement"]).values() for paper in row.values()} == {None}
    curve = beside["agreement"]["share_with_the_same_verdict"]["core20k"]["paper"]
    assert dict(zip(curve["runs"], curve["shares"], strict=True))[0.8] == pytest.approx(0.78215)
    shares = {reading: [number / 20 for number in range(21)] for reading in ("same", "close")}
    found = ends(shares, {0.8: 0.78215, 1.0: 0.4952})
    for reading in ("same", "as often"):
        assert (found[f"{reading} in 80 % of runs"]["mean"], found[f"{reading} in 80 % of runs"]["paper"]) == (
            0.8,
            0.78215,
        )
        assert (found[f"{reading} in all runs"]["mean"], found[f"{reading} in all runs"]["paper"]) == (1.0, 0.4952)


def test_counts(beside):
    assert papers(beside["coverage"])["core or influential"] == {"records": 20_500}
    assert papers(beside["coverage"])["influential, not core"] == {"records": 20_500 - TINY.large}
    assert papers(beside["histogram"]) == {
        "ever": {"records": None}, "in every run": {"records": None}, "a run": {"records": 10745.32}
    }  # fmt: skip
    assert beside["histogram"]["paper"]["100"] == 2540


def test_svms(beside):
    (row, *others) = papers(beside["svms"]).values()
    assert row == {"accuracy": pytest.approx(0.89972, abs=1e-5), "support vectors a run": 10745.32}
    assert others
    assert all(row.items() <= other.items() for other in others)


def test_what_the_paper_did_not_measure_has_no_verdict(beside):
    for name in ("refit", "frontier", "ranking-length"):
        cells = [cell for columns in beside[name]["cells"].values() for cell in columns.values()]
        assert {cell["verdict"] for cell in cells} == {None}


def test_other_data_have_files_of_their_own_and_fewer_runs(tmp_path):
    mnist = PAPER.on("mnist")
    assert (mnist.data, mnist.ranked, mnist.runs, mnist.few) == ("mnist", 20, 20, 20)
    assert PAPER.on(PAPER.data) is PAPER
    for profile, data in ((PAPER, "digits"), (SMOKE, "mnist")):
        with pytest.raises(ValueError, match="go with smoke"):
            profile.on(data)
    assert tiny_lab(tmp_path, data="mnist").results("table").path.name == "table-mnist.json"
    assert tiny_lab(tmp_path).results("table").path.name == "table.json"


def test_the_papers_profile_is_as_large_as_the_paper():
    assert (PAPER.ranked, PAPER.runs, PAPER.few) == (100, 100, 20)
    assert (PAPER.small, PAPER.large, PAPER.extra, PAPER.many, PAPER.some) == (10_000, 20_000, 10_000, 20_000, 2_000)
    assert (SVC.heads, PAPER.heads, TINY.heads) == ("one-vs-one", "one-vs-rest", "one-vs-rest")
