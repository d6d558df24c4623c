"""`maxrr export` and `maxrr revocations`: the model for programs that only predict, and which copies are revoked."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, BadParameter, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import Folder, Json
from maxrr.cli.workspaces import opened
from maxrr.plain_text import count, size


def export(
    workspace: Folder,
    place: Annotated[
        Path,
        Argument(
            metavar="PLACE",
            help="A file, such as model.onnx, or a folder, which maxrr.serving.load reads: new, empty, or an earlier "
            "export, which is replaced.",
        ),
    ],
    json: Json = False,
) -> None:
    """Write the model for programs that only predict: as an ONNX file, or as a folder. No record is in it.

    The export is compared with the model before it is written. It is a copy, which later requests do not reach: the
    workspace notes it, and `maxrr status` says when it is out of date. Needs the packages of the extra called onnx,
    unless the records are embeddings, which NumPy alone serves from a folder.

    Examples:

        maxrr export ws/ model.onnx
        maxrr export ws/ model/
    """
    from maxrr import serving

    in_file = place.suffix == ".onnx"
    if place.suffix and not in_file and not place.is_dir():
        raise BadParameter(f"{place} is neither an ONNX file, such as {place.with_suffix('.onnx')}, nor a folder")
    if in_file:
        outputs.check(place, "an ONNX file that maxrr wrote", lambda file: b"maxrr.model_hash" in file.read_bytes())
    outputs.check_apart(place)
    with opened(workspace, read_only=True, newest=True) as found:
        found.check_code()
        written = serving.export_onnx(found, place) if in_file else serving.export(found, place)
    if json:
        show.json(asdict(written) | {"path": str(written.path)})
        return
    show.say(
        f"Wrote {written.path}, {size(written.bytes)}, computed by {written.form}: model {written.model_hash[:12]}…. "
        f"Its probabilities are the model's to {written.difference:.0e}, on records that were made up."
    )


def revocations(
    workspace: Folder,
    out: Annotated[Path | None, Option(help="Write the list to this file. Only an earlier list is replaced.")] = None,
) -> None:
    """List the exports that still know records which were forgotten or replaced since, for serving processes.

    The list is JSON with ids that were drawn at random. Publish it where the servers look (maxrr.serving.load takes a
    file or an address), after every request, once they have a newer export: from then on older ones refuse to answer.

    Examples:

        maxrr revocations ws/ --out /srv/revoked.json
    """
    from maxrr.files import read_regular, write_atomically
    from maxrr.serving import Revocations

    if out is not None:
        outputs.check(out, "a list of revocations", lambda file: Revocations.from_json(read_regular(file).decode()))
    found = Revocations.of(workspace)
    if out is None:
        show.json_text(found.to_json())
        return
    write_atomically(out, found.to_json().encode())
    show.say(f"Wrote {out}: {count(len(found.revoked), 'export')} must not be used any more.")
