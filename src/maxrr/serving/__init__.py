"""Copies of a model that hold no records, for programs that only predict."""

import typing

from maxrr import lazily

__all__ = ["Exported", "Revocations", "Served", "export", "export_onnx", "load", "snapshot"]

if typing.TYPE_CHECKING:
    from maxrr.serving.exported import Exported
    from maxrr.serving.exporting import export
    from maxrr.serving.onnx import export_onnx
    from maxrr.serving.served import Served, load
    from maxrr.serving.snapshots import snapshot
    from maxrr.serving.watching import Revocations
else:  # PyTorch is waited for only by those who export
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "exported": ("Exported",),
        "exporting": ("export",),
        "onnx": ("export_onnx",),
        "served": ("Served", "load"),
        "snapshots": ("snapshot",),
        "watching": ("Revocations",),
    })  # fmt: skip
