"""Exact linear SVMs: solved, proved, and able to forget samples."""

from maxrr.svm.calibration import PlattScaling, fit_platt
from maxrr.svm.certificate import EXACT, Certificate
from maxrr.svm.estimator import ConvergenceError, FlatHeadWarning, LinearSVM
from maxrr.svm.heads import Work
from maxrr.svm.influence import Influence, influential_in
from maxrr.svm.rounding import FORM

__all__ = [
    "EXACT",
    "FORM",
    "Certificate",
    "ConvergenceError",
    "FlatHeadWarning",
    "Influence",
    "LinearSVM",
    "PlattScaling",
    "Work",
    "fit_platt",
    "influential_in",
]
