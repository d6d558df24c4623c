"""Classifiers that forget records cheaply and exactly, and show that they did."""

import typing

from maxrr import lazily
from maxrr.version import __version__

__all__ = ["LinearSVM", "MaxRR", "__version__"]

if typing.TYPE_CHECKING:
    from maxrr import audit as audit
    from maxrr import core as core
    from maxrr import data as data
    from maxrr import errors as errors
    from maxrr import evidence as evidence
    from maxrr import files as files
    from maxrr import nets as nets
    from maxrr import parallel as parallel
    from maxrr import progress as progress
    from maxrr import report as report
    from maxrr import serving as serving
    from maxrr import svm as svm
    from maxrr import unlearning as unlearning
    from maxrr import workspace as workspace
    from maxrr.svm.estimator import LinearSVM
    from maxrr.unlearning import MaxRR
else:  # `maxrr --help` need not wait for scikit-learn
    __getattr__, __dir__ = lazily.names_from(
        __name__,
        {"svm.estimator": ("LinearSVM",), "unlearning": ("MaxRR",)},
        modules=(
            "audit",
            "core",
            "data",
            "errors",
            "evidence",
            "files",
            "nets",
            "parallel",
            "progress",
            "report",
            "serving",
            "svm",
            "unlearning",
            "workspace",
        ),
    )
