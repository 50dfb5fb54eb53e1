"""Slow references of the methods, each written from the page of its source and not from ofslib.

The docstring of a method names the source; `joint` and `own_step` have no other than our own
description. What no source has is the same everywhere: a mini-batch steps with the
mean of its gradients; the intercept is the coefficient of a feature of ones that is neither
penalised nor truncated; of equally important features the lower index stays, but for OS.

How a source that is silent is read:

- A mini-batch steps with its mean gradient. M_t is k plus the rounded rest. A maturity counts the
  mini-batch that it ends in, a warm-up does not.
- OS and Asy-OS refuse a newcomer that equals the smallest: Algorithm 1 has no rule for it. Of equal
  selected ones the one in the first place goes; a newcomer takes the place of what it replaces.
- Asy-OS with c = 0 checks nothing. By Algorithm 1 it would still refuse what makes the objective
  larger; `OnlineSubstitution` takes no 0.
- SGDT truncates once, after step T, as the text of sfsa and the dissertation's Algorithm 2 have it.
  The listing of sfsa truncates from step T + 1 on, each time.
- The hinge has slope 0 at y m = 1. Wang et al. have a step there, where y f <= 1.
- FOFS shrinks at every row, also without a violation, as the authors' script of barda does.
- RADAR: alpha_t = eta / sqrt(t); the start of an epoch counts among its iterates (the sum in the
  paper may begin one later); with an intercept the norm has p + 1 coordinates.
- The squared hinge has no 1/2, as in barda, also for columns, where (3) of os has it: an l1 of
  Grafting and OnlineProximal is twice the paper's lambda. OS does not depend on it.
- L_F of OS is not printed. Ours grows with the curvature along the steps (`OnlineSubstitution`).
- SFSA-AG predicts with the coefficients at which it takes the gradient: online_loss_ is theirs.
- Variances of SOFS are gamma / (gamma + sum of squares), so that equal counts tie exactly.
"""

import math

import numpy as np

# Losses of margins m


def loss(name, m, y):
    """Half the square for regression (docs/errata.md, sfsa 2); squared hinge as in barda, 5."""
    if name == "squared_error":
        return (y - m) ** 2 / 2
    if name == "log_loss":
        return np.logaddexp(0, -y * m)
    hinge = np.maximum(0, 1 - y * m)
    return hinge if name == "hinge" else hinge**2


def slope(name, m, y):
    """The derivative of `loss` by m; of the hinge -y where y m < 1 (Wang et al.: y m <= 1)."""
    if name == "squared_error":
        return m - y
    if name == "log_loss":
        # numpy's has another last digit on some processors, which may decide between equals.
        return -y / (1 + np.vectorize(math.exp, otypes=[float])(y * m))
    if name == "hinge":
        return np.where(y * m < 1, -y, 0.0)
    return -2 * y * np.maximum(0, 1 - y * m)


LARGEST = {"squared_error": 1.0, "log_loss": 0.25, "hinge": 1.0, "squared_hinge": 2.0}


def curvatures(loss, margins):
    """The second derivative at each margin; but for log_loss the largest there is."""
    p = 1 / (1 + np.exp(-np.asarray(margins)))
    return p * (1 - p) if loss == "log_loss" else LARGEST[loss] + 0 * p


def top(values, k):
    """The indices of the k largest; of equals the lower ones."""
    return sorted(sorted(range(len(values)), key=lambda j: (-values[j], j))[:k])


def truncated(w, values, k):
    """w where `values` are the k largest, else 0."""
    out = np.zeros_like(w)
    out[top(values, k)] = w[top(values, k)]
    return out


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


def weighted_sum(slopes, rows):
    """Row by row, so that equal columns have equal sums to the last bit."""
    return sum(s * x for s, x in zip(slopes, rows, strict=True))


def own_step(loss, eta, t, margins):
    """The intercept's, in step t, where that of the features is eta (docs/explain/annealing.md).

    `margins` are those of all rows so far.
    """
    return max(eta, 1 / (np.mean(curvatures(loss, margins)) * t))


def minibatches(size, *parts):
    for start in range(0, len(parts[0]), size):
        yield [part[start : start + size] for part in parts]


