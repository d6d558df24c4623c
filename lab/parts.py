"""The table of everything that is measured: one entry for each part of the paper and for each study beyond it.

Page, figures, Markdown, shell and tests read this table. What an entry needs to be measured or drawn is imported only
then, so that stored results can be shown without PyTorch.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lab.lab import Lab

Json = Mapping[str, Any]
Kind = Literal["accuracy", "count", "share"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One entry: what is measured, how it is introduced, drawn and counted.

    Attributes
    ----------
    module
        Below `lab`; its function `measure` does the work.
    asks
        The question, as the shell's help puts it.
    lead, caption
        What the page says above the numbers, and below the figure.
    drawing
        The function below `lab.figures` that draws it; None where a table says it better.
    kind, columns
        The kind of its cells, and of the columns whose cells are of another kind. New cells say it themselves; this is
        for result files from before they did.
    beyond
        Whether it goes beyond the paper.
    alternatives
        Whether several of our numbers stand beside one of the paper's. Then none is counted in the headline.
    follows
        Rows that follow from another row, which is counted.
    readings
        Readings of the paper's words, by how the names of their columns begin. The headline counts the first.
    by_kind
        What cells of each kind are called where they are counted apart.
    elsewhere
        Another lead and caption for other data, by the name of the data.
    profiles
        The only profiles that it is measured with, where not all make sense.
    """

    module: str
    asks: str
    lead: str
    kind: Kind
    caption: str = ""
    drawing: str | None = None
    columns: Mapping[str, Kind] = field(default_factory=dict)
    beyond: bool = False
    alternatives: bool = False
    follows: tuple[str, ...] = ()
    readings: Mapping[str, str] = field(default_factory=dict)
    by_kind: Mapping[Kind, str] = field(default_factory=dict)
    elsewhere: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()

    def measure(self, lab: "Lab") -> dict[str, Any]:
        """Measure what the result file does not have yet, and return the whole result."""
        result: dict[str, Any] = importlib.import_module(f"lab.{self.module}").measure(lab)
        return result

    def draw(self, content: Json) -> "Figure":
        """The figure of a result that has one."""
        module, function = str(self.drawing).split(".")
        figure: Figure = getattr(importlib.import_module(f"lab.figures.{module}"), function)(content)
        return figure


OURS = "Filled: ours, with two standard errors to either side."
FRONTIER = "Up is more accurate, to the right more records are forgotten for free."

