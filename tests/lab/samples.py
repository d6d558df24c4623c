"""Results as a reproduction at the paper's size would write them: invented, but near the paper's numbers."""

from typing import Any

import numpy as np

from lab.comparison import compare
from lab.parts import Kind
from lab.profiles import PAPER
from lab.published import published, table
from lab.shard_costs import Speeds
from lab.shard_seconds import Setting
from lab.shards import REQUESTS, cases, methods
from lab.shards import row as shard_row

Json = dict[str, Any]

SETTING: Json = {
    "profile": {
        "name": "paper", "data": "fashion-mnist", "heads": "one-vs-rest", "ranked": 100, "runs": 100, "few": 20,
        "small": 10_000, "large": 20_000,
        "extra": 10_000, "many": 20_000, "some": 2_000, "recipe": {"epochs": 20, "batch_size": 64, "lr": 0.001},
        "fractions": [0.1, 0.25, 0.5, 0.75, 1.0],
    },
    "seed": 0,
}  # fmt: skip
MADE: Json = {
    "seconds": 1234.5, "date": "2026-11-15", "device": "NVIDIA H200", "machine": "x86_64, 16 cores",
    "python": "3.12.3", "maxrr": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "scipy": "1.17.1",
    "scikit-learn": "1.9.1",
}  # fmt: skip
CPU = {**MADE, "date": "2026-11-14", "device": "cpu"}


def results() -> dict[str, Json]:
    """All parts, by their names."""
    rng = np.random.default_rng(0)
    return {
        "histogram": histogram(rng), "coverage": coverage(rng), "table": accuracies(rng),
        "table-mnist": mnist(rng), "verification": verification(rng), "agreement": agreement(rng),
        "sensitivity": sensitivity(rng), "refit": refit(rng), "frontier": frontier(rng),
        "core-choice": core_choice(rng), "shards": shards(rng),
        "ranking-length": ranking_length(rng), "svms": svms(rng), "members": members(rng),
        "control": control(rng), "matched": matched(rng),
    }  # fmt: skip


def of(part: str, title: str, runs: int, **content: Any) -> Json:
    made = {"first": MADE, "second": CPU}
    return {"part": part, "title": title, "runs": runs, **content, "setting": SETTING, "made": made, "pieces": {}}


def cell(
    rng: np.random.Generator, mean: float, paper: float | None, kind: Kind = "accuracy", runs: int = 20
) -> Json:  # fmt: skip
    if runs == 1:
        return compare([mean], kind, paper).to_json()
    spread = {"accuracy": 0.004, "count": 0.01 * mean, "share": 0.01}[kind]
    return compare((mean + spread * rng.normal(size=runs)).tolist(), kind, paper).to_json()


def histogram(rng: np.random.Generator) -> Json:
    theirs = published()["support_vector_histogram"]
    paper = theirs["count_by_number_of_runs"]
    ours = {runs: int(rng.poisson(0.97 * count)) for runs, count in paper.items()}
    derived = theirs["derived"]
    return of(
        "histogram", "Support vectors", 100, records=60_000, count_by_number_of_runs=ours, paper=paper,
        cells={
            "ever": {"records": cell(rng, sum(ours.values()), derived["ever_support"], "count", 1)},
            "in every run": {"records": cell(rng, ours["100"], derived["support_in_every_run"], "count", 1)},
            "a run": {"records": cell(rng, 10_400.0, derived["mean_support_per_run"], "count", 100)},
        },
    )  # fmt: skip


def coverage(rng: np.random.Generator) -> Json:
    cells = {
        "core or influential": cell(rng, 24_100.0, 20_500.0, "count"),
        "free": cell(rng, 35_900.0, None, "count"),
    }
    return of(
        "coverage", "Who is not forgotten for free", 20, cells={name: {"records": one} for name, one in cells.items()}
    )


def accuracies(rng: np.random.Generator) -> Json:
    cells = {
        row: {column: cell(rng, paper + 0.002 * rng.normal(), paper, runs=100) for column, paper in columns.items()}
        for row, columns in table().items()
    }
    cells["FE+SVM"]["nontop10k"] = cell(rng, 0.29, 0.4289, runs=100)
    cells["SVM"]["nontop10k"] = cell(rng, 0.84, 0.7572, runs=100)
    return of("table", "Accuracy after unlearning", 100, cells=cells)


def mnist(rng: np.random.Generator) -> Json:
    cells = {
        row: {column: cell(rng, min(0.989, paper + 0.09), None) for column, paper in columns.items()}
        for row, columns in table().items()
    }
    found = of("table", "Accuracy after unlearning", 20, cells=cells)
    return {**found, "setting": {"profile": {**SETTING["profile"], "data": "mnist", "runs": 20}, "seed": 0}}


