"""Solvers that know of the data only S = X'X / n and b = X'y / n, standardised.

They minimise w'Sw / 2 - w'b, with a penalty or on few features: dissertation (3.5). S is symmetric
with ones on its diagonal, in columns that are contiguous.
"""

import numpy as np
from scipy.linalg import LinAlgError, eigh_tridiagonal
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import get_lapack_funcs

from ofslib._jit import kernel
from ofslib.kernels.penalties import piece, proximal
from ofslib.kernels.selection import kth_largest

# No matrix needs as many: independent features, the hardest, take 15 to 30 steps.
_KRYLOV = 100
_FEW = 16  # features; with so few the Lanczos method is cheap as a whole
# Steps of conjugate gradients between two sweeps.
_NEWTON = 25
# Of a Newton step that is cut to less than _SHORT the next few, up to _SPARED, are left out.
_SHORT, _SPARED = 0.1, 3
# Features that may enter at once, if the model does not have more.
_ADMITTED = 16


def least_squares(S, b, n_free: int, ridge: float) -> np.ndarray:
    """Solve S w = b by Cholesky: dissertation (3.6), S the standardised moments, shape (m, m).

    If n_free <= m, or if S is singular but for rounding, `ridge` is added to the diagonal, but at
    least m times the precision of S. n_free are the rows, less one if they were centred: the
    greatest rank that S can have. Raises LinAlgError if S is not a matrix of moments: it has a
    negative eigenvalue below -ridge.
    """
    m, eps = len(b), np.finfo(S.dtype).eps
    # Equal columns were seen to leave up to 200 eps. In single precision others, too, have no more.
    rounding = eps if S.dtype == np.float32 else 1000 * eps
    potrf, potrs, pocon, lange = get_lapack_funcs(("potrf", "potrs", "pocon", "lange"), (S,))
    if n_free > m:
        factor, failed = potrf(S, clean=False)
        if not failed and pocon(factor, lange("1", S))[0] > rounding:
            return potrs(factor, b)[0].astype(np.float64)
    S = np.array(S, order="F")
    S[np.diag_indices(m)] += max(ridge, m * eps)
    factor, failed = potrf(S, clean=False, overwrite_a=True)
    if failed:
        raise LinAlgError(f"S has a negative eigenvalue below -{max(ridge, m * eps)}")
    return potrs(factor, b)[0].astype(np.float64)


def largest_eigenvalue(S) -> float:
    """Largest eigenvalue of S, by the Lanczos method.

    Never too large but for rounding, and too small by less than 1 %; by far less if the largest
    eigenvalue stands apart from the others.
    """
    p = len(S)
    symv = get_blas_funcs("symv", (S,))
    v = np.random.default_rng(0).standard_normal(p).astype(S.dtype)
    basis = np.empty((min(p, _KRYLOV), p), S.dtype)
    diagonal, beside, found = [], [], 0.0
    for i in range(len(basis)):
        beside.append(np.linalg.norm(v))
        basis[i] = v / beside[-1]
        v = symv(1.0, S, basis[i])
        diagonal.append(float(basis[i] @ v))
        values, vectors = eigh_tridiagonal(diagonal, beside[1:])
        found = values[-1]
        # Twice: once leaves what rounding brought back.
        for _ in range(2):
            v -= (basis[: i + 1] @ v) @ basis[: i + 1]
        left = np.linalg.norm(v)
        # The residual is small near any eigenvalue: of few features all steps are made.
        near = p > _FEW and left * abs(vectors[-1, -1]) <= 0.01 * found
        if near or left <= p * np.finfo(S.dtype).eps * found:  # nothing but rounding is left
            break
    return float(found)


@kernel
def compact(S, features, out):
    """Write the columns of S[features, features] one after the other; `features` ascend.

    Only the upper triangle is read and written. `out` may be the memory of S itself: no number is
    read after its place was written to.
    """
    m = len(features)
    for c in range(m):
        column = S[:, features[c]]
        for r in range(c + 1):
            out[c * m + r] = column[features[r]]


@kernel
def gradient(S, b, w, g):
    """g = b - S w, at the cost of the nonzeros of w; returns how many there are."""
    used = 0
    for i in range(len(g)):
        g[i] = b[i]
    for j in range(len(w)):
        if w[j] != 0.0:
            used += 1
            column, step = S[:, j], w[j]
            for i in range(len(g)):
                g[i] -= step * column[i]
    return used