# Streams of rows: hard truncation


def schedule(t, T, q, p, k, mu):
    """M_t: sfsa, Section 3.1; dissertation, 2.1. The warm-up q is ours (docs/errata.md, sfsa 3)."""
    share = max(0.0, (T - t) / ((t - q) * mu + T - q)) if t > q else 1.0
    return k + round((p - k) * share)


def measure(importance, w, rows):
    """v_j: |beta| of the dissertation's Algorithm 1; sfsa, Algorithms 1 (root) and 2 (coef)."""
    variance = np.maximum(np.mean(rows**2, axis=0) - np.mean(rows, axis=0) ** 2, 0)
    if importance == "scaled_coef":
        return np.sqrt(variance) * np.abs(w)
    return np.sqrt(variance * np.abs(w)) if importance == "scaled_root" else np.abs(w)


def moved(optimizer, w, v, s, g, t, rate, m=0.9):
    """Coefficients and memory after step t with the gradient g.

    Momentum is (1)-(2) of Sutskever et al. 2013, which sfsa cites; SFSA-AG is their (3)-(4); both
    with the gradient times 1 - m (reading of Table 1). Adam is Kingma and Ba 2015, Algorithm 1.
    """
    if optimizer == "adam":
        v, s = 0.9 * v + 0.1 * g, 0.999 * s + 0.001 * g**2
        w = w - rate * (v / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
    elif optimizer == "sgd":
        w = w - rate * g
    else:
        v = m * v - (1 - m) * rate * g
        w = w + v
    return w, v, s


def sfsa(
    X,
    y,
    *,
    k,
    loss,
    learning_rate,
    batch_size,
    optimizer,
    mu,
    warmup,
    importance,
    intercept,
    maturity=None,
):
    """SFSA: sfsa, Algorithm 1; dissertation, Algorithm 1.

    T is `maturity` (all rows) in mini-batches, of which a part counts; of the warm-up it does not.
    SFSA-AG predicts where it takes the gradient.
    """
    n, p = X.shape
    Z = np.column_stack([X, np.full(n, float(intercept))])
    w, v, s, margins = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1), []
    alive = np.ones(p + 1, bool)
    T, q = -(-(maturity or n) // batch_size), warmup // batch_size
    for t, (rows, labels) in enumerate(minibatches(batch_size, Z, y), 1):
        at = w + 0.9 * v if optimizer == "nesterov" else w
        margins.extend(rows @ at)
        g = np.where(alive, weighted_sum(slope(loss, rows @ at, labels), rows) / len(labels), 0)
        constant, g[p] = w[p] - own_step(loss, learning_rate, t, margins) * g[p], 0
        w, v, s = moved(optimizer, w, v, s, g, t, learning_rate)
        w[p] = constant
        values = measure(importance, w[:p], X[: t * batch_size])
        values[~alive[:p]] = -1
        alive[:p] = False
        alive[top(values, schedule(t, T, q, p, k, mu))] = True
        w, v, s = (np.where(alive, a, 0) for a in (w, v, s))
    return w[:p], w[p], margins


def sgdt(X, y, *, maturity, batch_size, k, **own):
    """SGDT: sfsa, Algorithm 2; dissertation, Algorithm 2 (TSGD).

    One truncation, after step T, as the text and the dissertation have it; sfsa prints "if t >= T +
    1", after the update of step t.
    """
    T, p, own["batch_size"] = -(-maturity // batch_size), X.shape[1], batch_size
    (w,), (b,), (margins,) = joint(X, [y], lambda t: k if t >= T else p, **own)
    return w, b, margins


def joint(X, targets, left, *, loss, learning_rate, batch_size, importance, intercept=True):
    """SFSA and SGDT of several models, of which left(t) features stay after step t.

    The joint choice is ours: ranked is the l2 norm over the models of a feature's coefficients
    (docs/explain).
    """
    n, p = X.shape
    Z, alive = np.column_stack([X, np.full(n, float(intercept))]), np.ones(p, bool)
    W, margins = np.zeros((len(targets), p + 1)), [[] for _ in targets]
    for t, (rows, *labels) in enumerate(minibatches(batch_size, Z, *targets), 1):
        for w, own, y in zip(W, margins, labels, strict=True):
            own.extend(rows @ w)
            g = weighted_sum(slope(loss, rows @ w, y), rows) / len(rows)
            w[:p] -= learning_rate * g[:p] * alive
            w[p] -= own_step(loss, learning_rate, t, own) * g[p]
        values = measure(importance, np.linalg.norm(W[:, :p], axis=0), X[: t * batch_size])
        values[~alive] = -1
        alive[:] = False
        alive[top(values, left(t))] = True
        W[:, :p] *= alive
    return W[:, :p], W[:, p], margins


def siht(X, y, **own):
    """Fan et al. 2018; dissertation, Section 5.1: Truncate(b + eta (y - x'b) x, k), each step.

    So it is FOFS without its penalty.
    """
    return fofs(X, y, alpha=0.0, **own)


def fofs(X, y, *, k, loss, learning_rate, alpha, batch_size, intercept):
    """FOFS: Wang et al. 2014, Algorithm 2 (OFS of barda).

    w~ = (1 - alpha eta) w + eta y x, w^ = min(1, alpha^(-1/2) / |w~|) w~, Truncate(w^, B). It has
    no step where y f > 1; sfsa's cells and barda's script shrink there as well.
    """
    w, b, margins = np.zeros(X.shape[1]), 0.0, []
    for t, (rows, labels) in enumerate(minibatches(batch_size, X, y), 1):
        margins.extend(rows @ w + b)
        slopes = slope(loss, rows @ w + b, labels)
        w = (1 - alpha * learning_rate) * w - learning_rate * weighted_sum(slopes, rows) / len(
            labels
        )
        b -= own_step(loss, learning_rate, t, margins) * slopes.mean() * intercept
        if alpha > 0 and np.linalg.norm(w) > alpha**-0.5:
            w = w * alpha**-0.5 / np.linalg.norm(w)
        w = truncated(w, np.abs(w), k)
    return w, b, margins


def sofs(X, y, *, k, gamma, intercept, weight=None):
    """SOFS: Wu et al. 2017, Algorithm 2 (diagonal AROW, Crammer et al. 2009), squared hinge.

    Where y m < 1, with v = x' Sigma x and the Sigma before the step: mu += max(0, 1 - y m) / (v +
    gamma) y Sigma x, then 1 / Sigma_jj += x_j^2 / gamma; all but the B smallest Sigma_jj: mu_j = 0.
    The intercept, which is ours, does the same with x = 1, as if it were alone. So is the weight,
    by which the gamma of a row is divided.
    """
    (mu, squares), b, steps, margins = np.zeros((2, X.shape[1])), 0.0, 0.0, []
    for x, label, a in zip(X, y, np.ones(len(y)) if weight is None else weight, strict=True):
        margins.append(mu @ x + b)
        violation = 1 - label * margins[-1]
        if violation <= 0:
            continue
        inverse = 1 + squares / gamma
        step = violation / (np.sum(x**2 / inverse) + gamma / a)
        mu = mu + step * label * x / inverse
        squares = squares + a * x**2
        mu = truncated(mu, squares, k)
        variance, steps = 1 / (1 + steps / gamma), steps + a
        b += intercept * violation / (variance + gamma / a) * label * variance
    return mu, b, margins


def barda(X, y, *, k, loss, learning_rate, alpha, delta, intercept):
    """B-ARDA: barda, Algorithm 1, with (1) in the closed form of Section 4.1.

    `learning_rate` may hold one for each row: the model that it meets is made with it.
    """
    n, p = X.shape
    ridge, rates = np.append(np.full(p, alpha), 0), np.broadcast_to(learning_rate, n)
    w, gradients, squares, margins = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1), []
    for t, x in enumerate(np.column_stack([X, np.full(n, float(intercept))]), 1):
        margins.append(w @ x)
        g = slope(loss, margins[-1], y[t - 1]) * x
        gradients, squares = gradients + g, squares + g**2
        H = delta + np.sqrt(squares)
        eta = rates[min(t, n - 1)]
        z = -eta * gradients / (ridge * eta * t + H)
        w = np.append(truncated(z[:p], (H * z**2)[:p], k), z[p])
    return w[:p], w[p], margins


def bamd(X, y, *, k, loss, learning_rate, alpha, delta, intercept):
    """B-AMD: barda, Algorithm 2: the sub-gradient has that of the ridge, step 6."""
    n, p = X.shape
    ridge = np.append(np.full(p, alpha), 0)
    w, squares, margins = np.zeros(p + 1), np.zeros(p + 1), []
    for x, label in zip(np.column_stack([X, np.full(n, float(intercept))]), y, strict=True):
        margins.append(w @ x)
        g = slope(loss, margins[-1], label) * x + ridge * w
        squares = squares + g**2
        H = delta + np.sqrt(squares)
        z = w - learning_rate * g / H
        w = np.append(truncated(z[:p], (H * np.abs(z))[:p], k), z[p])
    return w[:p], w[p], margins


# Streams of rows: penalties


def opg(X, y, *, l1, l2, loss, learning_rate, batch_size, intercept):
    """OPG, FOBOS: Duchi and Singer 2009, (2)-(3), Sections 5.1 and 5.3; l1 |w| + l2 / 2 |w|^2.

    argmin of |w - v|^2 / 2 + eta (l1 |w| + l2 / 2 w^2), where v = w - eta g.
    """
    w, b, margins = np.zeros(X.shape[1]), 0.0, []
    for t, (rows, labels) in enumerate(minibatches(batch_size, X, y), 1):
        margins.extend(rows @ w + b)
        slopes = slope(loss, rows @ w + b, labels) / len(labels)
        v = w - learning_rate * weighted_sum(slopes, rows)
        w = soft(v, learning_rate * l1) / (1 + learning_rate * l2)
        b -= own_step(loss, learning_rate, t, margins) * slopes.sum() * intercept
    return w, b, margins


def truncated_gradient(X, y, *, l1, theta, period, loss, learning_rate, batch_size, intercept):
    """Langford, Li and Zhang 2009, (4)-(6): T1(w - eta g, eta K l1, theta) in every K-th step."""
    w, b, margins = np.zeros(X.shape[1]), 0.0, []
    for t, (rows, labels) in enumerate(minibatches(batch_size, X, y), 1):
        margins.extend(rows @ w + b)
        slopes = slope(loss, rows @ w + b, labels) / len(labels)
        w = w - learning_rate * weighted_sum(slopes, rows)
        if t % period == 0:
            w = np.where(np.abs(w) <= theta, soft(w, learning_rate * period * l1), w)
        b -= own_step(loss, learning_rate, t, margins) * slopes.sum() * intercept
    return w, b, margins


def rda(X, y, *, l1, l2, gamma, rho, loss, batch_size, intercept):
    """RDA: Xiao 2010, Algorithm 2 with beta_t = gamma sqrt(t), h = |w|^2 / 2 + rho |w|.

    argmin of <g-, w> + l1 |w| + l2 / 2 |w|^2 + gamma / sqrt(t) h(w), (3) and (10) there.
    """
    (w, total), b, margins = np.zeros((2, X.shape[1])), 0.0, []
    for t, (rows, labels) in enumerate(minibatches(batch_size, X, y), 1):
        margins.extend(rows @ w + b)
        slopes = slope(loss, rows @ w + b, labels) / len(labels)
        total, weight = total + weighted_sum(slopes, rows), gamma / np.sqrt(t)
        w = -soft(total / t, l1 + weight * rho) / (l2 + weight)
        b -= own_step(loss, 1 / weight / t, t, margins) * slopes.sum() * intercept
    return w, b, margins


def sadmm(X, y, *, l1, rho, learning_rate, batch_size, intercept):
    """Ouyang et al. 2013, Algorithm 1; Suzuki 2013, OPG-ADMM, for b = w with a constant eta.

    b minimises <g, b> + rho / 2 |b - w - u|^2 + |b - b_t|^2 / (2 eta), g the gradient at b_t; then
    w minimises l1 |w| + rho / 2 |b - w - u|^2, and u -= b - w.
    """
    w, u, b = np.zeros((3, X.shape[1]))
    constant, margins = 0.0, []
    for t, (rows, labels) in enumerate(minibatches(batch_size, X, y), 1):
        margins.extend(rows @ b + constant)
        slopes = (rows @ b + constant - labels) / len(labels)
        b = (rho * (w + u) + b / learning_rate - weighted_sum(slopes, rows)) / (
            rho + 1 / learning_rate
        )
        w = soft(b - u, l1 / rho)
        u = u - (b - w)
        constant -= own_step("squared_error", learning_rate, t, margins) * slopes.sum() * intercept
    return w, constant


def arda(X, y, *, l1, loss, learning_rate, delta, intercept):
    """l1-ARDA: Duchi, Hazan and Singer 2011, (24) and Section 5.1, H_t = delta I + diag(s_t)."""
    n, p = X.shape
    penalty = np.append(np.full(p, l1), 0)
    w, gradients, squares, margins = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1), []
    for t, x in enumerate(np.column_stack([X, np.full(n, float(intercept))]), 1):
        margins.append(w @ x)
        g = slope(loss, margins[-1], y[t - 1]) * x
        gradients, squares = gradients + g, squares + g**2
        mean, H = gradients / t, delta + np.sqrt(squares)
        w = np.sign(-mean) * learning_rate * t / H * np.maximum(np.abs(mean) - penalty, 0)
    return w[:p], w[p], margins


