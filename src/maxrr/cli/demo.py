"""`maxrr demo`: fit on handwritten digits, forget one kind of record after another, train again, compare the bytes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from typer import Option

from maxrr.cli import outputs, show
from maxrr.cli.run import REFUTED, Stop
from maxrr.cli.status import tell_counts

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from maxrr.data import Dataset
    from maxrr.progress import Progress
    from maxrr.report.demo import RequestStory, Story
    from maxrr.unlearning import MaxRR
    from maxrr.workspace import Workspace

CORE = 0.3  # of the records: leaves many of every kind
EPOCHS, LEARNING_RATE = 60, 3e-3
EACH = 12  # records of each kind to forget
SOURCE = {"source": "digits", "demo": "yes"}  # what its workspace says of itself

Result = TypeVar("Result")


def demo(
    out: Annotated[
        Path,
        Option(
            help="The folder for the report and the workspace. What an earlier demo wrote there is replaced, "
            "nothing else is."
        ),
    ] = Path("demo"),
) -> None:
    """Fit on 8 × 8 digits, forget three kinds of them, compare with training again; write a report to look at.

    Exits with 4 if the bytes are not those of training again.
    """
    check_free(out)
    with show.progress():
        story = happen(out / "ws")
    write(story, out)
    tell(story)
    show.say(f"The model is in {out / 'ws'}: maxrr status {out / 'ws'}")
    show.say(f"The report: {out / 'report.html'}")
    if not story.same_bytes:
        raise Stop(REFUTED)


# What happens


def happen(folder: Path) -> Story:
    """Fit a workspace, send a request for each kind of record, each on top of those before it, and replay the last."""
    import numpy as np

    from maxrr.data import load
    from maxrr.report.demo import Story, kinds_of
    from maxrr.unlearning import replay
    from maxrr.workspace import Workspace

    training, test = load("digits")
    training = training.in_order()
    title = f"fitting {len(training):,} digits"
    shutil.rmtree(folder, ignore_errors=True)  # of an earlier demo: `check_free` has looked
    workspace, fit_seconds = timed(
        lambda: Workspace.create(
            folder, model_of(training), lambda: training, source=SOURCE, test=test, progress=titled(title)
        )
    )
    with workspace:
        accuracy, recall = workspace.model.score(test), workspace.model.recall(test)
        core, influential, margins = shapers(workspace.model, training)
        retained, requests = training, []
        draw = np.random.default_rng(0).choice
        for kind, members in kinds_of(core, influential).items():
            rows = np.sort(draw(np.flatnonzero(members), EACH, replace=False))
            ids = training.ids[rows]
            retained = retained.without(ids)
            requests.append(answer(workspace, kind, rows, ids, retained, test))
        show.report("replaying in a fresh process", 0, 1)
        replayed = replay(requests[-1].receipt, workspace.model, training)
        show.report("replaying in a fresh process", 1, 1)
    return Story(
        "digits", training.inputs[:, 0], training.labels, training.class_names, core, influential, margins,
        len(test), accuracy, recall, fit_seconds, tuple(requests), replayed,
    )  # fmt: skip


def model_of(training: Dataset) -> MaxRR:
    """The demo's model, not fitted yet: the same records will give the same bytes."""
    from maxrr.core import HashCore
    from maxrr.nets import LeNet5
    from maxrr.unlearning import MaxRR

    core = HashCore(CORE, key="demo")  # no secret here: whoever runs the demo gets the same story
    return MaxRR(LeNet5(training.shape), core, epochs=EPOCHS, lr=LEARNING_RATE)


def shapers(model: MaxRR, training: Dataset) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.float64]]:
    """Which records are core and which influential, and each one's margin in the head where it is smallest."""
    import numpy as np

    core = np.isin(training.ids, model.core_.ids)
    signs = np.where(training.labels[:, None] == model.heads_.classes_, 1.0, -1.0)
    margins = (signs * model.decision_function(training)).min(axis=1)
    influential = np.isin(training.ids, model.ids_of("influential")) | (core & (margins < 1.0 + 1e-9))
    return core, influential, margins