def verification(rng: np.random.Generator) -> Json:
    figures = {"core20k": "claimed_unlearned_core", "noncore20k": "claimed_unlearned_noncore"}
    curves: Json = {}
    cells: Json = {}
    for name in ("core20k", "core2k", "noncore20k", "noncore2k"):
        theirs = published()[figures.get(name, "claimed_unlearned_core")]
        curves[name] = {}
        for method in ("MaxRR", "perfect"):
            paper = list(theirs["fraction_by_runs_claimed_unlearned"][method.lower()].values())
            counts = rng.poisson(np.maximum(20_000 * np.array(paper) * 0.9 ** np.arange(21), 0.3))
            ours = (counts / counts.sum()).tolist()
            known = name in figures
            curves[name][method] = {"ours": ours, "paper": paper if known else None}
            accuracy = theirs["accuracy"][method.lower()]
            cells[f"{name}, {method}"] = {
                "accuracy": cell(rng, accuracy - 0.003, accuracy if known else None),
                "claimed in all runs": cell(rng, ours[-1], paper[-1] if known else None, "share", 1),
                "claimed in none": cell(rng, ours[0], paper[0] if known else None, "share", 1),
            }
    return of(
        "verification", "Claimed unlearned", 20, cells=cells, share_by_runs_claimed_unlearned=curves
    )  # fmt: skip


def agreement(rng: np.random.Generator) -> Json:
    key = "percent_of_samples_with_same_verdict_in_at_least_this_fraction_of_runs"
    curves: Json = {}
    cells: Json = {}
    for name, percents in published()["agreement"][key].items():
        paper = {float(at): percent / 100 for at, percent in percents.items()}
        runs = [number / 20 for number in range(21)]
        ours = [paper[at] ** 1.2 for at in runs]
        curves[name] = {
            "runs": runs, "ours": ours, "counts": [share**0.8 for share in ours],
            "paper": {"runs": list(paper), "shares": list(paper.values())},
        }  # fmt: skip
        cells[name] = {
            "same in 80 % of runs": cell(rng, ours[16], paper[0.8], "share", 1),
            "same in all runs": cell(rng, ours[20], paper[1.0], "share", 1),
        }
    return of(
        "agreement", "Same verdict as perfect retraining", 20, cells=cells, share_with_the_same_verdict=curves
    )  # fmt: skip


def sensitivity(rng: np.random.Generator) -> Json:
    papers = published()["sensitivity"]["accuracy"]
    falls = {"No": 0.0, "SVM": 0.004, "FE+SVM": 0.03, "FE": 0.025}
    level = cell(rng, 0.899, papers["none"])
    cells = {
        row: {
            f"{share:.0%}": level if row == "No" else cell(rng, 0.899 - fall * share, papers[row])
            for share in SETTING["profile"]["fractions"]
        }
        for row, fall in falls.items()
    }
    return of("sensitivity", "Unlearning random support vectors", 20, cells=cells)


def refit(rng: np.random.Generator) -> Json:
    requests = {
        "1% of the support vectors": 0.0, "10% of the support vectors": 0.001, "50% of the support vectors": 0.006,
        "the core": 0.012,
    }  # fmt: skip
    cells: Json = {}
    seconds: Json = {}
    for request, fall in requests.items():
        cells[request] = {
            "before": cell(rng, 0.889, None),
            "all retained": cell(rng, 0.889 - fall / 3, None),
            "remaining support vectors": cell(rng, 0.888 - fall, None),
        }
        seconds[request] = {
            way: (base * rng.uniform(0.9, 1.1, size=3)).tolist()
            for way, base in {
                "all retained": 21.0,
                "remaining support vectors": 6.0,
                "moved": 0.08 + 200 * fall,
            }.items()
        }
    return of("refit", "Refit on the remaining support vectors", 20, cells=cells, seconds=seconds, records={})


def frontier(rng: np.random.Generator) -> Json:
    found = {
        "frequency": ((0.502, 0.822), (0.611, 0.886)), "hash": ((0.544, 0.862), (0.469, 0.882)),
        "mixed": ((0.557, 0.845), (0.549, 0.883)), "balanced": ((0.169, 0.829), (0.400, 0.858)),
        "balanced mixed": ((0.557, 0.849), (0.512, 0.875)), "middle": ((0.599, 0.869), (0.576, 0.892)),
        "middle of 10 runs": ((0.604, 0.871), (0.559, 0.893)), "EL2N": ((0.545, 0.839), (0.561, 0.882)),
        "forgetting": ((0.526, 0.828), (0.599, 0.889)),
    }  # fmt: skip
    points = [
        {
            "selector": selector, "k": k, "accuracy": accuracy, "stderr": rng.uniform(0.0012, 0.0032), "free": free,
            "exact": 1.0 - free - k / 60_000, "approximate": k / 60_000,
        }
        for selector, both in found.items()
        for k, (free, accuracy) in zip((10_000, 20_000), both, strict=True)
    ]  # fmt: skip
    return of("frontier", "Selectors of the core", 10, points=points)