TABLE: Mapping[str, Part] = {
    "histogram": Part(
        module="histogram", drawing="histogram.draw", kind="count",
        asks="how often records are support vectors",
        lead="A support vector shapes the model, and most records are never one. In how many of the runs is each of "
        "the others one?",
        caption="Solid: ours. Dashed: the paper's. The scale of records is logarithmic.",
    ),
    "coverage": Part(
        module="coverage", kind="count", follows=("core or influential",),  # the core is given
        asks="how many records are core or support vectors",
        lead="Records that are core or influential cost work to forget. All others are forgotten for free.",
    ),
    "table": Part(
        module="table", drawing="table.draw", kind="accuracy",
        asks="accuracy after unlearning",
        lead="Six sets of records are unlearned from the SVM, from the extractor (FE), from both, or from neither "
        "(No).",
        caption=f"{OURS} Hollow: the paper's. Its errors are assumed to be those of its row 'No'. A shaded panel has "
        "a wider scale.",
        elsewhere={"mnist": (
            "The same six sets on MNIST, of which the paper only says that little changes.",
            "Our accuracies, with two standard errors to either side. A shaded panel has a wider scale.",
        )},
    ),
    "verification": Part(
        module="verification", drawing="verification.draw", kind="share", columns={"accuracy": "accuracy"},
        by_kind={"accuracy": "the accuracies", "share": "in all runs or in none"},
        asks="in how many runs forgotten records are claimed unlearned",
        lead="The paper's attack looks at every forgotten record. In how many of the runs does it claim that the "
        "record was unlearned, for MaxRR and for a model that never had it?",
        caption="Filled: ours. Hollow: the paper's. The scale of shares is logarithmic.",
    ),
    "agreement": Part(
        module="agreement", drawing="agreement.draw", kind="share",
        readings={"to the letter": "same", "as often": "as often"},
        asks="how often MaxRR and perfect retraining get the same verdict",
        lead="For how many of the forgotten records is the verdict about MaxRR the one about perfect retraining? "
        "Verdicts are compared run by run, as the paper says; and by how often a record is claimed unlearned over all "
        "runs, which its curve resembles more.",
        caption="Discs: ours, run by run. Squares: ours, over all runs. Hollow: the paper's. Crosses: its points from "
        "80 % on, taken for one run more.",
    ),
    "sensitivity": Part(
        module="sensitivity", drawing="sensitivity.draw", kind="accuracy", alternatives=True,
        asks="unlearning random support vectors",
        lead="Random support vectors are unlearned. The paper does not say which share of them, so there are several.",
        caption="Lines are ours, with two standard errors to either side; dashed levels are the paper's.",
    ),
    "refit": Part(
        module="refit", drawing="refit.draw", kind="accuracy",
        asks="the refit on the remaining support vectors, which the paper proposes without numbers",
        lead="The paper proposes to fit the heads again to what is left of their support vectors. Beside that: a fit "
        "to all retained records, and heads that are moved from where they were and end where this fit does.",
        caption="Accuracies with two standard errors to either side, and seconds on a logarithmic scale.",
    ),
    "readings": Part(
        module="readings", beyond=True, alternatives=True, kind="count", columns={"accuracy": "accuracy"},
        asks="which pixels, SVMs, epochs and batches come nearest to the paper's support vectors and accuracy",
        lead="Pixels, kind of SVM, epochs and batches on a grid, ten runs each. Beside them: what ten of the paper's "
        "runs would show. By a rule written down before, the best of each kind of SVM is the reading that everything "
        "else is then measured with.",
    ),
    "svms": Part(
        module="svms", drawing="svms.draw", beyond=True, alternatives=True, kind="share",
        columns={"accuracy": "accuracy", "support vectors a run": "count"},
        asks="the same networks under other SVMs",
        lead="The same networks under other SVMs: one SVM per class or per pair of classes, with three penalties C. "
        "What changes is the SVM's doing, not the training's.",
        caption=f"{OURS} Dashed: the paper's.",
    ),
    "frontier": Part(
        module="frontier", drawing="frontier.draw", beyond=True, kind="share", columns={"accuracy": "accuracy"},
        asks="accuracy against what forgetting costs, for cores of many sizes",
        lead="A core that spares more records may cost accuracy. Each way to select it has a mark of its own.",
        caption=f"{FRONTIER} A shaded panel has a wider scale.",
    ),
    "core-choice": Part(
        module="core_choice", drawing="frontier.draw", beyond=True, kind="share", columns={"accuracy": "accuracy"},
        asks="the core chosen on validation records, reported on test records",
        lead="A core that is chosen by the records it is reported on looks better than it is. This one was chosen on "
        "records held back from training, by a rule written down before, and then measured once on the test records.",
        caption=f"{FRONTIER} Seeds are fresh.",
    ),
    "core-epochs": Part(
        module="core_epochs", beyond=True, kind="share", columns={"accuracy": "accuracy"},
        asks="whether the middle core leads the paper's after longer trainings",
        lead="The middle core's lead over the paper's was seen after 18 epochs. The same networks after two and four "
        "times as many, with three rankings: are the two cores equivalent, within 0.2 points?",
    ),
    "shards": Part(
        module="shards", drawing="shards.draw", beyond=True, kind="accuracy",
        columns={"records × epochs, a random record": "count", "records × epochs, a core record": "count"},
        asks="the core in shards: accuracy against what a request costs, beside SISA",
        lead="A core in S shards has an extractor for each, so that forgetting one of its records trains one of them "
        "again. One exact SVM over the features of all, and SISA's vote of the same networks: how accurate is each, "
        "and what does a request cost?",
        caption="Up is more accurate, to the left is cheaper. The number in a mark is that of the shards. Accuracies "
        "are measured; costs are worked out, from the sizes of the shards and from seconds that were measured for the "
        "parts of a request.",
    ),
    "public-weights": Part(
        module="public_weights", drawing="public_weights.draw", beyond=True, kind="share",
        columns={"accuracy": "accuracy"}, profiles=("smoke", "public-weights"),
        asks="public weights and a small core: accuracy against what a request costs",
        lead="A network starts from public weights and is fine-tuned on a small core; the heads are fitted on all "
        "records. How large must the core be, and what does it cost when somebody asks to be forgotten?",
        caption="Up is more accurate, to the left is cheaper. The number in a mark is the core's share of the records "
        "in percent. Accuracies and the seconds of single requests are measured; what a random person's request is "
        "expected to take is worked out from them.",
    ),
    "ranking-length": Part(
        module="ranking_length", drawing="ranking_length.draw", beyond=True, kind="share",
        columns={"accuracy": "accuracy", "core or influential": "count"},
        asks="how many runs a ranking needs",
        lead="A core from few runs, beside the core of the longest ranking: how many runs are enough?",
        caption="Overlap and accuracy by the number of runs, whose doublings are equally far apart.",
    ),
    "members": Part(
        module="members", beyond=True, alternatives=True, kind="share",
        asks="which records stand for the members in the verification",
        lead="The attack needs members to choose its threshold by. Three sets of records can stand for them when 2,000 "
        "core records are forgotten, and verdicts agree more or less with each.",
    ),
    "control": Part(
        module="control", drawing="beside.draw_control", beyond=True, kind="share",
        asks="what the paper's attack says before records are forgotten",
        lead="The paper's attack on the same records before and after they are forgotten. If it claims about as many "
        "unlearned before, its claims say nothing about forgetting. Told apart: how often 'claimed unlearned' means "
        "'after'; guessing gives one half.",
        caption="Ours, with two standard errors to either side, by request and method.",
    ),
    "cross-validated": Part(
        module="cross_validated", beyond=True, alternatives=True, kind="share",
        asks="probabilities as SVC has them",
        lead="Probabilities as scikit-learn's SVC has them: sigmoids fitted to scores of SVMs that did not see the "
        "record. The whole core is forgotten.",
    ),
    "matched": Part(
        module="matched", drawing="beside.draw_matched", beyond=True, kind="accuracy",
        asks="support vectors forgotten, beside as many others",
        lead="Random support vectors are unlearned, as many records that are not influential, and as many at random.",
        caption="Accuracies and what they differ by, paired by run, with two standard errors to either side.",
    ),
    "more-runs": Part(
        module="more_runs", beyond=True, alternatives=True, kind="accuracy",
        asks="the sensitivity with 100 runs",
        lead="The largest request of the sensitivity, with as many runs as the paper's.",
    ),
}  # fmt: skip
PARTS = {name: part for name, part in TABLE.items() if not part.beyond}
STUDIES = {name: part for name, part in TABLE.items() if part.beyond}
UNKNOWN = Part(module="", asks="", lead="", kind="accuracy")  # a result of another version


def part_of(content: Json) -> Part:
    """The entry of a result, by what it says it is."""
    return TABLE.get(str(content.get("part")), UNKNOWN)


def kind_of(cell: Json, column: str, content: Json) -> Kind:
    """What kind of number a cell of a result holds: as it says, or as its part declares."""
    part = part_of(content)
    kind: Kind = cell.get("kind") or part.columns.get(column, part.kind)
    return kind
