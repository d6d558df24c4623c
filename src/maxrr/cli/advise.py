"""`maxrr advise`: which core to choose, tried on a part of the records."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.fit import are_embeddings, check_given, network_for, recipe_of
from maxrr.cli.options import Device, Json, NetworkName
from maxrr.cli.run import FAILED, USAGE, Stop
from maxrr.cli.workspaces import importing_from_here


def advise(
    source: Annotated[str, Argument(metavar="SOURCE", help="The records, as `maxrr fit` takes them.")],
    network: NetworkName = None,
    start: Annotated[str, Option(help="Where training starts, as in `maxrr fit`: seed, or given.")] = "seed",
    recipe: Annotated[Path | None, Option(help="How the extractor is trained: a .toml file.")] = None,
    epochs: Annotated[int | None, Option(help="Epochs of training, as the recipe says if not given: 18.")] = None,
    C: Annotated[float, Option(help="The weight of the SVM's losses.")] = 1.0,
    shares: Annotated[str, Option(help="Sizes of cores to try, separated by commas.")] = "0,0.05,0.1,0.2",
    records: Annotated[int, Option(min=50, help="About how many records to look at.")] = 5_000,
    device: Device = None,
    json: Json = False,
) -> None:
    """Try small cores on a part of the records, and say which to choose.

    A larger core makes better features, and more requests slow. Accuracy is measured on records that are set aside, and
    the seconds of a person's request are worked out for all records. 0 is the network as it was given, without a core.

    Examples:

        maxrr advise photos/ --network mynets:resnet --start given --recipe tune.toml
        maxrr advise visits.csv --shares 0.1,0.3,0.6 --epochs 5
    """
    from maxrr.core import Frozen
    from maxrr.data import load
    from maxrr.data.reading import Reading, reading_of
    from maxrr.report.words import count, duration, percent
    from maxrr.unlearning import MaxRR
    from maxrr.unlearning import advise as tried

    try:
        sizes = [float(share) for share in shares.split(",")]
    except ValueError:
        raise Stop(USAGE, f"--shares are numbers from 0 to 1, separated by commas, not {shares!r}") from None
    check_given(start, network)
    with show.progress(), importing_from_here(network, None):
        training, _ = load(source, progress=show.report)
        if network is None and are_embeddings(source, reading_of(source) or Reading(), training):
            raise Stop(FAILED, f"{source} has features: no network is trained on them, and every request is exact")
        model = MaxRR(
            network_for(training, network), Frozen(), C=C, start=start, train=recipe_of(recipe, epochs), device=device
        )
        advice = tried(model, training, shares=sizes, records=records, progress=show.report)
    if json:
        show.json(asdict(advice) | {"words": advice.words})
        return
    rows = [
        (
            f"{trial.share:g}", f"{percent(trial.accuracy, 1)} ({percent(trial.low, 1)} to {percent(trial.high, 1)})",
            percent(trial.influential), duration(trial.seconds), duration(trial.retrain) if trial.share else "-",
        )
        for trial in advice.trials
    ]  # fmt: skip
    show.table(("core", "accuracy", "influential", "a request", "of core records"), rows)
    show.say(
        f"Looked at {count(advice.sample, 'record')}, {advice.tested:,} of them set aside; seconds are worked out for "
        f"all {len(training):,}. With all of them accuracy will be higher."
    )
    show.say(f"Choose {advice.words}.")
