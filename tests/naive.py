"""The algorithms, written as slowly and plainly as the papers print them: the oracle of the tests.

Each takes dense rows in their order and returns (coefficients, intercept, margins), where
margins[i] is the prediction made before row i was learned. No fast code is shared with ofslib.
"""

import numpy as np


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
        gone = np.setdiff1d(np.arange(p), alive)
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
        b[gone], v[gone] = 0, 0
        u = t - warmup // batch_size
        if u > 0 and schedule(u, T, p, k, mu) < len(alive):
            worth = measure(importance, b[:p], X[: rows[-1] + 1])[alive]
            alive = alive[top(worth, schedule(u, T, p, k, mu))]
        drop = np.setdiff1d(np.arange(p), alive)
        b[drop], v[drop] = 0, 0
    return b[:p], b[p], margins


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
