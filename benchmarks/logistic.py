"""Logistic regression by L-BFGS in PyTorch, another problem than ours: what people with embeddings use instead.

It minimises ½|W|² + C Σ cross-entropy over all classes at once, in float32, with a free bias, from zero.
"""

from dataclasses import dataclass
from time import perf_counter

import torch

MOST_ITERATIONS = 1000
AT_A_TIME = 25  # iterations between two looks at the clock
LONGER, LONGER_SECONDS = 3, 60.0  # times the iterations at most, in float64, to see how far from its optimum it was


@dataclass(frozen=True)
class Outcome:
    """`distance` is (P − P') / P', of its objective P and that after a longer run, P': at least so far off it was."""

    seconds: float
    iterations: int
    stopped: bool  # by the limit of seconds or iterations, before it was content itself
    distance: float


def run(X: torch.Tensor, y: torch.Tensor, C: float, limit: float) -> Outcome:
    """Fit for at most `limit` seconds, then go on in float64."""
    weights = torch.zeros(int(y.max()) + 1, X.shape[1] + 1, device=X.device)
    start = perf_counter()
    iterations, content = descend(weights, X, y, C, MOST_ITERATIONS, limit)
    seconds = perf_counter() - start
    further, X = weights.double(), X.double()
    reached = float(objective(further, X, y, C))
    descend(further, X, y, C, LONGER * MOST_ITERATIONS, LONGER_SECONDS, tolerance=1e-12)
    optimum = float(objective(further, X, y, C))
    return Outcome(seconds, iterations, not content, (reached - optimum) / optimum)


def descend(
    weights: torch.Tensor, X: torch.Tensor, y: torch.Tensor, C: float, most: int, limit: float, tolerance: float = 1e-7
) -> tuple[int, bool]:
    """Improve the weights in place; how many iterations that took, and whether the tolerance was reached."""
    weights.requires_grad_(True)
    optimiser = torch.optim.LBFGS(
        [weights], max_iter=AT_A_TIME, max_eval=10 * AT_A_TIME, tolerance_grad=tolerance,
        tolerance_change=1e-2 * tolerance, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        value = objective(weights, X, y, C) / len(y)
        value.backward()
        return value

    start, done = perf_counter(), 0
    content = False
    while not content and done < most and perf_counter() - start < limit:
        optimiser.step(loss)
        now = optimiser.state[weights]["n_iter"]
        content, done = now - done < AT_A_TIME, now
    weights.requires_grad_(False)
    return done, content


def objective(weights: torch.Tensor, X: torch.Tensor, y: torch.Tensor, C: float) -> torch.Tensor:
    scores = torch.addmm(weights[:, -1], X, weights[:, :-1].T)
    losses = torch.nn.functional.cross_entropy(scores, y, reduction="sum")
    return 0.5 * weights[:, :-1].square().sum() + C * losses
