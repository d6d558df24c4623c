"""Classifiers that forget records cheaply and exactly, and show that they did."""

import typing

if typing.TYPE_CHECKING:
    from maxrr.svm import LinearSVM
    from maxrr.unlearning import MaxRR

__all__ = ["LinearSVM", "MaxRR", "__version__"]

__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> object:
    # Loaded when first asked for: `maxrr --help` imports this package and need not wait for scikit-learn.
    if name == "LinearSVM":
        from maxrr.svm import LinearSVM

        return LinearSVM
    if name == "MaxRR":
        from maxrr.unlearning import MaxRR

        return MaxRR
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
