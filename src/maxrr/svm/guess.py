"""Where all heads of a run are before they are refined, in few numbers: cheap to send to another process."""

from dataclasses import dataclass

import numpy as np

from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.problem import Samples, Trial
from maxrr.svm.refine import REACH


@dataclass(frozen=True)
class Guess:
    """Weights, biases and smoothings of the heads, and the multipliers strictly between their bounds.

    The i-th of these multipliers belongs to `sample[i]` in head number `head[i]`. All others follow from the margins.
    """

    w: Floats  # (heads × d)
    b: Floats
    width: Floats
    head: Ints
    sample: Ints
    multiplier: Floats

    def trials(self, samples: Samples, C: float, classes: list[int]) -> list[Trial]:
        """Unfinished heads at this guess. One pass over the data for all."""
        scores = samples.scores(self.w.T.copy())
        found = []
        for number, positive in enumerate(classes):
            y = samples.signs(positive)
            margins = np.where(samples.alive, y * (scores[:, number] + self.b[number]), np.inf)
            alpha = np.where(margins < 1.0, C, 0.0)
            mine = self.head == number
            alpha[self.sample[mine]] = self.multiplier[mine]
            width = float(self.width[number])
            found.append(
                Trial(
                    positive, y, self.w[number], float(self.b[number]), margins, alpha, width, REACH * width,
                    held=np.zeros(len(y)), pull=np.zeros(self.w.shape[1]), tilt=0.0,
                )
            )  # fmt: skip
        return found
