"""Exact linear SVMs: solved with a proof, and able to forget samples."""

import typing

from maxrr import lazily

__all__ = ["Certificate", "ConvergenceError", "FlatHeadWarning", "PlattScaling", "fit_platt", "influential_in"]

if typing.TYPE_CHECKING:
    from maxrr.svm.calibration import PlattScaling, fit_platt
    from maxrr.svm.certificate import Certificate
    from maxrr.svm.estimator import ConvergenceError, FlatHeadWarning
    from maxrr.svm.influence import influential_in
else:  # a certificate needs no solver
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "calibration": ("PlattScaling", "fit_platt"),
        "certificate": ("Certificate",),
        "estimator": ("ConvergenceError", "FlatHeadWarning"),
        "influence": ("influential_in",),
    })  # fmt: skip