def ada_fobos(X, y, *, l1, loss, learning_rate, delta, intercept):
    """Ada-Fobos: Duchi, Hazan and Singer 2011, (25) and Section 5.1, H_t = delta I + diag(s_t)."""
    n, p = X.shape
    penalty = np.append(np.full(p, l1), 0)
    w, squares, margins = np.zeros(p + 1), np.zeros(p + 1), []
    for x, label in zip(np.column_stack([X, np.full(n, float(intercept))]), y, strict=True):
        margins.append(w @ x)
        g = slope(loss, margins[-1], label) * x
        squares = squares + g**2
        H = delta + np.sqrt(squares)
        w = soft(w - learning_rate / H * g, learning_rate / H * penalty)
    return w[:p], w[p], margins


def radar(X, y, *, k, l1, radius, learning_rate, epoch_size, batch_size, intercept):
    """RADAR: Agarwal, Negahban and Wainwright 2012, Algorithm 1, with d = p + 1 with an intercept.

    In an epoch around c: mu += g + l1 sign(theta), and theta minimises alpha_t <mu, theta> +
    |theta - c|_p^2 / (2 (p - 1) R^2) where |theta - c|_p <= R, p = 2 log d / (2 log d - 1). The
    next has c = the mean of its iterates, R^2 / 2, l1 / sqrt(2) and twice as many steps.
    Ours: alpha_t = eta / sqrt(t), and the start of an epoch counts among its iterates. Returned is
    also in how many steps the ball binds.
    """
    Z = np.column_stack([X, np.ones(len(y))]) if intercept else X
    d = Z.shape[1]
    penalised = np.arange(d) < X.shape[1]
    p = 2 * np.log(d) / (2 * np.log(d) - 1)
    q = p / (p - 1)
    centre, mu, iterates, bound = np.zeros(d), np.zeros(d), [np.zeros(d)], 0
    for rows, labels in minibatches(batch_size, Z, y):
        theta, t = iterates[-1], len(iterates)
        g = weighted_sum(rows @ theta - labels, rows) / len(labels)
        mu = mu + g + l1 * np.sign(theta) * penalised
        norm = np.sum(np.abs(mu) ** q) ** (1 / q)
        direction = np.sign(mu) * (np.abs(mu) / norm) ** (q - 1)  # of length 1 in the norm p
        length = min(radius, learning_rate / np.sqrt(t) * norm * (p - 1) * radius**2)
        bound += length == radius
        iterates.append(centre - length * direction)
        if t == epoch_size:
            centre, mu = np.mean(iterates, axis=0), np.zeros(d)
            iterates = [centre]
            radius, l1, epoch_size = radius / np.sqrt(2), l1 / np.sqrt(2), 2 * epoch_size
    w = np.mean(iterates, axis=0)
    coef = w[penalised]
    return truncated(coef, np.abs(coef), k), w[-1] if intercept else 0.0, bound


