"""`maxrr fit` and `maxrr refit`: a model of records, in a workspace."""

from __future__ import annotations

import os
import secrets
import tomllib
from dataclasses import asdict, replace
from math import prod
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import outcome, outputs, show, status
from maxrr.cli.options import NETWORK, TRAIN, Copies, Device, EngineName, Folder, Json, NetworkName, Source
from maxrr.cli.run import FAILED, USAGE, Stop
from maxrr.cli.workspaces import (
    importing_from_here,
    named_network,
    noted,
    open_folder,
    opened,
    sides,
    training_function,
)
from maxrr.errors import AlreadyForgotten

if TYPE_CHECKING:
    from maxrr.core import Core
    from maxrr.data import Dataset
    from maxrr.data.reading import Reading
    from maxrr.nets import Recipe
    from maxrr.nets.seeding import Network
    from maxrr.unlearning import MaxRR
    from maxrr.workspace import Commit, Status, Workspace

# What is said to somebody who interrupts.
UNDONE = "nothing was fitted yet; the same command starts again, and keeps the runs that it has ranked"
RUNS = 10
HASHED, FROZEN = "hash:0.33", "frozen"
LARGEST_FILE = 1 << 20  # bytes of a key or a recipe: whatever is larger is another file
MOST_NAMES = 12  # of columns in one line


def fit(
    source: Annotated[
        str, Argument(metavar="SOURCE", help="A known name, a file or a folder; see `maxrr data prepare`.")
    ],
    out: Annotated[Path, Option(help="A new or empty folder, or a workspace.")],
    core: Annotated[
        str | None,
        Option(
            help="What the extractor learns from. hash:0.33: that share, by a keyed hash; hash:0.33:FILE: with "
            "that key. 20000: so many that are often influential. full: all. frozen: none, for embeddings."
        ),
    ] = None,
    shards: Annotated[int, Option(min=1, help="Extractors that share the core.")] = 1,
    network: NetworkName = None,
    train: Annotated[
        str | None, Option(envvar=TRAIN, show_envvar=False, help="A training function of your own, named likewise.")
    ] = None,
    recipe: Annotated[Path | None, Option(help="How the extractor is trained: a .toml file.")] = None,
    epochs: Annotated[int | None, Option(help="Epochs of training; as the recipe says, or 18.")] = None,
    C: Annotated[float, Option(help="The weight of the SVM's losses.")] = 1.0,
    class_weight: Annotated[list[str] | None, Option(help="How much a class counts: NAME=NUMBER; repeatable.")] = None,
    seed: Annotated[int, Option(help="Decides everything drawn at random.")] = 0,
    start: Annotated[
        str, Option(help="Where training starts: seed, given (weights of --network), given:NAME.")
    ] = "seed",
    device: Device = None,
    threads: Annotated[int, Option(help="Of the CPU; the bytes depend on it.")] = 1,
    engine: EngineName = None,
    skip_forgotten: Annotated[bool, Option("--skip-forgotten", help="Leave out what was forgotten here.")] = False,
    allow_copies: Copies = None,
    json: Json = False,
) -> None:
    """Fit a model, and keep it in a workspace, without the raw records.

    If a ranking is interrupted, the same command goes on with it. Fitting again replaces the model, and what was
    forgotten stays forgotten.

    Examples:

        maxrr fit digits --out ws/
        maxrr fit photos/ --network mynets:resnet --epochs 30 --device cuda --out ws/
    """
    from maxrr.data import load
    from maxrr.data.reading import Reading, reading_of
    from maxrr.evidence.public_keys import find_key
    from maxrr.nets.networks import NoNetwork
    from maxrr.parallel.ray_cluster import engine_from
    from maxrr.unlearning import MaxRR
    from maxrr.workspace import Workspace

    outputs.check_apart(out)
    core_of(core or HASHED, None, shards)  # says what is wrong with the options before the work
    way = recipe_of(recipe, epochs)
    check_given(start, network)
    if train is not None and (recipe is not None or epochs is not None):
        raise Stop(USAGE, f"--train ({TRAIN}) says how the extractor is trained: leave out --recipe and --epochs")
    weights = class_weights(class_weight or [])
    signing_key = find_key()
    started = perf_counter()
    with outcome.told() as ending:
        with show.progress(), importing_from_here(network, train):
            reading = reading_of(source) or Reading()
            notes = noted(source, reading)
            training, test = load(**notes, progress=show.report)
            tell_columns(training, json)
            chosen = core_for(core, are_embeddings(source, reading, training), network)
            core_of(chosen, None, shards)
            if not json:
                show.say(what_is_learned(chosen, network))
            made = NoNetwork() if chosen == FROZEN and network is None else network_for(training, network)

            def model(before: Core | None) -> MaxRR:
                return MaxRR(
                    made, core_of(chosen, before, shards), C=C, seed=seed, start=start,
                    train=way if train is None else training_function(train), device=device, threads=threads,
                    class_weight=weights, engine=engine_from(engine),
                )  # fmt: skip

            if outcome.state_of(out):
                workspace = open_folder(out, newest=True, signing_key=signing_key)
            else:
                with ending.work(out, UNDONE, fitted):
                    workspace = Workspace.create(
                        out, model(None), training, source=notes, signing_key=signing_key, test=test,
                        progress=show.report,
                    )  # fmt: skip
            with workspace:
                if not ending.done:
                    kind = workspace.model.kind_
                    training, test = kind.conform(training), kind.conform(test)
                    training = allowed(workspace, training, skip_forgotten, allow_copies)
                    again, dropped = model(workspace.model.core), added_and_not_in(training, workspace)
                    with ending.work(out, UNDONE, fitted):
                        workspace.model.set_params(**again.get_params(deep=False)).fit(
                            training, allow_copies=allow_copies, source=notes, test=test, progress=show.report
                        )
                    if dropped:
                        show.warning(dropped)
                ending.unfinished = workspace.unfinished
                scores = status.scores_of(workspace.model, test)
                present = workspace.status()
        tell(present, scores, perf_counter() - started, json)


