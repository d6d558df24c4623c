"""Classifiers that forget records cheaply and exactly, and show that they did."""

import typing

from maxrr import lazily

__all__ = ["LinearSVM", "MaxRR", "__version__"]

__version__ = "0.2.0"

if typing.TYPE_CHECKING:
    from maxrr.svm import LinearSVM
    from maxrr.unlearning import MaxRR
else:  # `maxrr --help` need not wait for scikit-learn
    __getattr__ = lazily.names_from(__name__, {"svm": ("LinearSVM",), "unlearning": ("MaxRR",)})