def answer(
    workspace: Workspace, kind: str, rows: NDArray[np.int64], ids: NDArray[Any], retained: Dataset, test: Dataset
) -> RequestStory:
    """Plan a request, carry it out, and train another model, in memory, on the records that are left."""
    from maxrr.report.demo import RequestStory

    # Core records are retrained without, so that the bytes can be compared; the cheaper answer is shown beside it.
    before = workspace.model.model_hash_
    policies = ("retrain", "keep-extractor") if kind == "core" else ("retrain",)
    plans = tuple(workspace.model.plan(ids, core_policy=policy) for policy in policies)
    title = f"forgetting {len(ids)} {kind}"
    receipt, seconds = timed(lambda: workspace.model.execute(plans[0], progress=titled(title)))
    accuracy, hashes = workspace.model.score(test), (before, workspace.model.model_hash_)
    title = f"training again without {len(ids)} {kind}"
    again, again_seconds = timed(lambda: model_of(retained).fit(retained, progress=titled(title)))
    return RequestStory(kind, rows, plans, receipt, seconds, again_seconds, *hashes, again.model_hash_, accuracy)


def titled(title: str) -> Progress:
    """Return a progress that shows training alone, under a title."""

    def relay(what: str, done: int, total: int, **numbers: float) -> None:
        if what == "training":
            show.report(title, done, total, **numbers)

    return relay


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return the result of a call, and how many seconds it took."""
    start = perf_counter()
    return work(), perf_counter() - start


# What is kept of it


def check_free(out: Path) -> None:
    """Refuse, before the work, to write over files that are not from an earlier demo."""
    from maxrr.workspace import Workspace, WorkspaceError

    folder = out / "ws"
    outputs.check(out / "report.html", "the page of a demo", lambda path: outputs.is_page(path, "MaxRR on digits:"))
    if folder.exists():
        try:
            with Workspace.open(folder, read_only=True) as workspace:
                ours = workspace.sources[0] == SOURCE
        except WorkspaceError:
            ours = False
        if not ours:
            raise ValueError(f"{folder} is there already, and not of an earlier demo: choose another folder with --out")


def write(story: Story, out: Path) -> None:
    """Write the page. Whatever else is in the folder stays."""
    from maxrr.files import write_atomically
    from maxrr.report.demo import demo_page

    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / "report.html", demo_page(story).encode())


# What is said about it


def tell(story: Story) -> None:
    """Print the story."""
    from maxrr.report.words import duration, percent

    show.say(
        f"Fitted {len(story.labels):,} digits in {duration(story.fit_seconds)}; "
        f"accuracy on {story.test_records:,} others {percent(story.accuracy, 1)}, recall of the classes from "
        f"{percent(min(story.recall.values()))} to {percent(max(story.recall.values()))}."
    )
    tell_counts({kind: int(members.sum()) for kind, members in story.kinds.items()})
    numbers = ("forgetting", "again", "accuracy")
    answers = [
        (
            f"{len(request.rows)} {request.kind}",
            request.receipt.guarantee,
            duration(request.seconds),
            duration(request.retrained_seconds),
            percent(request.accuracy, 1),
            "yes" if request.same_bytes else show.Bad("no"),
        )
        for request in story.requests
    ]
    caption = "again: training a new model without them. same bytes: as that one."
    show.table(("request", "guarantee", *numbers, "same bytes"), answers, numbers=numbers, caption=caption)
    show.say(choice(story))
    show.say(ending(story))


def choice(story: Story) -> str:
    """Say why core records were not answered the cheap way."""
    retrained, cheap = story.requests[-1].plans
    return (
        f"Core records could also be answered with {cheap.guarantee}: the heads move, and the extractor keeps what it "
        f"learned from them. With {retrained.guarantee} the bytes can be compared."
    )


def ending(story: Story) -> str:
    """Say what was seen, whether it was hoped for or not."""
    last = f"A fresh process that trained once more says of the last: {story.replay.outcome}."
    differing = sum(not request.same_bytes for request in story.requests)
    if differing:
        return f"After {differing} of {len(story.requests)} requests the bytes are not those of training again. {last}"
    return f"After each request the model is, byte for byte, one that never saw the forgotten records. {last}"
