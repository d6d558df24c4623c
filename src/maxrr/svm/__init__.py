"""Exact linear SVMs: solved, proved, and able to forget samples."""

import importlib
import typing

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

if typing.TYPE_CHECKING:
    from maxrr.svm.calibration import PlattScaling, fit_platt
    from maxrr.svm.certificate import EXACT, FORM, Certificate
    from maxrr.svm.estimator import ConvergenceError, FlatHeadWarning, LinearSVM
    from maxrr.svm.heads import Work
    from maxrr.svm.influence import Influence, influential_in
else:
    _HOMES = {
        "PlattScaling": "calibration",
        "fit_platt": "calibration",
        "EXACT": "certificate",
        "Certificate": "certificate",
        "Work": "heads",
        "ConvergenceError": "estimator",
        "FlatHeadWarning": "estimator",
        "LinearSVM": "estimator",
        "Influence": "influence",
        "influential_in": "influence",
        "FORM": "certificate",
    }

    def __getattr__(name):
        """Import a name when it is first asked for: a certificate or the form of bytes needs no solver."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
