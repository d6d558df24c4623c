"""The SVM as a quadratic programme for general solvers, which share no code with ours."""

import clarabel
import numpy as np
import piqp
from scipy import sparse


def programme(X, y, C):
    """½zᵀPz + qᵀz over z = (w, b, slack), with Gz ≤ h: margins ≥ 1 − slack, slack ≥ 0. C is one number or one each."""
    n, d = X.shape
    P = sparse.diags(np.concatenate([np.ones(d), np.zeros(1 + n)])).tocsc()
    q = np.concatenate([np.zeros(d + 1), np.broadcast_to(C, n)])
    margins = sparse.hstack([sparse.csc_matrix(-y[:, None] * np.column_stack([X, np.ones(n)])), -sparse.eye(n)])
    G = sparse.vstack([margins, sparse.hstack([sparse.csc_matrix((n, d + 1)), -sparse.eye(n)])]).tocsc()
    return P, q, G, np.concatenate([-np.ones(n), np.zeros(n)])


def with_clarabel(X, y, C, tolerance=1e-12):
    """Weights, bias, and the optimal value."""
    P, q, G, h = programme(X, y, C)
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = tolerance
    found = clarabel.DefaultSolver(P, q, G, h, [clarabel.NonnegativeConeT(len(h))], options).solve()
    assert str(found.status) in ("Solved", "AlmostSolved"), found.status
    z = np.array(found.x)
    return z[: X.shape[1]], z[X.shape[1]], float(found.obj_val)


def with_piqp(X, y, C, tolerance=1e-11):
    """Weights, bias, and the optimal value."""
    P, q, G, h = programme(X, y, C)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = tolerance
    solver.settings.max_iter = 500
    solver.setup(P, q, None, None, G, np.full(len(h), -np.inf), h)
    status = solver.solve()
    assert status == piqp.PIQP_SOLVED, status
    z = solver.result.x
    return z[: X.shape[1]], z[X.shape[1]], float(0.5 * z @ (P @ z) + q @ z)