def refit(workspace: Folder, source: Source = None, json: Json = False) -> None:
    """Fit again on all records that the workspace has, those that were added among them.

    The core is chosen anew by the same rule, and the extractor trained on it, as `maxrr fit` was told to. Records that
    were forgotten are left out, though the source may still have them. Tombstones and receipts stay.

    Examples:

        maxrr refit ws/
        maxrr refit ws/ --source /backup/first.csv --source /backup/added.csv
    """
    with outcome.told() as ending:
        with opened(workspace, records=lambda: training) as found, show.progress():
            found.check_code(training=True)
            started = perf_counter()
            with ending.work(workspace, UNDONE, fitted):
                training, test = sides(found, source)
                found.model.refit(progress=show.report)
            ending.unfinished = found.unfinished
            scores = status.scores_of(found.model, test)
            present = found.status()
        tell(present, scores, perf_counter() - started, json)


# What options and records say of a model


def are_embeddings(source: str, reading: Reading, records: Dataset) -> bool:
    """Whether records are features already: an .npy file, or a table of nothing but lists of numbers."""
    from maxrr.data.encoding import columns_of

    rules = [reading.encoding.rules.get(name) for name in columns_of(reading.encoding, records.columns or ())]
    only_lists = bool(rules) and all(getattr(rule, "length", None) is not None for rule in rules)
    return only_lists or Path(source).suffix == ".npy"


def core_for(core: str | None, embeddings: bool, network: str | None) -> str:
    """Return the core that was named, or the usual one: none for embeddings without a network."""
    if embeddings and core in (None, FROZEN) and network is not None and network == os.environ.get(NETWORK):
        raise Stop(USAGE, f"{NETWORK} is set, and embeddings need no network: unset it, or name one with --network")
    return core or (FROZEN if embeddings and network is None else HASHED)


def what_is_learned(core: str, network: str | None) -> str:
    """Say whether a network is trained, and why."""
    if core == FROZEN and network is None:
        return "No network: the records are embeddings, which the heads take as they are (--core hash:0.33 trains one)."
    if core == FROZEN:
        return f"No training but that of the heads: {network} gives the features, as it is (--core frozen)."
    what = "your network" if network is not None else "a network of ours, because the records are no embeddings"
    return f"The heads take the features of {what}; it is trained on the core (--core {core})."


def check_given(start: str, network: str | None) -> None:
    """Refuse a start from given weights where nothing gives any: those that we draw are not to be had again."""
    if start != "seed" and network is None:
        raise Stop(USAGE, f"--start {start} is for a network that comes with weights: name it with --network")


def recipe_of(file: Path | None, epochs: int | None) -> Recipe:
    """Read the recipe from a file, and set the epochs that an option names."""
    from maxrr.files import read_regular
    from maxrr.files.strict_json import from_plain
    from maxrr.nets import Recipe

    found = Recipe()
    if file is not None:
        try:
            said = tomllib.loads(read_regular(file, LARGEST_FILE).decode())
            if isinstance(said.get("augment"), str):  # one word, as in Python
                said["augment"] = [said["augment"]]
            found = from_plain(Recipe, said)
        except ValueError as error:
            raise Stop(FAILED, f"{file}: does not say how an extractor is trained: {error}") from None
    return found if epochs is None else replace(found, epochs=epochs)


def class_weights(given: list[str]) -> dict[str, float] | None:
    """Read weights by class from the options."""
    found = {}
    for each in given:
        name, _, number = each.rpartition("=")
        try:
            found[name] = float(number)
        except ValueError:
            raise Stop(USAGE, f"--class-weight is NAME=NUMBER, such as ill=50, not {each!r}") from None
    return found or None


