"""Copies of a model that hold no records, for programs that only predict."""

import typing

from maxrr import lazily

__all__ = ["Exported", "Revocations", "Served", "export", "export_onnx", "load"]

if typing.TYPE_CHECKING:
    from maxrr.serving.exports import Exported, export, export_onnx
    from maxrr.serving.revocations import Revocations
    from maxrr.serving.served import Served, load
else:  # PyTorch is waited for only by those who export
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "exports": ("Exported", "export", "export_onnx"),
        "served": ("Served", "load"),
        "revocations": ("Revocations",),
    })  # fmt: skip
