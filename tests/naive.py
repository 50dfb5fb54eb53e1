"""The algorithms, written as slowly and plainly as the papers print them: the oracle of the tests.

Each takes dense rows in their order and returns (coefficients, intercept, margins), where
margins[i] is the prediction made before row i was learned. No fast code is shared with ofslib.
"""

import numpy as np
from scipy import stats


def slope(loss, m, y):
    if loss == "squared_error":
        return m - y
    if loss == "log_loss":
        return -y * np.exp(-np.logaddexp(0, y * m))
    gap = max(0.0, 1 - y * m)
    return -y * (gap > 0) if loss == "hinge" else -2 * y * gap


def loss(name, m, y):
    gap = max(0.0, 1 - y * m)
    return {
        "squared_error": (y - m) ** 2 / 2,
        "log_loss": np.logaddexp(0, -y * m),
        "hinge": gap,
        "squared_hinge": gap**2,
    }[name]


def top(values, k):
    """Indices of the k largest values; of equals the lower index."""
    return sorted(sorted(range(len(values)), key=lambda j: (-values[j], j))[:k])


def measure(importance, coef, X):
    variance = X.var(axis=0) if len(X) else np.zeros(len(coef))
    return {
        "coef": np.abs(coef),
        "scaled_coef": np.sqrt(variance) * np.abs(coef),
        "scaled_root": np.sqrt(variance * np.abs(coef)),
    }[importance]


def schedule(t, T, p, k, mu):
    return k + round((p - k) * max(0, (T - t) / (t * mu + T)))


def _batches(X, size):
    return [np.arange(i, min(i + size, len(X))) for i in range(0, len(X), size)]