def network_for(records: Dataset, maker: str | None) -> Network:
    """Return the network that was named, or one that suits the records."""
    from maxrr.data.fields import shapes
    from maxrr.nets import MLP, LeNet5
    from maxrr.nets.networks import SMALLEST

    shape, classes = records.shape, len(records.class_names)
    if maker is not None:
        return named_network(maker, shapes(records.inputs.dtype, shape), classes)
    if not shape:
        raise Stop(USAGE, "records with several inputs need a network of your own: name it with --network")
    return LeNet5(shape, classes) if len(shape) == 3 and min(shape[1:]) >= SMALLEST else MLP(prod(shape), classes)


def core_of(word: str, before: Core | None, shards: int) -> Core:
    """Make the core from its name on the command line: rule, size, and a file with the key or the number of runs.

    A key that is not given is the one of `before`, or drawn: the same records are core as long as it is the same.
    """
    from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
    from maxrr.files import read_regular

    kind, _, rest = word.partition(":")
    if kind.replace(".", "", 1).isdecimal():  # 20000 or 0.3
        kind, rest = ("hash" if "." in kind else "middle"), word
    size, _, more = rest.partition(":")
    if kind in ("middle", "frequency") and size.isdecimal() and (more or "1").isdecimal():
        ranked = MiddleCore if kind == "middle" else FrequencyCore
        return ranked(int(size), int(more or RUNS), shards=shards)
    if kind == "hash" and size.replace(".", "", 1).isdecimal():
        key: bytes | str = before.key if isinstance(before, HashCore) else secrets.token_bytes(32)
        if more:
            key = read_regular(Path(more), LARGEST_FILE).rstrip(b"\r\n")
        return HashCore(float(size), key, shards=shards)
    if word == "full":
        return FullCore(shards)
    if word == FROZEN and shards > 1:
        raise Stop(USAGE, "--shards divides the core that extractors are trained on, and with --core frozen none is")
    if word == FROZEN:
        return Frozen()
    raise Stop(
        USAGE,
        "--core is hash:FRACTION or hash:FRACTION:KEYFILE, a NUMBER, middle:NUMBER or frequency:NUMBER, with :RUNS "
        f"behind it if wanted, full or frozen, not {word!r}",
    )


# What a fit may take in, and what came of it


def allowed(workspace: Workspace, records: Dataset, skip: bool, copies: str | None) -> Dataset:
    """Return the records that were not forgotten here, if forgotten ones are to be skipped; refuse them otherwise."""
    gone = workspace.model.returning(records, copies=copies is None)
    if len(gone) and not skip:
        raise AlreadyForgotten(
            f"{len(gone):,} of the records were forgotten by this workspace, by their ids or, under others, by their "
            "values, and must not come back: leave them out with --skip-forgotten"
            + ("" if copies else ". If they only have the same values, and are other people's, say so: --allow-copies")
        )
    if len(gone):
        show.warning(f"{len(gone):,} of the {len(records):,} training records were forgotten here, and are left out")
    return records.without(gone)


def added_and_not_in(training: Dataset, workspace: Workspace) -> str:
    """Say which records a new fit loses: those that came by `add` and are not in the new data."""
    import numpy as np

    from maxrr.report.words import count

    gone = len(np.setdiff1d(workspace.model.ids_of(), training.ids))
    if not gone or len(workspace.sources) == 1:
        return ""
    names = dict.fromkeys(each.get("source", "a source without a name") for each in workspace.sources[1:])
    return (
        f"{count(gone, 'record')} {'is' if gone == 1 else 'are'} no longer in the workspace, for fit takes the given "
        f"source alone. What was added came from {', '.join(names)}: bring it again with maxrr add, and then "
        "use maxrr refit, which fits on everything that is here"
    )


def tell_columns(table: Dataset, json: bool) -> None:
    """Print which columns of a table became inputs, and warn of doubtful ones."""
    from maxrr.data.doubts import doubts

    names = table.columns
    if names is None:
        return
    if not json:
        more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
        show.say(f"Inputs: {', '.join(map(repr, names[:MOST_NAMES]))}{more}.")
    for said in doubts(table):
        show.warning(said)


def fitted(folder: Path, now: Commit) -> str:
    """Say that the model was fitted, where the answer itself could not be printed."""
    return f"the model was fitted, and is in {show.near(folder)}"


def tell(present: Status, scores: dict[str, Any], seconds: float, json: bool) -> None:
    """Print what came of a fit, and what to do next."""
    from maxrr.report.words import count, duration

    if json:
        show.json(asdict(present) | {"seconds": seconds, **scores})
        return
    show.say(f"Fitted {count(present.records, 'record')} in {duration(seconds)}.")
    status.tell_scores(scores)
    kinds = {"core": present.core, "influential": present.influential, "free": present.free}
    status.tell_counts(kinds, present.people)
    folder = show.near(present.folder)
    show.say(f"The workspace is {folder}. Next: maxrr plan {folder} --ids …")