# Running averages, on the rows themselves (Proposition 2 of the dissertation)


def moments(X, T, weight, centre):
    """(3.2), (3.3) of weighted rows, scales (inf of a constant, which says nothing) and means."""
    share = weight / weight.sum()
    mean, level = share @ X * centre, share @ T * centre
    scale = np.sqrt(share @ (X - mean) ** 2)
    scale = np.where(scale <= 1e-9 * np.abs(X).max(axis=0), np.inf, scale)
    Z = (X - mean) / scale
    S = (Z.T * share) @ Z + np.diag(np.isinf(scale))
    return S, (Z.T * share) @ (T - level), scale, mean, level


def solved(S, C, features, free):
    """(3.6); with the ridge if rows, less one if centred, are not more than features [code]."""
    own = S[np.ix_(features, features)] + 1e-5 * (free <= len(features)) * np.eye(len(features))
    W = np.zeros(C.shape)
    W[features] = np.linalg.solve(own, C[features])
    return W


def fading(weight, rate):
    """(3.11): what rows weigh in the end; docs/explain/averages.md."""
    shares, W = [], 0.0
    for w in weight:
        shares.append(max(min(1.0, w * rate), w / (W + w)))
        W = min(W + w, 1.0 / rate)
    left = np.append(np.cumprod(1.0 - np.array(shares)[::-1])[-2::-1], 1.0)
    return W * np.array(shares) * left


