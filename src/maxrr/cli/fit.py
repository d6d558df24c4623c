"""`maxrr fit`: a model of records, in a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from maxrr.cli import outputs, show, status
from maxrr.cli.models import FROZEN, HASHED, class_weights, core_of, network_for
from maxrr.cli.options import (
    NETWORK,
    TRAIN,
    WAIT,
    Copies,
    Drop,
    EncodingFile,
    EngineName,
    FromWhat,
    Id,
    Json,
    Label,
    Meta,
    SigningKeyFile,
    SplitBy,
    Subject,
    Wait,
    Weight,
)
from maxrr.cli.outcome import state_of, told
from maxrr.cli.run import REFUSED, USAGE, Stop
from maxrr.cli.workspaces import importing_from_here, reading, tell_columns, to_keep, training_function

if TYPE_CHECKING:
    from maxrr.core import Core
    from maxrr.data import Dataset
    from maxrr.workspace import Commit, Status, Workspace

# What is said to somebody who interrupts.
UNDONE = "nothing was fitted yet; the same command starts again, and keeps the runs that it has ranked"


def fit(
    context: Context,
    source: Annotated[
        str,
        Argument(
            metavar="SOURCE",
            help="What to learn from: a data set known by name, an .npz, .csv or .parquet file, a folder of images, or "
            "an .npy file of embeddings with --meta.",
        ),
    ],
    out: Annotated[
        Path,
        Option(help="The folder to keep the workspace in: a new or empty one, or a workspace, which is fitted again."),
    ],
    core: Annotated[
        str | None,
        Option(
            help="Which records the extractor is trained on. hash:0.33: about that share, by a keyed hash of the "
            "id; so if not given. A number, such as 20000, or middle:20000: those influential in about half of --runs "
            "runs. frequency:20000: those most often influential, as in the paper. full: all. frozen: none, and the "
            "network of --network is used as it is, or no network at all where the records are embeddings; so for an "
            ".npy file if not given. With more core records the extractor learns more, and more requests concern it."
        ),
    ] = None,
    runs: Annotated[
        int | None,
        Option(
            help="How many training runs rank the records, where --core is a number, middle:NUMBER or "
            "frequency:NUMBER; 10 if not given. More make the ranking steadier and take longer in proportion."
        ),
    ] = None,
    shards: Annotated[
        int,
        Option(
            min=1,
            help="Into how many shards the core is divided, each with an extractor of its own. To forget a core "
            "record exactly then trains one of them again, not all; the model is a little less accurate, and predicts "
            "more slowly.",
        ),
    ] = 1,
    core_key_file: Annotated[
        Path | None,
        Option(
            help="A file with the key of --core hash:…. Give it to choose the same core in another workspace; if "
            "not given, a key is drawn and kept in the workspace."
        ),
    ] = None,
    network: Annotated[
        str | None,
        Option(
            envvar=NETWORK,
            help="A network of your own, as package.module:function; the function gets the shape of a record and "
            "the number of classes if it takes arguments. If not given, LeNet-5 for images and an MLP for "
            "tables.",
        ),
    ] = None,
    C: Annotated[
        float,
        Option(
            help="The weight of the SVM's losses, above 0. Raise it to follow the records more closely, lower it "
            "if labels are noisy."
        ),
    ] = 1.0,
    class_weight: Annotated[
        list[str] | None,
        Option(
            help="How much the records of a class count in the heads, as NAME=NUMBER; may be repeated, 1 for others. "
            "Raise it for a rare class that is found too seldom."
        ),
    ] = None,
    seed: Annotated[
        int,
        Option(
            help="A whole number that decides everything drawn at random: the same one gives the same model. "
            "Change it to see how much chance matters."
        ),
    ] = 0,
    epochs: Annotated[
        int,
        Option(
            help="How often the training of the extractor goes through the core. Raise it if the accuracy is low "
            "or nearly every record is influential; the time grows in proportion."
        ),
    ] = 18,
    batch_size: Annotated[
        int,
        Option(
            help="How many records each step of the training takes. Smaller batches mean more steps, and more "
            "time, for each epoch."
        ),
    ] = 64,
    lr: Annotated[
        float,
        Option(
            help="How far each step of the training goes (the learning rate). Lower it if the loss jumps, raise "
            "it if the loss hardly falls."
        ),
    ] = 0.001,
    optimiser: Annotated[
        str,
        Option(help="What moves the weights in training: adam, adamw, or sgd with a momentum of 0.9."),
    ] = "adam",
    weight_decay: Annotated[
        float,
        Option(help="How strongly weights are drawn to zero in training, 0 or more. Raise it against overfitting."),
    ] = 0.0,
    schedule: Annotated[
        str,
        Option(help="How the learning rate changes in training: constant, or down to zero as cosine or linear."),
    ] = "constant",
    label_smoothing: Annotated[
        float,
        Option(help="The share of each label that is spread over all classes in training, from 0 to below 1."),
    ] = 0.0,
    augment: Annotated[
        list[str] | None,
        Option(
            help="How images are varied in training: flip (left to right), shift:2 (by up to 2 pixels); may be "
            "repeated. If not given, they are taken as they are."
        ),
    ] = None,
    train: Annotated[
        str | None,
        Option(
            envvar=TRAIN,
            help="A training function of your own, as package.module:function, in the place of the options for "
            "training. It gets a network, the core records, the seed and the device, and returns the network trained.",
        ),
    ] = None,
    device: Annotated[
        str | None,
        Option(help="Where to train: cpu, cuda, or cuda:1 for the second GPU. If not given, the best there is."),
    ] = None,
    threads: Annotated[
        int,
        Option(
            help="How many threads of the CPU train the extractor. More are faster; the model's bytes depend on "
            "the number, so keep it where they are to be compared."
        ),
    ] = 1,
    engine: EngineName = None,
    label: Label = "label",
    id: Id = "id",
    subject: Subject = "subject",
    weight: Weight = None,
    drop: Drop = None,
    encoding: EncodingFile = None,
    ids_from: FromWhat = None,
    meta: Meta = None,
    split_by: Annotated[
        SplitBy | None,
        Option(
            help="What decides which records are for testing, where the source does not say it. subject: the person, "
            "so that all records about one are on one side. id: each record by itself, also where people are named. "
            "If not given, as the workspace did it before; subject in a new one."
        ),
    ] = None,
    skip_forgotten: Annotated[
        bool,
        Option(
            "--skip-forgotten",
            help="Leave out records that this workspace has forgotten. Without it, data that still has them is "
            "refused.",
        ),
    ] = False,
    allow_copies: Copies = None,
    key: SigningKeyFile = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Fit a model, and keep it in a workspace.

    An extractor is trained on the core, and the heads fitted on all training records. The workspace keeps the records'
    features, the model and where the records came from; not the raw records. If a ranking is interrupted, the same
    command goes on with it. Fitting again replaces the model, and what was forgotten stays forgotten.

    Examples:

        maxrr fit digits --out ws/
        maxrr fit fashion-mnist --core 20000 --runs 10 --out ws/
        maxrr fit visits.csv --label diagnosis --id visit --subject person --out ws/
        maxrr fit people.parquet --label left --id row --subject person --encoding encoding.json --out ws/
        maxrr fit embeddings.npy --meta people.parquet --label topic --subject author --out ws/
        maxrr fit photos/ --network mynets:resnet --epochs 30 --device cuda --out ws/
        maxrr fit photos/ --network mynets:resnet --train mytraining:train --out ws/
    """
    from maxrr.data import load
    from maxrr.evidence.public_keys import find_key
    from maxrr.nets import NoNetwork, Recipe
    from maxrr.parallel.ray_cluster import engine_from
    from maxrr.unlearning import MaxRR
    from maxrr.workspace import Workspace

    if meta is not None and core in (None, FROZEN) and is_from_environment(context, "network"):
        raise Stop(
            USAGE,
            f"{NETWORK} is set, and embeddings need no network: unset it, or, if they are to go through {network}, "
            "name that with --network",
        )
    outputs.check_apart(out)
    core = core or (HASHED if network is not None or meta is None else FROZEN)
    core_of(core, runs, core_key_file, None, shards)  # says what is wrong with the options before the work
    recipe = Recipe(
        epochs, batch_size, lr, optimiser, weight_decay=weight_decay, schedule=schedule,
        label_smoothing=label_smoothing, augment=tuple(augment or ()),
    )  # fmt: skip
    if train is not None and recipe != Recipe():
        who = f"{TRAIN} is set, and" if is_from_environment(context, "train") else "--train"
        raise Stop(USAGE, f"{who} says how the extractor is trained: leave out the other options for training")
    weights = class_weights(class_weight or [])
    signing_key = find_key(key)
    started = perf_counter()
    with told() as outcome:
        with show.progress() as progress, importing_from_here(network, train), interruptible():
            split = split_before(out) if split_by is None else str(split_by)
            options = reading(label, id, subject, weight, encoding, ids_from, split, meta, drop)
            training, test = load(source, **options, progress=progress)
            tell_columns(training, json)
            made = NoNetwork() if core == FROZEN and network is None else network_for(training, network)
            notes = to_keep(source, options, training, test)
            way = recipe if train is None else training_function(train)

            def model(before: Core | None) -> MaxRR:
                chosen = core_of(core, runs, core_key_file, before, shards)
                return MaxRR(
                    made, chosen, C=C, seed=seed, train=way, device=device, threads=threads, class_weight=weights,
                    engine=engine_from(engine),
                )  # fmt: skip

            if state_of(out):
                workspace = Workspace.open(out, signing_key=signing_key, wait=wait)
            else:
                with outcome.work(out, UNDONE, fitted):
                    workspace = Workspace.create(
                        out, model(None), training, source=notes, signing_key=signing_key, test=test, progress=progress
                    )
            with workspace:
                if not outcome.done:
                    workspace.check_newest()
                    kind = workspace.model.kind_
                    training, test = kind.conform(training), kind.conform(test)
                    training = allowed(workspace, training, skip_forgotten, allow_copies)
                    again, dropped = model(workspace.model.core), added_and_not_in(training, workspace)
                    with outcome.work(out, UNDONE, fitted):
                        workspace.model.set_params(**again.get_params(deep=False)).fit(
                            training, allow_copies=allow_copies, source=notes, test=test, progress=progress
                        )
                    if dropped:
                        show.warning(dropped)
                outcome.unfinished = workspace.unfinished
                accuracy = workspace.model.score(test) if len(test) else None
                present = workspace.status()
        seconds = perf_counter() - started
        answer(present, len(test), accuracy, seconds, json)


