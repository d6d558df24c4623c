"""Classifiers that forget records cheaply and exactly, and show that they did."""

import typing

if typing.TYPE_CHECKING:
    from maxrr.svm import LinearSVM

__all__ = ["LinearSVM", "__version__"]

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> object:
    # Loaded when first asked for: `maxrr --help` imports this package and need not wait for scikit-learn.
    if name == "LinearSVM":
        from maxrr.svm import LinearSVM

        return LinearSVM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