def ofsa(S, C, *, k, mu, rate, n_iter):
    """Dissertation, Algorithm 4: the features left; of several columns of C by their norm."""
    left, W = np.arange(len(S)), np.zeros(C.shape)
    for t in range(1, n_iter + 1):
        W[left] -= rate * (S[np.ix_(left, left)] @ W[left] - C[left])
        size = np.linalg.norm(W[left], axis=1)
        left = left[top(size, schedule(t, n_iter, 0, len(S), k, mu))]
        W *= np.isin(np.arange(len(S)), left)[:, None]
    return left


# Streams of columns


def mean_loss(name, u, y):
    """os, (2) and (3), which halves the squared hinge."""
    return np.mean(loss(name, u, y)) / (2 if name == "squared_hinge" else 1)


def mean_slopes(name, u, y):
    """dL / du: os, (4) and (5)."""
    return slope(name, u, y) / len(y) / (2 if name == "squared_hinge" else 1)


def mean_gradient(name, X, w, y):
    return X.T @ mean_slopes(name, X @ w, y)


CURVATURE = {"squared_error": 1.0, "squared_hinge": 1.0, "log_loss": 0.25}


def lipschitz(loss, k, n):
    """Our reading of L_F: k + 1 independent columns of mean square 1 (Marchenko, Pastur 1967)."""
    return CURVATURE[loss] * (1 + np.sqrt((k + 1) / n)) ** 2


