"""Copies of a model that hold no records, for programs that only predict."""

import typing

from maxrr import lazily

__all__ = ["Exported", "Revocations", "Served", "export", "export_onnx", "load", "snapshot"]

if typing.TYPE_CHECKING:
    from maxrr.serving.exports import export
    from maxrr.serving.onnx import export_onnx
    from maxrr.serving.origin import Exported
    from maxrr.serving.revocations import Revocations
    from maxrr.serving.served import Served, load
    from maxrr.serving.snapshots import snapshot
else:  # PyTorch is waited for only by those who export
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "origin": ("Exported",),
        "exports": ("export",),
        "onnx": ("export_onnx",),
        "served": ("Served", "load"),
        "snapshots": ("snapshot",),
        "revocations": ("Revocations",),
    })  # fmt: skip