@kernel
def sweep(K, w, g, penalty, shape, level):
    """Minimise over one coordinate after the other; returns the largest change."""
    largest = 0.0
    for a in range(len(w)):
        new = proximal(penalty, shape, g[a] + w[a], level, 1.0)
        change = new - w[a]
        if change != 0.0:
            w[a] = new
            largest = max(largest, abs(change))
            row = K[a]
            for i in range(len(w)):
                g[i] -= change * row[i]
    return largest


@kernel
def product(K, v, out):
    """out = K v."""
    m, whole = len(v), len(v) // 4 * 4
    out[:] = 0.0
    # By fours, so that `out` is read and written less often.
    for a in range(0, whole, 4):
        k0, k1, k2, k3 = K[a], K[a + 1], K[a + 2], K[a + 3]
        v0, v1, v2, v3 = v[a], v[a + 1], v[a + 2], v[a + 3]
        for i in range(m):
            out[i] += v0 * k0[i] + v1 * k1[i] + v2 * k2[i] + v3 * k3[i]
    for a in range(whole, m):
        row, step = K[a], v[a]
        for i in range(m):
            out[i] += step * row[i]


@kernel
def inner(u, v):
    """u . v"""
    total = 0.0
    for i in range(len(u)):
        total += u[i] * v[i]
    return total


@kernel
def newton_direction(K, w, g, penalty, shape, level, scratch):
    """The Newton direction of w, none of them zero, on their pieces of P, by conjugate gradients.

    Correlated features, among which sweeps are slow, cost it few steps. Where the curvature is
    negative the direction so far is taken. It is the first row of `scratch`, shape (4, p).
    """
    m = len(w)
    d, r, s, product_s = scratch[0, :m], scratch[1, :m], scratch[2, :m], scratch[3, :m]
    for a in range(m):
        first, _, _, _ = piece(penalty, shape, w[a], level)
        d[a] = 0.0
        r[a] = g[a] - first
        s[a] = r[a]
    start = square = inner(r, r)
    for _ in range(_NEWTON):
        product(K, s, product_s)
        for a in range(m):
            _, second, _, _ = piece(penalty, shape, w[a], level)
            product_s[a] += second * s[a]
        curvature = inner(s, product_s)
        if not curvature > 0.0:
            break
        for a in range(m):
            d[a] += square / curvature * s[a]
            r[a] -= square / curvature * product_s[a]
        square, last = inner(r, r), square
        if square <= 1e-6 * start:
            break
        for a in range(m):
            s[a] = r[a] + square / last * s[a]


@kernel
def newton_step(K, w, g, penalty, shape, level, scratch):
    """A Newton step, shortened so that no w leaves its piece of P; returns what is left of it."""
    m, used, length = len(w), np.flatnonzero(w), 1.0
    # Those that are zero stay: the many products with K are of the others only.
    own = np.empty((len(used), len(used)), K.dtype)
    for c in range(len(used)):
        row = K[used[c]]
        for a in range(len(used)):
            own[c, a] = row[used[a]]
    newton_direction(own, w[used], g[used], penalty, shape, level, scratch)
    d = scratch[0, : len(used)]
    for c in range(len(used)):
        if d[c] != 0.0:
            old = w[used[c]]
            _, _, least, most = piece(penalty, shape, old, level)
            outwards = d[c] if old > 0.0 else -d[c]
            end = most if outwards > 0.0 else least
            length = min(length, (end - abs(old)) / outwards)
    for c in range(len(used)):
        row, step = K[used[c]], length * d[c]
        w[used[c]] += step
        for i in range(m):
            g[i] -= step * row[i]
    return length


@kernel
def grown(K, m):
    """K with capacity for m rows and columns."""
    if m <= len(K):
        return K
    larger = np.empty((2 * m, 2 * m), K.dtype)
    for r in range(len(K)):
        for c in range(len(K)):
            larger[r, c] = K[r, c]
    return larger


