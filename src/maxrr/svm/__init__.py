"""Exact linear SVMs: solved to rounding, certified, and able to forget samples."""

from maxrr.svm.calibration import PlattScaling, fit_platt
from maxrr.svm.classifier import Work
from maxrr.svm.estimator import LinearSVM
from maxrr.svm.hinge import SEPARATION_BOUND, Certificate, certify
from maxrr.svm.influence import Influence, influential_in

__all__ = [
    "SEPARATION_BOUND",
    "Certificate",
    "Influence",
    "LinearSVM",
    "PlattScaling",
    "Work",
    "certify",
    "fit_platt",
    "influential_in",
]
