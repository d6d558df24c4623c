"""Copies of a model that hold no records, for programs that only predict."""

import typing

from maxrr import lazily

__all__ = ["Exported", "export_onnx"]

if typing.TYPE_CHECKING:
    from maxrr.serving.onnx import Exported, export_onnx
else:  # PyTorch is waited for only by those who export
    __getattr__, __dir__ = lazily.names_from(__name__, {"onnx": ("Exported", "export_onnx")})
