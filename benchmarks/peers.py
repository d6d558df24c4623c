"""The solvers we compare with. Each is called as `solve(X, y, C)` and times itself.

Those that need minutes a head solve only the first few heads; their seconds are scaled to all heads.
"""

import multiprocessing
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing.pool import Pool
from time import perf_counter

import numpy as np

from features import Floats, Labels, signs


@dataclass(frozen=True)
class Answer:
    """Weights of the first heads, and the seconds that all heads would take at this rate."""

    seconds: float
    coef: Floats
    intercept: Floats
    stopped: bool = False  # by a limit, before it reached its own tolerance


Solve = Callable[[Floats, Labels, float], Answer]


@dataclass(frozen=True)
class Peer:
    """A solver with its setting, and how many heads it solves (None: all)."""

    name: str
    setting: str
    heads: int | None
    solve: Solve


def usual(svc_heads: int) -> list[Peer]:
    """Each peer at its usual accuracy."""
    return [
        Peer("LinearSVC", "tol 1e-4, ≤ 20,000 iterations", None, linear_svc),
        Peer("SVC", "tol 1e-3", svc_heads, partial(svc, heads=svc_heads)),
        Peer("Clarabel", "tol 1e-12", 1, interior_point),
    ]


def sweep(svc_heads: int) -> list[Peer]:
    """The same peers when given more and more time."""
    iterations = (10, 30, 100, 300, 1000, 3000, 20_000)
    return [
        *(Peer("LinearSVC", f"≤ {k:,} iterations", None, partial(linear_svc, max_iter=k)) for k in iterations),
        *(
            Peer("SVC", f"tol {tol:g}", svc_heads, partial(svc, heads=svc_heads, tol=tol))
            for tol in (1, 0.1, 0.01, 1e-3, 1e-5)
        ),
        *(Peer("Clarabel", f"tol {tol:g}", 1, partial(interior_point, tol=tol)) for tol in (0.01, 1e-5, 1e-8, 1e-12)),
    ]


def linear_svc(X: Floats, y: Labels, C: float, max_iter: int = 20_000) -> Answer:
    """scikit-learn's LinearSVC (liblinear): dual coordinate descent. It penalises the bias too."""
    from sklearn.svm import LinearSVC

    model = LinearSVC(C=C, loss="hinge", tol=1e-4, max_iter=max_iter, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged: reported as `stopped`
        start = perf_counter()
        model.fit(X, y)
    return Answer(perf_counter() - start, model.coef_, model.intercept_, stopped=model.n_iter_ >= max_iter)


def multicore(X: Floats, y: Labels, C: float) -> Answer:
    """liblinear's own package with a thread for each core: the same method and objective as LinearSVC."""
    from liblinear import liblinearutil
    from scipy import sparse

    setting = f"-s 3 -c {C!r} -B 1 -e 1e-4 -m {multiprocessing.cpu_count()} -q"
    problem = liblinearutil.problem(y.astype(np.float64), sparse.csr_matrix(X.astype(np.float64)))
    start = perf_counter()
    model = liblinearutil.train(problem, liblinearutil.parameter(setting))
    seconds = perf_counter() - start
    heads = [model.get_decfun(label_idx=number) for number in range(model.get_nr_class())]
    order = np.argsort(model.get_labels())
    coef, intercept = np.array([w for w, _ in heads])[order], np.array([b for _, b in heads])[order]
    if len(heads) > 2:
        return Answer(seconds, coef, intercept)
    return Answer(seconds, coef[1:], intercept[1:])


def skglm_svc(X: Floats, y: Labels, C: float) -> Answer:
    """skglm: coordinate descent on the dual with working sets. It has no bias: a feature of ones stands for it."""
    from skglm import LinearSVC

    every, rows = signs(y), np.asfortranarray(np.column_stack([X, np.ones(len(X))]), dtype=np.float64)
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has not converged: reported as `stopped`
        models = [LinearSVC(C=C, tol=1e-4, fit_intercept=False).fit(rows, head) for head in every]
    seconds = perf_counter() - start
    coef = np.vstack([model.coef_.ravel() for model in models])
    return Answer(seconds, coef[:, :-1], coef[:, -1], stopped=any(model.n_iter_ >= model.max_iter for model in models))


def svc(X: Floats, y: Labels, C: float, heads: int = 1, tol: float = 1e-3) -> Answer:
    """scikit-learn's SVC (libsvm): pairs of multipliers, over the kernel matrix."""
    from sklearn.svm import SVC

    every = signs(y)
    start = perf_counter()
    models = [SVC(C=C, kernel="linear", tol=tol).fit(X, head) for head in every[:heads]]
    seconds = (perf_counter() - start) * len(every) / len(models)
    return Answer(seconds, np.vstack([m.coef_ for m in models]), np.hstack([m.intercept_ for m in models]))


def interior_point(X: Floats, y: Labels, C: float, tol: float = 1e-12) -> Answer:
    """Clarabel, on the first head as a quadratic programme in (w, b, ξ): minimise ½|w|² + C Σ ξᵢ."""
    import clarabel
    from scipy import sparse

    every, (n, d) = signs(y), X.shape
    start = perf_counter()
    rows = every[0][:, None] * np.column_stack([X, np.ones(n)])
    quadratic = sparse.diags_array(np.r_[np.ones(d), np.zeros(n + 1)]).tocsc()
    linear = np.r_[np.zeros(d + 1), np.full(n, C)]
    # y (w·x + b) + ξ ≥ 1 and ξ ≥ 0, as A z + s = a with s ≥ 0
    unit = sparse.eye_array(n)
    A: sparse.csc_array = sparse.block_array([[sparse.csc_array(-rows), -unit], [None, -unit]]).tocsc()
    a = np.r_[-np.ones(n), np.zeros(n)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    cones = [clarabel.NonnegativeConeT(2 * n)]
    solution = clarabel.DefaultSolver(quadratic, linear, A, a, cones, settings).solve()
    seconds = (perf_counter() - start) * len(every)
    z = np.array(solution.x)
    stopped = solution.status != clarabel.SolverStatus.Solved
    return Answer(seconds, z[None, :d], z[d : d + 1], stopped)


class Worker:
    """Solves in another process, which it stops when that takes too long (or is stopped for its use of memory)."""

    def __init__(self, limit: float, solvers: Sequence[Solve]) -> None:
        self.limit = limit
        self.solvers = solvers
        self.pool: Pool | None = None

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        if self.pool:
            self.pool.terminate()
            self.pool = None

    def solve(self, solve: Solve, X: Floats, y: Labels, C: float) -> Answer | None:
        """The answer, or None after `limit` seconds."""
        if self.pool is None:
            self.pool = started(self.solvers)
        try:
            return self.pool.apply_async(solve, (X, y, C)).get(self.limit)
        except multiprocessing.TimeoutError:
            self.stop()
            return None


def started(solvers: Sequence[Solve]) -> Pool:
    """A process that has loaded its libraries, so that they take no part of anybody's time."""
    pool = multiprocessing.get_context("spawn").Pool(1)
    for solve in solvers:
        pool.apply(solve, (np.eye(4), np.arange(4) % 2, 1.0))
    return pool