def is_from_environment(context: Context, option: str) -> bool:
    """Whether an option was not given, but a variable of the environment in its place."""
    found = context.get_parameter_source(option)
    return found is not None and found.name == "ENVIRONMENT"


def split_before(folder: Path) -> str:
    """What decided which records are for testing when the workspace was last fitted; the person in a new one."""
    from maxrr.workspace import Commit

    last = Commit.last(folder)
    return "subject" if last is None or not last.source else last.source.get("split_by", "id")


def fitted(folder: Path, now: Commit) -> str:
    """That the model was fitted, for somebody whom the answer does not reach."""
    return f"the model was fitted, and is in {show.near(folder)}"


@contextmanager
def interruptible() -> Iterator[None]:
    """Whoever interrupts before the work, as while the records are read, is told that there is nothing yet."""
    try:
        yield
    except KeyboardInterrupt as interrupt:
        raise KeyboardInterrupt(str(interrupt) or UNDONE) from None


def allowed(workspace: Workspace, records: Dataset, skip: bool, copies: str | None) -> Dataset:
    """The records without those that were forgotten here: left out if the user says so, refused otherwise."""
    gone = workspace.model.returning(records, copies=copies is None)
    if len(gone) and not skip:
        raise Stop(
            REFUSED,
            f"{len(gone):,} of the records were forgotten by this workspace, by their ids or, under others, by their "
            "values, and must not come back: leave them out with --skip-forgotten"
            + ("" if copies else ". If they only have the same values, and are other people's, say so: --allow-copies"),
        )
    if len(gone):
        show.warning(f"{len(gone):,} of the {len(records):,} training records were forgotten here, and are left out")
    return records.without(gone)


