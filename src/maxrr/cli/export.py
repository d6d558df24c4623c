"""`maxrr export`: the model as one file for programs without Python."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument

from maxrr.cli import show
from maxrr.cli.opening import check_network, check_outside, insides, opened
from maxrr.cli.options import WAIT, Folder, Json, Network, Source, Wait
from maxrr.cli.sources import raw_records
from maxrr.cli.status import size


def run(
    workspace: Folder,
    file: Annotated[Path, Argument(metavar="FILE", help="The ONNX file to write.")],
    source: Source = None,
    network: Network = None,
    wait: Wait = WAIT,
    json: Json = False,
) -> None:
    """Write the model as an ONNX file: records in; scores, probabilities and classes out.

    The file is compared with the model before it is written. It is a copy, which later requests do not reach: export
    again after `maxrr unlearn`. Needs the packages of the extra called onnx.

    Examples:

        maxrr export ws/ model.onnx
    """
    from maxrr.unlearning import export_onnx

    with opened(workspace, wait, network=network, read_only=True) as found:
        check_network(found)
        check_outside(file, found)
        if insides(found).on_influential:  # probabilities are of all retained records
            with show.progress() as report:
                model = found.model_with(raw_records(found, source, report))
        else:
            model = found.model
        written = export_onnx(model, file)
    if json:
        show.json(asdict(written) | {"path": str(written.path)})
        return
    show.say(
        f"Wrote {written.path}, {size(written.bytes)}: model {written.model_hash[:12]}…, ONNX opset {written.opset}. "
        f"On {written.compared:,} records its probabilities are the model's to {written.probabilities_difference:.0e}."
    )