@kernel
def admit(S, g, active, size, inside, K, level, most, gain):
    """Add to the active features those with the largest |g| above the level, up to `most`.

    Returns how many are active, and their moments K. `gain` is scratch, shape (p,).
    """
    better, least = 0, level
    for j in range(len(g)):
        if not inside[j] and abs(g[j]) > level:
            gain[better] = abs(g[j])
            better += 1
    if better > most:
        least = kth_largest(gain, better, most)
    for j in range(len(g)):
        if not inside[j] and abs(g[j]) > level and abs(g[j]) >= least:
            active[size], inside[j] = j, True
            K = grown(K, size + 1)
            for a in range(size + 1):
                K[a, size] = K[size, a] = S[active[a], j]
            size += 1
    return size, K


@kernel
def dismiss(w, active, size, inside, K):
    """Take the active features out that are zero; returns how many stay."""
    stay = np.flatnonzero(w[active[:size]])
    for a in range(size):
        inside[active[a]] = w[active[a]] != 0.0
    for c in range(len(stay)):
        row = K[stay[c]]
        for a in range(len(stay)):
            K[c, a] = row[stay[a]]
        active[c] = active[stay[c]]
    return len(stay)


@kernel
def coordinate_path(S, b, levels, penalty, shape, most, tol, n_iter):
    """Minimise w'Sw / 2 - w'b + P(w; level) for each level by coordinate descent.

    The levels fall, and each begins where the one before it ended. The path ends early with a
    model that has more than `most` features. Returns the models of the first m levels, shape
    (m, p), and whether each was reached, to a change of at most `tol`, within `n_iter` sweeps.
    """
    p, converged = len(b), True
    W, w, g = np.zeros((len(levels), p)), np.zeros(p), np.empty(p)
    used = gradient(S, b, w, g)
    active, inside, size = np.empty(p, np.int64), np.zeros(p, np.bool_), 0
    part, slope, scratch = np.empty(p), np.empty(p), np.empty((4, p))
    K = np.empty((64, 64), S.dtype)
    for q in range(len(levels)):
        sweeps, known, solved = 0, -1, False
        # Of a concave penalty many features that were active stay zero; each step would see them.
        if size > 2 * used + _ADMITTED:
            size = dismiss(w, active, size, inside, K)
        while not solved and sweeps < n_iter:
            # Of correlated features nearly all seem to be missing as long as a few are.
            few = max(_ADMITTED, used)
            size, K = admit(S, g, active, size, inside, K, levels[q], few, scratch[0])
            if size == known:
                solved = True
                continue
            known, change = size, np.inf
            for a in range(size):
                part[a], slope[a] = w[active[a]], g[active[a]]
            spared = wait = 0
            while change > tol and sweeps < n_iter:
                change = sweep(K, part[:size], slope, penalty, shape, levels[q])
                sweeps += 1
                if wait > 0:
                    wait -= 1
                elif change > tol:
                    w_now, g_now = part[:size], slope[:size]
                    length = newton_step(K, w_now, g_now, penalty, shape, levels[q], scratch)
                    spared = min(2 * spared + 1, _SPARED) if length < _SHORT else 0
                    wait = spared
            for a in range(size):
                w[active[a]] = part[a]
            used = gradient(S, b, w, g)
        converged = converged and solved
        for j in range(len(w)):
            W[q, j] = w[j]
        if used > most:
            return W[: q + 1], converged
    return W, converged


@kernel
def threshold_path(S, b, levels, penalty, shape, most, tol, n_iter, rate, printed):
    """Dissertation, Algorithm 5, for each level from w = 0; the path ends like coordinate_path.

    A gradient step, then the proximal map for a step of that size, or, if `printed`,
    Theta(w; rate level) as the algorithm has it; `n_iter` times, or until nothing changes by more
    than `tol`. Returns the models of the first m levels, shape (m, p), and whether each was
    reached.
    """
    p, converged = len(b), True
    W, g = np.zeros((len(levels), p)), np.empty(p)
    for q in range(len(levels)):
        w, level, step = W[q], levels[q], rate
        if printed:
            level, step = rate * level, 1.0
        solved = False
        for _ in range(n_iter):
            gradient(S, b, w, g)
            largest = 0.0
            for j in range(p):
                new = proximal(penalty, shape, w[j] + rate * g[j], level, step)
                largest = max(largest, abs(new - w[j]))
                w[j] = new
            if largest <= tol:
                solved = True
                break
        converged = converged and solved
        if gradient(S, b, w, g) > most:
            return W[: q + 1], converged
    return W, converged
