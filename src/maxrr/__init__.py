"""Classifiers that forget records cheaply and exactly, and show that they did."""

import typing

from maxrr import lazily
from maxrr.version import __version__

__all__ = ["LinearSVM", "MaxRR", "Workspace", "__version__"]

if typing.TYPE_CHECKING:
    from maxrr import audit as audit
    from maxrr import core as core
    from maxrr import data as data
    from maxrr import errors as errors
    from maxrr import evidence as evidence
    from maxrr import nets as nets
    from maxrr import parallel as parallel
    from maxrr import service as service
    from maxrr import serving as serving
    from maxrr import svm as svm
    from maxrr import unlearning as unlearning
    from maxrr import workspace as workspace
    from maxrr.svm.estimator import LinearSVM
    from maxrr.unlearning import MaxRR
    from maxrr.workspace import Workspace
else:  # `maxrr --help` need not wait for scikit-learn
    _ROOMS = "audit core data errors evidence nets parallel service serving svm unlearning workspace"
    _HOMES = {"svm.estimator": ("LinearSVM",), "unlearning": ("MaxRR",), "workspace": ("Workspace",)}
    __getattr__, __dir__ = lazily.names_from(__name__, _HOMES, modules=tuple(_ROOMS.split()))
