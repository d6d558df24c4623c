"""Whether a scikit-learn Pipeline fitted something on the records before the model got them."""

import sys
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Any

NEAREST = 8  # calls between `Pipeline.fit` and ours are decorators; a pipeline further away is not ours


class FittedBeforeWarning(UserWarning):
    """What was fitted in front of a model has seen records that the model forgets later, and does not change."""


def warn_of_fitted_steps() -> None:
    """Warn if `fit` is called by a Pipeline that has fitted steps in front of the model.

    An estimator is not told who calls it: the only way to know is to look at the callers.
    """
    module = sys.modules.get("sklearn.pipeline")
    if module is None:
        return
    callers = list(frames(sys._getframe(2)))
    near = (level for level, frame in enumerate(callers[:NEAREST]) if isinstance(whose(frame), module.Pipeline))
    level = next(near, None)
    if level is None:
        return
    fitted = fitted_steps(whose(callers[level]))
    if fitted:
        outside = next((up for up in range(level, len(callers)) if not is_scikit_learn(callers[up])), level)
        warnings.warn(
            f"{' and '.join(fitted)} in front of the model {'was' if len(fitted) == 1 else 'were'} fitted on all "
            "records, and will not change when the model forgets some: what it learned of them stays, and no receipt "
            "covers it. Use constants that depend on no record (maxrr.data.Encoding), or a layer such as "
            "torch.nn.BatchNorm1d at the beginning of the network, which is trained with it",
            FittedBeforeWarning,
            stacklevel=outside + 3,  # this function and `fit` come before the callers
        )


def frames(frame: FrameType | None) -> Iterator[FrameType]:
    """A call, and those that it was called by."""
    while frame is not None:
        yield frame
        frame = frame.f_back


def whose(frame: FrameType) -> Any:
    """The object whose method is called."""
    return frame.f_locals.get("self")


def is_scikit_learn(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith("sklearn.")


def fitted_steps(pipeline: Any) -> list[str]:
    """The steps in front of the last one that learn from records, by the names of their classes."""
    from sklearn.utils import get_tags

    steps = (step for _, step in pipeline.steps[:-1] if step is not None and step != "passthrough")
    return [type(step).__name__ for step in steps if get_tags(step).requires_fit]
