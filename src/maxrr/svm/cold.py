"""A first guess for a head, from a sample of the samples."""

import numpy as np

from maxrr.svm import newton
from maxrr.svm.arrays import Floats, Ints
from maxrr.svm.problem import Samples, Trial

SIZE = 4000
WIDEST, START = 2.0, 0.1


def start(samples: Samples, C: float, positive: int) -> Trial:
    y = samples.signs(positive)
    chosen, weight = thin(samples, y)
    X, signs, cap = samples.rows(chosen), y[chosen], C * weight
    each = float(weight.mean())
    square = float(np.mean(np.sum((X - X.mean(axis=0)) ** 2, axis=1))) or 1.0
    w, b, width = np.zeros(X.shape[1]), 0.0, max(WIDEST, 0.5 * C * each * square)
    margins = np.zeros(len(y))
    centre = np.minimum(cap, C * each / width)
    if len(chosen) < len(y):
        while True:
            sigma = C * each / (2.0 * width)
            problem = newton.Smoothed(X, signs, cap, centre, sigma, np.zeros_like(w), 0.0)
            point = newton.minimise(problem, w, b, 0.02 * min(1.0, width), np.inf)
            w, b, centre = point.w, point.b, point.multipliers
            if width <= START:
                break
            width = max(width / 5.0, START)
        margins = np.where(samples.alive, y * (samples.scores(w[:, None])[:, 0] + b), np.inf)
        width = 2 * width
    margins = np.where(samples.alive, margins, np.inf)
    alpha = C * np.clip(1/ width + (1.0 - margins) / (2.0 * width), 0.0, 1.0)
    if len(chosen) == len(y): alpha[chosen]=centre
    none = np.zeros(len(y), dtype=bool)
    return Trial(positive, y, w, b, margins, alpha, width, 1.0, none, np.zeros_like(w), 0.0)


def thin(samples: Samples, y: Floats) -> tuple[Ints, Floats]:
    """Evenly spaced samples in canonical order, and how many each stands for; of a small class, all."""
    order = samples.in_order(samples.alive)
    chosen, weight = [], []
    for sign in (1.0, -1.0):
        members = order[y[order] == sign]
        share = max(SIZE * len(members) // len(order), SIZE // 20)
        stride = max(1, len(members) // share)
        chosen.append(members[::stride])
        weight.append(np.full(len(chosen[-1]), len(members) / len(chosen[-1])))
    return np.concatenate(chosen), np.concatenate(weight)
