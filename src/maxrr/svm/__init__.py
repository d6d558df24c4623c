"""Exact linear SVMs: solved with a proof, and able to forget samples."""

import typing

from maxrr import lazily

__all__ = [
    "EXACT",
    "FORM",
    "Array",
    "Certificate",
    "ConvergenceError",
    "FlatHeadWarning",
    "Influence",
    "LinearSVM",
    "PlattScaling",
    "fit_platt",
    "influential_in",
]

if typing.TYPE_CHECKING:
    from maxrr.svm.arrays import Array
    from maxrr.svm.calibration import PlattScaling, fit_platt
    from maxrr.svm.certificate import EXACT, FORM, Certificate
    from maxrr.svm.estimator import ConvergenceError, FlatHeadWarning, LinearSVM
    from maxrr.svm.influence import Influence, influential_in
else:  # a certificate or the form of bytes needs no solver
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "arrays": ("Array",),
        "calibration": ("PlattScaling", "fit_platt"),
        "certificate": ("EXACT", "Certificate", "FORM"),
        "estimator": ("ConvergenceError", "FlatHeadWarning", "LinearSVM"),
        "influence": ("Influence", "influential_in"),
    })  # fmt: skip