def sfsa(X, y, *, k, loss, learning_rate, batch_size, optimizer, mu, warmup, importance, intercept):
    n, p = X.shape
    k = min(k, p)
    T = -(-n // batch_size) - warmup // batch_size
    A = np.column_stack([X, np.ones(n) * intercept])
    b, v, s = np.zeros(p + 1), np.zeros(p + 1), np.zeros(p + 1)
    alive, margins = np.arange(p), np.zeros(n)
    for t, rows in enumerate(_batches(X, batch_size), start=1):
        point = b + 0.9 * v if optimizer == "nesterov" else b
        margins[rows] = A[rows] @ point
        g = np.mean([slope(loss, margins[i], y[i]) * A[i] for i in rows], axis=0)
        dropped = np.setdiff1d(np.arange(p), alive)
        if optimizer == "sgd":
            b = b - learning_rate * g
        elif optimizer == "momentum":
            v = 0.9 * v - learning_rate * g
            b = b + v
        elif optimizer == "nesterov":
            v = 0.9 * v - 0.1 * learning_rate * g
            b = b + v
        else:
            v, s = 0.9 * v + 0.1 * g, 0.999 * s + 0.001 * g**2
            b = b - learning_rate * (v / (1 - 0.9**t)) / (np.sqrt(s / (1 - 0.999**t)) + 1e-8)
        b[dropped], v[dropped] = 0, 0
        u = t - warmup // batch_size
        if u > 0 and schedule(u, T, p, k, mu) < len(alive):
            worth = measure(importance, b[:p], X[: rows[-1] + 1])[alive]
            alive = alive[top(worth, schedule(u, T, p, k, mu))]
        drop = np.setdiff1d(np.arange(p), alive)
        b[drop], v[drop] = 0, 0
    return b[:p], b[p], margins


def spectral_sfsa(X, y, *, k, loss, batch_size, mu, warmup, maturity):
    p = X.shape[1]
    T, q, b = maturity // batch_size, warmup // batch_size, batch_size
    burn_in = min(max(T // 16, 1), 8)
    curvature = {"log_loss": 0.25, "squared_hinge": 2}.get(loss, 1)
    w, mean, v = np.zeros(p), np.zeros(p), X[0] / np.linalg.norm(X[0])
    alive, norm, seen, curvatures, observed = np.ones(p, bool), 0, np.empty((0, p)), [], 0

    def inverse_rate():
        square = np.square(seen[:, alive]).mean()
        return max(norm, curvature * square) + curvature * square * alive.sum() / b, square

    for t, rows in enumerate(_batches(X, b), start=1):
        x, m = X[rows] * alive, X[rows] @ w
        s = np.array([slope(loss, m[i], y[r]) for i, r in enumerate(rows)])
        g = s @ x / len(rows)
        if t <= burn_in or (t - 1) % 4 == 0:
            a = np.full(len(rows), float(curvature))
            if loss == "log_loss":
                a[np.abs(m) > 1e-3] = [np.tanh(s / 2) / s / 2 for s in m[np.abs(m) > 1e-3]]
            image, new = x.T @ (a * (x @ v)) / len(rows), 1 if observed < burn_in else 0.2
            norm = (1 - new) * norm + new * (v @ image)
            v = (1 - new) * norm * v + new * image
            v, observed = v / np.linalg.norm(v), observed + 1
            seen, curvatures = np.vstack([seen, X[rows]]), [*curvatures, *a]
        if t > burn_in:
            own = curvature * len(rows) * g @ g / max(s @ s, 1e-300)
            w = w - g / max(inverse_rate()[0], own / 2)
        mean = mean + min(1, 8 / (t - T if t > T else t)) * (w - mean)
        keep = schedule(t - q, T - q, p, k, mu) if t > max(q, burn_in) else p
        if keep < alive.sum():
            before, square = inverse_rate()
            before += t * np.mean(curvatures) * square
            alive = np.isin(np.arange(p), top(np.where(alive, np.abs(mean), -1), keep))
            norm = norm * np.sum(v[alive] ** 2)
            v = v * alive / np.linalg.norm(v[alive])
            after, square = inverse_rate()
            after += t * np.mean(curvatures) * square
            stretch = alive * (1 if loss == "squared_error" else before / after)
            w, mean = stretch * w, stretch * mean
    return mean


def sgdt(X, y, *, k, loss, learning_rate, batch_size, maturity, importance, intercept):
    n, p = X.shape
    k = min(k, p)
    A = np.column_stack([X, np.ones(n) * intercept])
    b, alive, margins = np.zeros(p + 1), np.arange(p), np.zeros(n)
    for t, rows in enumerate(_batches(X, batch_size), start=1):
        margins[rows] = A[rows] @ b
        b = b - learning_rate * np.mean(
            [slope(loss, margins[i], y[i]) * A[i] for i in rows], axis=0
        )
        if t == -(-maturity // batch_size):
            alive = np.array(top(measure(importance, b[:p], X[: rows[-1] + 1]), k))
        b[np.setdiff1d(np.arange(p), alive)] = 0
    return b[:p], b[p], margins


def siht(X, y, **own):
    return fofs(X, y, **own, alpha=0.0)


def fofs(X, y, *, k, loss, learning_rate, alpha, batch_size, intercept):
    n, p = X.shape
    k = min(k, p)
    w, b, margins = np.zeros(p), 0.0, np.zeros(n)
    for rows in _batches(X, batch_size):
        margins[rows] = X[rows] @ w + b * intercept
        s = np.array([slope(loss, margins[i], y[i]) for i in rows])
        w = w - learning_rate * (s @ X[rows] / len(rows) + alpha * w)
        b -= learning_rate * s.mean() * intercept
        if alpha > 0:
            w = w * min(1, 1 / np.sqrt(alpha) / max(np.linalg.norm(w), 1e-300))
        w[np.setdiff1d(np.arange(p), top(np.abs(w), k))] = 0
    return w, b, margins


def barda(X, y, *, k, loss, learning_rate, alpha, delta, intercept):
    n, p = X.shape
    k = min(k, p)
    A = np.column_stack([X, np.ones(n) * intercept])
    G, w, margins, gradients = np.zeros(p + 1), np.zeros(p + 1), np.zeros(n), np.zeros((n, p + 1))
    for t in range(1, n + 1):
        margins[t - 1] = A[t - 1] @ w
        gradients[t - 1] = slope(loss, margins[t - 1], y[t - 1]) * A[t - 1]
        G = G + gradients[t - 1]
        H = delta + np.sqrt(np.square(gradients[:t]).sum(axis=0))
        w = -learning_rate * G / (alpha * learning_rate * t + H)
        w[np.setdiff1d(np.arange(p), top((H * w**2)[:p], k))] = 0
    return w[:p], w[p], margins


def bamd(X, y, *, k, loss, learning_rate, alpha, delta, intercept):
    n, p = X.shape
    k = min(k, p)
    A = np.column_stack([X, np.ones(n) * intercept])
    w, squares, margins = np.zeros(p + 1), np.zeros(p + 1), np.zeros(n)
    for t in range(n):
        margins[t] = A[t] @ w
        g = slope(loss, margins[t], y[t]) * A[t] + alpha * np.append(w[:p], 0)
        squares += g**2
        H = delta + np.sqrt(squares)
        w = w - learning_rate * g / H
        w[np.setdiff1d(np.arange(p), top((H * np.abs(w))[:p], k))] = 0
    return w[:p], w[p], margins


def sofs(X, y, *, k, gamma, intercept):
    n, p = X.shape
    k = min(k, p)
    A = np.column_stack([X, np.ones(n) * intercept])
    mu, sigma, margins = np.zeros(p + 1), np.ones(p + 1), np.zeros(n)
    for t in range(n):
        x = A[t]
        margins[t] = x @ mu
        if y[t] * margins[t] < 1:
            beta = 1 / (x @ (sigma * x) + gamma)
            mu = mu + (1 - y[t] * margins[t]) * beta * y[t] * sigma * x
            sigma = sigma - beta * (sigma * x) ** 2
            mu[np.setdiff1d(np.arange(p), top(-sigma[:p], k))] = 0
    return mu[:p], mu[p], margins


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0)


def batches(X, y, *, loss, batch_size, intercept, model, step):
    """Show the rows in mini-batches; `step` takes the mean gradient at w = model()."""
    n = len(X)
    A, margins = np.column_stack([X, np.ones(n) * intercept]), np.zeros(n)
    for start in range(0, n, batch_size):
        rows = slice(start, min(start + batch_size, n))
        margins[rows] = A[rows] @ model()
        slopes = [slope(loss, m, t) for m, t in zip(margins[rows], y[rows], strict=True)]
        step(slopes @ A[rows] / len(slopes))
    return margins


def opg(X, y, *, l1, l2, loss, learning_rate, batch_size, intercept):
    w = np.zeros(X.shape[1] + 1)

    def step(g):
        w[:] = w - learning_rate * g
        w[:-1] = soft(w[:-1], learning_rate * l1) / (1 + learning_rate * l2)

    own = {"loss": loss, "batch_size": batch_size, "intercept": intercept}
    margins = batches(X, y, **own, model=lambda: w, step=step)
    return w[:-1], w[-1], margins


def truncated_gradient(X, y, *, l1, theta, period, loss, learning_rate, batch_size, intercept):
    w, steps = np.zeros(X.shape[1] + 1), [0]

    def step(g):
        w[:] = w - learning_rate * g
        steps[0] += 1
        if steps[0] % period == 0:
            less = soft(w[:-1], period * learning_rate * l1)
            w[:-1] = np.where(np.abs(w[:-1]) <= theta, less, w[:-1])

    own = {"loss": loss, "batch_size": batch_size, "intercept": intercept}
    margins = batches(X, y, **own, model=lambda: w, step=step)
    return w[:-1], w[-1], margins


def rda(X, y, *, l1, l2, gamma, rho, loss, batch_size, intercept):
    w, gradients = np.zeros(X.shape[1] + 1), []

    def step(g):
        gradients.append(g)
        t, mean = len(gradients), np.mean(gradients, axis=0)
        w[:-1] = -soft(mean[:-1], l1 + gamma * rho / np.sqrt(t)) / (l2 + gamma / np.sqrt(t))
        w[-1] = -np.sqrt(t) / gamma * mean[-1]

    own = {"loss": loss, "batch_size": batch_size, "intercept": intercept}
    margins = batches(X, y, **own, model=lambda: w, step=step)
    return w[:-1], w[-1], margins


def sadmm(X, y, *, l1, rho, learning_rate, batch_size, intercept):
    b, w, u = np.zeros((3, X.shape[1] + 1))

    def step(g):
        b[:-1] = (rho * (w + u) + b / learning_rate - g)[:-1] / (rho + 1 / learning_rate)
        b[-1] -= learning_rate * g[-1]
        w[:-1] = soft(b - u, l1 / rho)[:-1]
        w[-1] = b[-1]
        u[:-1] -= (b - w)[:-1]

    own = {"loss": "squared_error", "batch_size": batch_size, "intercept": intercept}
    batches(X, y, **own, model=lambda: b, step=step)
    return w[:-1], w[-1]


def arda(X, y, *, l1, loss, learning_rate, delta, intercept):
    w, gradients = np.zeros(X.shape[1] + 1), []

    def step(g):
        gradients.append(g)
        t, total = len(gradients), np.sum(gradients, axis=0)
        H = delta + np.sqrt(np.sum(np.square(gradients), axis=0))
        w[:-1] = -learning_rate * soft(total, t * l1)[:-1] / H[:-1]
        w[-1] = -learning_rate * total[-1] / H[-1]

    own = {"loss": loss, "batch_size": 1, "intercept": intercept}
    margins = batches(X, y, **own, model=lambda: w, step=step)
    return w[:-1], w[-1], margins


def ada_fobos(X, y, *, l1, loss, learning_rate, delta, intercept):
    w, squares = np.zeros((2, X.shape[1] + 1))

    def step(g):
        squares[:] += g**2
        H = delta + np.sqrt(squares)
        w[:] = w - learning_rate * g / H
        w[:-1] = soft(w[:-1], learning_rate * l1 / H[:-1])

    own = {"loss": loss, "batch_size": 1, "intercept": intercept}
    margins = batches(X, y, **own, model=lambda: w, step=step)
    return w[:-1], w[-1], margins


def radar(X, y, *, k, l1, radius, learning_rate, epoch_size, batch_size, intercept):
    d = X.shape[1] + 1
    q = 2 * np.log(d)
    p = q / (q - 1)
    w, centre, dual, iterates, epoch = np.zeros(d), np.zeros(d), np.zeros(d), [np.zeros(d)], [0]

    def step(g):
        R, penalty = radius / 2 ** (epoch[0] / 2), l1 / 2 ** (epoch[0] / 2)
        dual[:] += g + np.append(penalty * np.sign(w[:-1]), 0)
        t = len(iterates)
        # The gradient of |.|_q**2 / 2 leads from the dual to the primal
        norm = np.sum(np.abs(dual) ** q) ** (1 / q)
        link = np.sign(dual) * np.abs(dual) ** (q - 1) * norm ** (2 - q) if norm > 0 else dual
        move = -(p - 1) * R**2 * learning_rate / np.sqrt(t) * link
        length = np.sum(np.abs(move) ** p) ** (1 / p)
        w[:] = centre + move * min(1, R / length if length > 0 else 1)
        iterates.append(w.copy())
        if t == epoch_size * 2 ** epoch[0]:
            centre[:] = np.mean(iterates, axis=0)
            w[:], dual[:] = centre, 0
            iterates[:] = [centre.copy()]
            epoch[0] += 1

    own = {"loss": "squared_error", "batch_size": batch_size, "intercept": intercept}
    batches(X, y, **own, model=lambda: w, step=step)
    mean = np.mean(iterates, axis=0)
    coef = np.zeros(d - 1)
    kept = top(np.abs(mean[:-1]), k)
    coef[kept] = mean[kept]
    return coef, mean[-1]


# Running averages: the dissertation's algorithms offline, on the rows themselves (Proposition 2).
# Each returns (coefficients, intercept).


def standardise(X, y, centre=True):
    """Rows with the standardised features, the centred y, and the scale of the features."""
    if centre:
        X, y = X - X.mean(axis=0), y - y.mean()
    scale = np.sqrt(np.mean(X**2, axis=0))
    return X / scale, y, scale


def least_squares(X, y, support, centre=True):
    """On the features `support`, with an intercept if centred."""
    columns = [X[:, support]] + [np.ones((len(X), 1))] * centre
    solution = np.linalg.lstsq(np.hstack(columns), y, rcond=None)[0]
    coef = np.zeros(X.shape[1])
    coef[support] = solution[: len(support)]
    return coef, solution[-1] if centre else 0.0


def olsth(X, y, *, k, centre=True):
    Z, t, _ = standardise(X, y, centre)
    coef, _ = least_squares(Z, t, range(X.shape[1]), centre=False)
    return least_squares(X, y, top(np.abs(coef), k), centre)


def ofsa(X, y, *, k, mu, rate, n_iter, centre=True):
    (Z, t, _), (n, p) = standardise(X, y, centre), X.shape
    coef, alive = np.zeros(p), np.arange(p)
    for i in range(1, n_iter + 1):
        coef[alive] -= rate * -Z[:, alive].T @ (t - Z @ coef) / n
        alive = alive[top(np.abs(coef[alive]), schedule(i, n_iter, p, k, mu))]
        coef[np.setdiff1d(np.arange(p), alive)] = 0
    return least_squares(X, y, alive, centre)


def theta(penalty, v, level, shape):
    """The threshold operators Theta(v; level) of the dissertation; of SCAD, by Fan and Li 2001."""
    size, sign = abs(v), np.sign(v)
    if size <= level:
        return 0.0
    if penalty == "lasso" or (penalty == "scad" and size <= 2 * level):
        return sign * (size - level)
    if size > shape * level:
        return v
    if penalty == "mcp":
        return sign * (size - level) / (1 - 1 / shape)
    return ((shape - 1) * v - sign * shape * level) / (shape - 2)


def thresholded(X, y, *, penalty, shape, level, rate, n_iter):
    """Algorithm 5 without the refit: coefficients of the standardised features."""
    (Z, t, _), (n, p) = standardise(X, y), X.shape
    coef = np.zeros(p)
    for _ in range(n_iter):
        coef = coef - rate * -Z.T @ (t - Z @ coef) / n
        coef = np.array([theta(penalty, v, rate * level, shape) for v in coef])
    return coef


def penalty_value(penalty, w, level, shape):
    """P(w; level), by the integral of its slope as MCP and SCAD are defined."""
    grid = np.linspace(0, abs(w), 2001)
    if penalty == "elastic_net":
        slopes = level + shape * grid
    elif penalty == "mcp":
        slopes = np.maximum(level - grid / shape, 0)
    else:
        slopes = np.where(grid <= level, level, np.maximum(shape * level - grid, 0) / (shape - 1))
    return np.trapezoid(slopes, grid)


def information_criterion(X, y, coef, intercept, price):
    n, residual = len(y), y - X @ coef - intercept
    return n * np.log(np.mean(residual**2)) + price * np.count_nonzero(coef)


# Streams of columns: `os`. Columns are taken as they are; each returns the coefficients.


def mean_loss(name, X, w, y):
    return np.mean([loss(name, m, t) for m, t in zip(X @ w, y, strict=True)])


def mean_gradient(name, X, w, y):
    return X.T @ slopes(name, X @ w, y) / len(y)


def lipschitz(name, k, n):
    bend = {"log_loss": 0.25, "squared_hinge": 2}.get(name, 1)
    return bend, bend * (1 + np.sqrt((k + 1) / n)) ** 2


def substitution_step(X, S, j, g, L, *, m, step, bend):
    """The gradient step on features S and j, and L_F, which grows to the curvature along it."""
    d = np.zeros(X.shape[1])
    d[S], d[j] = -g[S] / m, -g[j]
    for v in (np.where(np.arange(len(d)) == j, 0, d), d):
        if v.any():
            L = max(L, bend * np.sum((X @ v) ** 2) / (len(X) * v @ v))
    return step / L * d, L


def online_substitution(X, y, *, k, m, c, step, loss, orders):
    w, S = np.zeros(X.shape[1]), []
    bend, L = lipschitz(loss, k, len(y))
    for j in (j for order in orders for j in order):
        if j in S:
            continue
        d, L = substitution_step(
            X, S, j, mean_gradient(loss, X, w, y), L, m=m, step=step, bend=bend
        )
        before, w, S = w, w + d, [*S, j]
        if len(S) > k:
            worst = min(S, key=lambda i: abs(w[i]))
            after = w.copy()
            after[worst] = 0
            drop = mean_loss(loss, X, after, y) - mean_loss(loss, X, before, y)
            if drop <= c * (L / 2 - L / (2 * step)) * np.sum((after - before) ** 2):
                w = after
            else:
                worst, w[j] = j, 0
            S.remove(worst)
    return w


def asynchronous_substitution(X, y, *, capacities, tau, m, step, loss, orders, rng):
    w, changes, S = np.zeros(X.shape[1]), [], [[] for _ in capacities]
    bend, L = lipschitz(loss, sum(capacities), len(y))
    L = [L] * len(S)
    for j in (j for order in orders for j in order):
        if any(j in kept for kept in S):
            continue
        t = rng.integers(len(S))
        late = [change for other, change in changes[max(0, len(changes) - tau) :] if other != t]
        g = mean_gradient(loss, X, w - np.sum([0 * w, *late], axis=0), y)
        d, L[t] = substitution_step(X, S[t], j, g, L[t], m=m, step=step, bend=bend)
        before, w = w, w + d
        S[t].append(j)
        if len(S[t]) > capacities[t]:
            worst = min(S[t], key=lambda i: abs(w[i]))
            w[worst] = 0
            S[t].remove(worst)
        changes.append((t, w - before))
    return w


def proximal_coordinates(X, y, *, k, l1, loss, orders):
    """The naive baselines: project on k features if k is given, else shrink by l1."""
    w = np.zeros(X.shape[1])
    bend = lipschitz(loss, 1, 1)[0]
    for j in (j for order in orders for j in order):
        w[j] = soft(w[j] - mean_gradient(loss, X, w, y)[j] / bend, l1 / bend)
        if k:
            w[np.setdiff1d(np.arange(len(w)), top(np.abs(w), k))] = 0
    return w


def grafting(X, y, *, l1, loss, orders, sweeps=3000):
    w, S = np.zeros(X.shape[1]), []
    rate = 1 / lipschitz(loss, 1, 1)[0] / np.linalg.eigvalsh(X.T @ X / len(y)).max()
    for j in (j for order in orders for j in order):
        if j in S or abs(mean_gradient(loss, X, w, y)[j]) <= l1:
            continue
        S.append(j)
        for _ in range(sweeps):
            w[S] = soft(w[S] - rate * (X[:, S].T @ slopes(loss, X @ w, y) / len(y)), rate * l1)
        S = [i for i in S if w[i] != 0]
    return w


def slopes(loss, margins, y):
    return np.array([slope(loss, m, t) for m, t in zip(margins, y, strict=True)])


# Unsupervised selection of columns and its baselines: `ofs`.


def online_leverage(A, draws, c, eps, variant="printed", ridge=None, n_initial=0):
    """Algorithm 1, with the inverse computed anew for each feature: scores, sampled, weights."""
    n = len(A)
    kept, scores, sampled, weights = np.zeros((n, 0)), [], [], []
    for j, a in enumerate(A.T):
        gram = kept @ kept.T
        if variant == "ridge":
            score = a @ np.linalg.inv(gram + ridge * np.eye(n)) @ a
        else:
            inverse = np.linalg.pinv(gram, rcond=1e-10, hermitian=True)
            score = a @ inverse @ a
            if variant == "span" and np.linalg.norm(a - gram @ inverse @ a) > 1e-6:
                score = 1.0
        score = min((1 + eps) * score, 1.0)
        probability = 1.0 if j < n_initial else min(c * score, 1.0)
        scores.append(score)
        if draws[j] < probability:
            sampled.append(j)
            weights.append(1 / np.sqrt(probability))
            kept = np.column_stack([kept, a / np.sqrt(probability)])
    return np.array(scores), sampled, np.array(weights)


def alpha_investing(X, y, wealth=0.5, payout=0.5):
    """The features accepted, and the wealth before each test and after the last."""
    accepted, course = [], [wealth]
    for i, x in enumerate(X.T, start=1):
        alpha = wealth / (2 * i)
        design = np.column_stack([np.ones(len(y)), X[:, accepted], x])
        coef, _, rank, _ = np.linalg.lstsq(design, y)
        freedom = len(y) - design.shape[1]
        p_value = 1.0
        if rank == design.shape[1] and freedom > 0:
            variance = np.sum((y - design @ coef) ** 2) / freedom
            error = np.sqrt(variance * np.linalg.inv(design.T @ design)[-1, -1])
            p_value = 2 * stats.t.sf(abs(coef[-1]) / error, freedom)
        wealth -= alpha
        if p_value < alpha:
            accepted.append(i - 1)
            wealth += payout
        course.append(wealth)
    return accepted, course


def laplacian_scores(X, n_neighbors, bandwidth):
    """He, Cai and Niyogi 2005, Section 2, with dense matrices."""
    n = len(X)
    squares = np.array([[np.sum((a - b) ** 2) for b in X] for a in X])
    S = np.zeros((n, n))
    for i in range(n):
        for j in sorted(set(range(n)) - {i}, key=lambda j: squares[i, j])[:n_neighbors]:
            S[i, j] = S[j, i] = np.exp(-squares[i, j] / bandwidth)
    D, one = np.diag(S.sum(axis=1)), np.ones(n)
    scores = []
    for f in X.T:
        f = f - (f @ D @ one) / (one @ D @ one)
        scores.append((f @ (D - S) @ f) / (f @ D @ f))
    return np.array(scores)