def core_choice(rng: np.random.Generator) -> Json:
    found = {
        "middle": ((0.599, 0.869), (0.576, 0.892)), "frequency": ((0.502, 0.822), (0.611, 0.886)),
        "hash": ((0.544, 0.862), (0.469, 0.882)), "forgetting": ((0.526, 0.828), (0.599, 0.889)),
    }  # fmt: skip
    points, cells = [], {}
    for selector, both in found.items():
        for k, (free, accuracy) in zip((8_333, 16_666), both, strict=True):
            shares = {"free": free, "exact": 1.0 - free - k / 50_000, "approximate": k / 50_000}
            points.append({"selector": selector, "k": k, "accuracy": accuracy, "stderr": 0.001, **shares})
            cells[f"{selector}, {k:,}"] = {
                name: cell(rng, value, None, "accuracy" if name == "accuracy" else "share")
                for name, value in {"accuracy": accuracy, **shares}.items()
            }
    return of("core-choice", "A core chosen on validation records", 30, points=points, cells=cells)


def shards(rng: np.random.Generator) -> Json:
    tops = {"full": (0.910, 0.905), "middle": (0.8995, 0.898), "hash": (0.8885, 0.888), "frequency": (0.8948, 0.883)}
    speeds = {
        Setting(case.shards, case.width, case.epochs).name: Speeds(
            0.1, 3e-6 * case.width**0.5, 1, 0.1, 0.1 + 0.01 * case.shards * case.width,
            dict.fromkeys(REQUESTS, 0.05 * case.shards * case.width),
        )
        for case in cases(PAPER)
    }  # fmt: skip
    cells, work = {}, []
    for case in cases(PAPER):
        records, (best, vote) = 60_000 if case.core == "full" else 20_000, tops[case.core]
        slope = 0.0020 if case.core == "full" else 0.0035
        fall = slope * np.log2(case.shards) + 0.004 * (1.0 - case.width)
        found = {
            "accuracy": [best - fall - 0.001, best - fall + 0.001], "vote": [vote - 4.0 * fall] * 2,
            "mean": [vote - 3.5 * fall] * 2, "influential": [4_000.0], "sizes": [records // case.shards] * case.shards,
        }  # fmt: skip
        cells[case.name] = shard_row(case, found, 60_000)
        work += methods(case, found, 60_000, {"NVIDIA H200": speeds})
    return of("shards", "The core in shards", 3, records=60_000, cells=cells, work=work)


def ranking_length(rng: np.random.Generator) -> Json:
    lines = [
        {
            "runs": runs, "overlap": {"10000": 1 - 0.3 / runs**0.6, "20000": 1 - 0.25 / runs**0.5},
            "accuracy": 0.886 - 0.01 / runs + 0.0005 * rng.normal(), "stderr": 0.001, "core_or_influential": 23_400.0,
        }
        for runs in (1, 2, 5, 10, 20, 50)
    ]  # fmt: skip
    return of("ranking-length", "How many runs a ranking needs", 10, lines=lines)


def svms(rng: np.random.Generator) -> Json:
    cells: dict[str, Json] = {}
    for kind, support in (("one-vs-rest", 12_300), ("one-vs-one", 8_600)):
        for penalty in (0.1, 1.0, 10.0):
            cells[f"{kind}, C = {penalty:g}"] = {
                "accuracy": cell(rng, 0.908, 0.89972),
                "support vectors a run": cell(rng, support * (1.0 - 0.02 * penalty / 10.0), 10_745.32, "count"),
            }
        cells[f"{kind}, C = 1"]["claimed in all runs, MaxRR"] = cell(rng, 0.4, 0.50035, "share", 1)
    return of("svms", "The same networks under other SVMs", 20, cells=cells)


def members(rng: np.random.Generator) -> Json:
    cells = {
        name: {"same in 80 % of runs": cell(rng, share, 0.805, "share", 1)}
        for name, share in (("all retained records", 0.42), ("records outside the core", 0.68))
    }
    return of("members", "Who stands for the members", 20, cells=cells)


def control(rng: np.random.Generator) -> Json:
    cells: dict[str, Json] = {}
    for name in ("core20k", "core2k", "noncore20k", "noncore2k"):
        for method in ("MaxRR", "perfect"):
            before, more = rng.uniform(0.2, 0.5), rng.uniform(-0.05, 0.3)
            shares = {"before": before, "after": before + more, "more after": more}
            row = {f"claimed {when}": cell(rng, share, None, "share") for when, share in shares.items()}
            row["claimed more after"]["signed"] = True
            cells[f"{name}, {method}"] = {**row, "told apart": cell(rng, 0.5 + more / 2.0, None, "share")}
    return of("control", "Claimed unlearned before and after", 8, cells=cells)


def matched(rng: np.random.Generator) -> Json:
    cells: dict[str, Json] = {}
    for share, fall in (("92%", 0.016), ("46%", 0.008)):
        for row in ("SVM", "FE+SVM", "FE"):
            ours = {"support vectors": 0.905 - fall, "not influential": 0.902, "random": 0.9}
            less = {**cell(rng, -fall / 2.0, None), "signed": True}
            cells[f"{share}, {row}"] = {who: cell(rng, mean, None) for who, mean in ours.items()} | {
                "support vectors less random": less
            }
    return of("matched", "Support vectors, and as many others", 20, cells=cells)