def added_and_not_in(training: Dataset, workspace: Workspace) -> str:
    """That records will be gone which are here and not in the new data, where some came from elsewhere by `add`."""
    import numpy as np

    from maxrr.report.words import count

    gone = len(np.setdiff1d(workspace.model.ids_of(), training.ids))
    if not gone or len(workspace.sources) == 1:
        return ""
    names = dict.fromkeys(each.get("name", "a source without a name") for each in workspace.sources[1:])
    return (
        f"{count(gone, 'record')} {'is' if gone == 1 else 'are'} no longer in the workspace, for fit takes the given "
        f"source alone. What was added came from {', '.join(names)}: bring it again with maxrr add, and then "
        "use maxrr refit, which fits on everything that is here"
    )


def answer(present: Status, tested: int, accuracy: float | None, seconds: float, json: bool) -> None:
    """What came of a fit, for programs or for people."""
    if json:
        show.json(asdict(present) | {"test_records": tested, "accuracy": accuracy, "seconds": seconds})
    else:
        tell(present, tested, accuracy, seconds)


def tell(present: Status, tested: int, accuracy: float | None, seconds: float) -> None:
    """What came of it, and what to do next."""
    from maxrr.report.words import count, duration, percent

    said = f"Fitted {count(present.records, 'record')} in {duration(seconds)}"
    if accuracy is not None:
        said += f"; accuracy on {count(tested, 'other')} {percent(accuracy, 1)}"
    show.say(f"{said}.")
    status.tell_kinds(present)
    folder = show.near(present.folder)
    show.say(f"The workspace is {folder}. Next: maxrr plan {folder} --ids …")