def partial_step(loss, X, S, j, slopes, L, m, step):
    """Algorithm 1, lines 6-7, with eta = step / L_F.

    Ours: L_F grows to the curvature along this step, and along its part on S, all that is left of
    it if line 16 takes w_j back.
    """
    on_S = np.zeros(X.shape[1])
    on_S[S] = -X[:, S].T @ slopes / m
    whole = on_S.copy()
    whole[j] = -X[:, j] @ slopes
    for d in (on_S, whole):
        if d.any():
            L = max(L, CURVATURE[loss] * np.mean((X @ d) ** 2) / (d @ d))
    return step / L * whole, L


def smallest(w, S, j):
    """k* of lines 10 and 11 of Algorithm 1, of S and the arrival j.

    Ours, as no line says which of equals: the arrival, else that in the first place of S.
    """
    return min([j, *S], key=lambda i: abs(w[i]))


def online_substitution(X, y, *, k, m, c, step, loss, orders):
    """OS: os, Algorithm 1; and the arrivals that only the check of lines 12 to 16 refuses.

    Ours: what is selected takes the place of what it is substituted for.
    """
    n, p = X.shape
    w, S, L, refused = np.zeros(p), [], lipschitz(loss, k, n), []
    for j in (j for order in orders for j in order):
        if j in S:  # Not in the pool, line 3
            continue
        previous = w
        d, L = partial_step(loss, X, S, j, mean_slopes(loss, X @ w, y), L, m, step)
        w = w + d
        if len(S) < k:
            S = [*S, j]
            continue
        worst = smallest(w, S, j)
        following = np.where(np.arange(p) == worst, 0, w)
        rise = mean_loss(loss, X @ following, y) - mean_loss(loss, X @ previous, y)
        squared = np.sum((following - previous) ** 2)
        if rise <= c * (L / 2 - L / (2 * step)) * squared:
            w, S = following, [j if i == worst else i for i in S]
        else:
            w = np.where(np.arange(p) == j, 0, w)
            refused += [j] if worst != j else []
    return w, refused


def asynchronous_substitution(X, y, *, capacities, tau, m, c, step, loss, orders, rng):
    """Asy-OS: os, Algorithms 2 and 3; each arrival goes to a random worker; and what is refused.

    What it reads of u_C lacks what the others pushed in the last tau iterations (Assumption 2).
    With c > 0 the worker checks as in Algorithm 1, with the u_C that it has read; and ours: what
    has missed something and makes f larger is not added (Section 3.2 says "a check"): the worker
    reads u_C as it is, and tries once more. Of equals as in `online_substitution`.
    """
    n, p = X.shape
    q = len(capacities)
    w, S, pushed, refused = np.zeros(p), [[] for _ in range(q)], [], []
    L = [lipschitz(loss, sum(capacities), n)] * q
    for j in (j for order in orders for j in order):
        if any(j in kept for kept in S):
            continue
        t = rng.integers(q)
        unknown = [du for other, du in pushed[max(0, len(pushed) - tau) :] if other != t]
        for missed in (unknown, []):
            read = X @ w - sum(missed, np.zeros(n))
            d, L[t] = partial_step(loss, X, S[t], j, mean_slopes(loss, read, y), L[t], m, step)
            following, kept = w + d, [*S[t], j]
            if len(kept) > capacities[t]:
                worst = smallest(following, S[t], j)
                trial = np.where(np.arange(p) == worst, 0, following)
                rise = mean_loss(loss, read + X @ (trial - w), y) - mean_loss(loss, read, y)
                if c and rise > c * (L[t] / 2 - L[t] / (2 * step)) * np.sum((trial - w) ** 2):
                    refused += [j] if worst != j else []
                    worst = j
                following[worst] = 0
                kept = [j if i == worst else i for i in S[t]]
            late = any(du.any() for du in missed)
            if not (c and late and mean_loss(loss, X @ following, y) > mean_loss(loss, X @ w, y)):
                break
        pushed.append((t, X @ (following - w)))
        w, S[t] = following, kept
    return w, refused


def proximal_coordinates(X, y, *, k, l1, loss, orders):
    """os, Section 5: coordinate descent with the projected (k) or the proximal operation (l1)."""
    w = np.zeros(X.shape[1])
    for j in (j for order in orders for j in order):
        step = 1 / (CURVATURE[loss] * np.mean(X[:, j] ** 2))
        w[j] = soft(w[j] - step * mean_gradient(loss, X, w, y)[j], step * l1)
        if k:
            w = truncated(w, np.abs(w), k)
    return w


def grafting(X, y, *, l1, loss, orders, n_iter=3000):
    """Perkins and Theiler 2003, Sections 3-4: a feature enters if |dL / dw_j| > l1.

    Then all in the model are fitted again, here by FISTA (Beck, Teboulle 2009); what is 0 leaves.
    """
    w, S = np.zeros(X.shape[1]), []
    for j in (j for order in orders for j in order):
        if j in S or abs(mean_gradient(loss, X, w, y)[j]) <= l1:
            continue
        S = [*S, j]
        A, v = X[:, S], w[S]
        step = 1 / (CURVATURE[loss] * np.linalg.eigvalsh(A.T @ A / len(y)).max())
        ahead, inertia = v, 1.0
        for _ in range(n_iter):
            before, v = v, soft(ahead - step * mean_gradient(loss, A, ahead, y), step * l1)
            following = (1 + np.sqrt(1 + 4 * inertia**2)) / 2
            ahead = v + (inertia - 1) / following * (v - before)
            inertia = following
        w[S] = v
        S = [i for i in S if w[i] != 0]
    return w
