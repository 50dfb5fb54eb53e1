"""Stochastic Feature Selection with Annealing: sfsa, Algorithm 1; dissertation, Section 2.1.

Mini-batch gradient descent on the features that are still in the model; after step t only the
M_t most important ones stay, M_t falling from p to k.

The file is longer than others: steps of both kinds and the model at any time share a loop.
"""

from enum import IntEnum
from numbers import Real
from typing import NamedTuple

import numpy as np

from ofslib._jit import generic, kernel, kind, nth
from ofslib.kernels import leaving, rows, step_size
from ofslib.kernels.losses import Loss
from ofslib.kernels.minibatch import gather_with, pace
from ofslib.kernels.selection import (
    PATH,
    Importance,
    add_squares,
    annealed,
    best_model,
    drop_least,
    measure_noise,
    moments_for,
    new_noise,
    rank,
)
from ofslib.streams.joint import JointClassifier
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    different_rows,
    estimator,
    number,
    one_of,
    param,
)
from ofslib.streams.relay import AnytimeHyper, ForgetHyper, new_relay, show
from ofslib.streams.row_stream import RowRegressor, RowStream, batches

# Where mini-batches touch few features, one of so many leaves at least, if any does.
ROUND = 16
TINY = 1e-100  # below it `lag` begins anew
# Rows of a mini-batch, and the least steps until maturity that an automatic one makes.
_ROWS, _STEPS = 25, 250
_ONLY_OBSERVED = (
    "{0.__class__.__name__} has no features yet: with learning_rate='auto' the first {1} rows tell "
    "how large the steps may be, and {0.n_samples_seen_} were shown. A smaller `batch_size` needs "
    "fewer, and a number as `learning_rate` none."
)


class Optimizer(IntEnum):
    """Codes of the optimizers; the papers call nesterov SFSA-AG and adam SFSA-Adam."""

    sgd = 0
    momentum = 1
    nesterov = 2
    adam = 3


class Hyper(NamedTuple):
    k: int
    loss: Loss
    optimizer: Optimizer
    learning_rate: float  # if constant
    momentum: float
    batch_size: int
    importance: Importance
    mu: float
    warmup: int  # steps before pruning starts
    maturity: int  # steps until k features are left; 0: never prune
    spectral: bool  # step size by the spectral norm; then a mean of the iterates is the model
    burn_in: int  # mini-batches that are only observed then, before the first step
    different: int  # rows of the first pass: later ones tell nothing new of the noise
    intercept: float  # 1.0 or 0.0


class WithMemory(Hyper):
    """Those of an optimizer that remembers gradients: what it does is compiled where it is used."""


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) coefficients and intercept
    v: np.ndarray  # (p + 1,) velocity (Adam: mean gradient), or (1,) for sgd
    # (p + 1,) w + momentum * v (Adam: mean squared gradient; spectral: see `lag`), or (1,)
    ahead: np.ndarray
    # (1,) where it is 0 `ahead` is the mean of w; else w + lag * ahead is, but of the intercept
    lag: np.ndarray
    step_size: step_size.StepSize
    active: rows.Active
    batch: rows.Batch
    moments: rows.Moments  # of different rows, if features are ranked by them
    noise: np.ndarray  # (1, 3) of the coefficients
    steps: np.ndarray  # (1,) gradient steps made
    scratch: np.ndarray  # (2, p + 1) of the selection


@kernel
def adam(w, g, mean, square, t, rate):
    """One coordinate of Adam's step t: new coefficient, mean gradient, mean squared gradient."""
    mean = 0.9 * mean + 0.1 * g
    square = 0.999 * square + 0.001 * g * g
    root = np.sqrt(square / (1.0 - 0.999**t)) + 1e-8
    return w - rate * mean / (1.0 - 0.9**t) / root, mean, square


@kernel(allocates=False)
def descend(state, hp, others_coast):
    """Change the coefficients by the mean gradient of the batch."""
    w, batch, active, known = state.w, state.batch, state.active, state.step_size
    g, n, rate = batch.gradient, batch.count[rows.ROWS], hp.learning_rate
    if hp.spectral:
        if state.steps[0] < hp.burn_in:
            return
        stable = step_size.stable_rate(known, active, n, hp.loss)
        rate = step_size.rate_of_batch(known, batch, active, hp.loss, stable)
        if hp.intercept > 0.0:
            # Features and intercept, each at its own rate; together they are stable at half of it.
            own = step_size.intercept_rate(known, n, hp.loss)
            # Where heavy rows shorten the step of the features, that of the intercept shortens too:
            # else it alone would follow all rows in full.
            own *= rate / stable if stable > 0.0 else 1.0
            rate *= 0.5
            if rate > 0.0:
                g[-1] *= 0.5 * own / rate
            else:
                w[-1] -= 0.5 * own * g[-1] / n
    else:
        g[-1] *= pace(hp, state.steps[0] + 1, batch.curvature)
    state.noise[0, PATH] += rate
    move(state, hp, rate, others_coast)


@generic
def move(state, hp, rate, others_coast):
    """A step by the mean gradient of the batch; of touched features only if the others coast."""
    return _by_memory if kind(hp) is WithMemory else _by_gradient


def _by_gradient(state, hp, rate, others_coast):
    if state.lag[0] > 0.0:
        other = -rate / state.lag[0]
        rows.descend_and_clear(state.w, state.ahead, state.batch, state.active, rate, other)
    else:
        rows.descend(state.w, state.batch, state.active, rate)


def _by_memory(state, hp, rate, others_coast):
    w, v, ahead, batch, active = state.w, state.v, state.ahead, state.batch, state.active
    g, n, m = batch.gradient, batch.count[rows.ROWS], hp.momentum
    # No optimizer moves the intercept, which has its own step.
    w[-1] -= rate * g[-1] / n
    ahead[-1] = w[-1]
    touched, left = batch.touched[: batch.count[rows.TOUCHED]], active.index[: active.size[0]]
    for j in touched if others_coast else left:
        mean = g[j] / n
        if hp.optimizer == Optimizer.adam:
            w[j], v[j], ahead[j] = adam(w[j], mean, v[j], ahead[j], state.steps[0] + 1, rate)
        else:
            # The form that reproduces SFSA-AG weighs the gradient by 1 - m: an average, no sum.
            w[j], v[j] = leaving.pushed(w[j], v[j], (1.0 - m) * rate * mean, m)
            if hp.optimizer == Optimizer.nesterov:
                ahead[j] = w[j] + m * v[j]


@kernel(allocates=False)
def features_left(state, hp):
    """M_t once the warm-up is over; until then all."""
    t, active, p = state.steps[0] - hp.warmup, state.active, len(state.active.index)
    if hp.maturity == 0 or t <= 0 or state.steps[0] <= hp.burn_in:
        return active.size[0]
    left = annealed(t, hp.maturity - hp.warmup, p, min(hp.k, p), hp.mu)
    return min(left, active.size[0])


@kernel(allocates=False)
def is_due(state, hp):
    """Whether features leave now: by ones, or, where steps touch few of them, many at once."""
    m, keep = state.active.size[0], features_left(state, hp)
    return keep < m and (state.lag[0] == 0.0 or keep <= hp.k or ROUND * (m - keep) >= m)


@kernel(allocates=False)
def anneal(state, hp):
    """Keep the M_t most important features."""
    update_noise(state, hp)
    ranked, active = ranked_by(state, hp), state.active
    rank(state.scratch[0], ranked, active, state.moments, hp.importance, state.noise)
    drop(state, hp)


@kernel
def anneal_together(states, hp):
    """The same for stacked models, which keep the same features."""
    _anneal_together(states, hp, np.empty(states.w.shape[1]))


@kernel(allocates=False)
def _anneal_together(states, hp, norms):
    n, first = len(states.w), nth(states, 0)
    norms[:] = 0.0
    for c in range(n):
        state = nth(states, c)
        add_squares(norms, ranked_by(state, hp), state.active)
        update_noise(state, hp)
    for j in range(len(norms)):
        norms[j] = np.sqrt(norms[j])
    noise = states.noise[:, 0]
    rank(first.scratch[0], norms, first.active, first.moments, hp.importance, noise)
    # The first one last: to drop features changes the values that are not a number.
    for c in range(n - 1, -1, -1):
        state = nth(states, c)
        rows.overwrite(state.scratch[0], first.scratch[0])
        drop(state, hp)


@kernel(allocates=False)
def update_noise(state, hp):
    """Update the noise of the coefficients, if features are ranked by it."""
    if hp.importance == Importance.noise_aware:
        p, n = len(state.active.index), state.moments.rows[0]
        measure_noise(state.noise, state.batch.curvature, n, p, hp.k)


@kernel(allocates=False)
def drop(state, hp):
    """Keep the M_t features with the largest values in `scratch`, in the order of `active`."""
    active, m, keep = state.active, state.active.size[0], features_left(state, hp)
    before = current_rate(state, hp) if hp.spectral else 0.0
    drop_least(state.w, active, keep, state.scratch)
    if hp.spectral:
        step_size.drop_features(state.step_size, active, active.index[keep:m])
        for j in active.index[keep:m]:
            state.ahead[j] = 0.0
        grow(state, hp, before)
    if hp.optimizer != Optimizer.sgd:
        for j in active.index[keep:m]:
            state.v[j] = 0.0
            state.ahead[j] = 0.0


@kernel(allocates=False)
def current_rate(state, hp):
    """The step size of a whole mini-batch."""
    return step_size.stable_rate(state.step_size, state.active, hp.batch_size, hp.loss)


@kernel(allocates=False)
def grow(state, hp, before):
    """Scale the coefficients as if all steps had been as large as they are now, not `before`.

    A coefficient is about the sum of all mini-batches' gradients by it over the inverse of the step
    and the curvature in them, as with a ridge penalty. When features leave and the step grows, the
    late rows alone would else tell which features stay. All have one factor, by the curvature of
    those that stay: by its own a rare feature would outgrow what is known of it. With the squared
    error, whose descent forgets where it began, there is nothing to scale.
    """
    known, active, after = state.step_size, state.active, current_rate(state, hp)
    if hp.loss == Loss.squared_error or before == 0.0 or after in (0.0, before):
        return
    mean_curvature = known.curvature[0] / known.moments.rows[0]
    curved = state.steps[0] * mean_curvature * known.trace[0] / active.size[0]
    factor = (1.0 / before + curved) / (1.0 / after + curved)
    state.noise[0, PATH] *= after / before
    for j in active.index[: active.size[0]]:
        state.w[j] *= factor
        state.ahead[j] *= factor


@kernel(allocates=False)
def advance(state, hp, others_coast):
    """One gradient step with the rows of the batch; returns whether features leave after it.

    Of optimizers with momentum, features that it does not touch may coast: `leaving.coast`.
    """
    if hp.spectral:
        settle(state, sparsely=newest(state, hp) < 1.0 and not rows.swept(state.batch))
        step_size.end_batch(state.step_size, state.batch, state.active, hp.burn_in)
    descend(state, hp, others_coast)
    state.step_size.slopes[0] = 0.0
    if hp.spectral:
        average(state, hp)
    rows.clear(state.batch, state.active)
    state.steps[0] += 1
    return is_due(state, hp)


@kernel(allocates=False)
def step(state, hp):
    """One gradient step with the rows of the batch, and the pruning after it."""
    if advance(state, hp, False):
        anneal(state, hp)


@generic
def step_in_stream(state, hp, X, queue):
    """`step`, after rows of X; where these touch few features, those that leave wait in a queue."""
    return _step_with_queue if rows.is_sparse(X) else lambda state, hp, X, queue: step(state, hp)


def _step_with_queue(state, hp, X, queue):
    batch, active, coefs = state.batch, state.active, coefs_of(state, hp)
    n, others_coast = batch.count[rows.TOUCHED], leaving.may_coast(queue, coefs, batch, active)
    due = advance(state, hp, others_coast)
    leaving.have_moved(queue, coefs, batch.touched[:n])
    m, left = active.size[0] - queue.count[leaving.LEFT], features_left(state, hp)
    # Where a mini-batch has few entries the next one lists the features that it touches, see
    # `rows.add`; else it would move those, too, that have left and still stand among the active.
    few = len(queue.heap) > 0 and leaving.SHARE * batch.count[rows.ENTRIES_BEFORE] < left
    if few and leaving.SHARE * (m - left) <= m:
        leaving.tell(queue, coefs, batch.touched[:n])
        leaving.leave(queue, coefs, active, left, state.scratch[0])
        return
    leaving.close(queue, active)
    if due:
        leaving.settle(queue, coefs, active)
        anneal(state, hp)


@generic
def coefs_of(state, hp):
    """The coefficients, as `leaving` asks for them."""
    return _with_momentum if kind(hp) is WithMemory else _without_momentum


def _with_momentum(state, hp):
    looks_ahead = hp.optimizer == Optimizer.nesterov
    return leaving.Moving(state.w, state.v, state.ahead, state.steps, hp.momentum, looks_ahead)


def _without_momentum(state, hp):
    return leaving.Still(state.w)


@generic(allocates=True)
def queue_for(state, X, n, hp):
    """For the features that leave in the course of n rows of X; empty if it is of no use."""
    if rows.is_sparse(X):
        return _queue_for
    return lambda state, X, n, hp: leaving.new_queue(0, state.scratch[1], False)


def _queue_for(state, X, n, hp):
    t, active, steps = state.steps[0], state.active, n // hp.batch_size
    by_coef = not hp.spectral and hp.importance == Importance.coef
    some_leave = hp.maturity > 0 and t + steps > hp.warmup
    moving = hp.optimizer in (Optimizer.momentum, Optimizer.nesterov)
    entries = hp.batch_size * ((X.indptr[-1] - X.indptr[0]) // max(len(X.indptr) - 1, 1))
    rare = moving and leaving.RARE * entries < active.size[0]
    # To fill and to close a queue takes as long as some steps without one.
    used = by_coef and hp.k < active.size[0] and steps >= leaving.SHARE
    used = used and (rare or (some_leave and hp.optimizer == Optimizer.sgd))
    return leaving.new_queue(len(active.index) if used else 0, state.scratch[1], moving)


@kernel
def step_together(states, hp):
    """A step of each of the stacked models; all keep the same features."""
    _step_together(states, hp, np.empty(states.w.shape[1]))


@kernel(allocates=False)
def _step_together(states, hp, norms):
    due, n = False, len(states.w)
    for c in range(n):
        due = advance(nth(states, c), hp, False)
    if due:
        _anneal_together(states, hp, norms)


@kernel(allocates=False)
def newest(state, hp):
    """The weight of the iterate after this step in the mean of the iterates.

    About the last eighth of them counts. The mean begins anew at maturity, from when on the steps
    are larger and converge faster.
    """
    t = state.steps[0] + 1
    return min(1.0, 8.0 / (t - hp.maturity if 0 < hp.maturity < t else t))


@kernel(allocates=False)
def average(state, hp):
    """Take w into the mean of the iterates."""
    w, mean, active, weight = state.w, state.ahead, state.active, newest(state, hp)
    mean[-1] += weight * (w[-1] - mean[-1])
    if state.lag[0] > 0.0:
        state.lag[0] *= 1.0 - weight
        return
    if active.size[0] == len(active.index):
        for j in range(len(active.index)):
            mean[j] += weight * (w[j] - mean[j])
        return
    for j in active.index[: active.size[0]]:
        mean[j] += weight * (w[j] - mean[j])


@kernel(allocates=False)
def settle(state, sparsely):
    """Hold the mean of the iterates as it is, or so that steps on few features change few numbers.

    With w + lag * ahead for it, a step moves `ahead` where it moves w, and w's share of the mean
    grows as `lag` falls.
    """
    w, ahead, lag, known, active = state.w, state.ahead, state.lag, state.step_size, state.active
    left = active.index[: active.size[0]]
    if lag[0] > 0.0 and (not sparsely or lag[0] < TINY or known.size[0] > 1.0 / TINY):
        for j in left:
            ahead[j] = w[j] + lag[0] * ahead[j]
        lag[0] = 0.0
        step_size.settle(known, active)
    if sparsely and lag[0] == 0.0:
        for j in left:
            ahead[j] -= w[j]
        lag[0] = 1.0


@kernel(inline=True)
def ranked_by(state, hp):
    """What features are ranked by."""
    if not hp.spectral:
        return state.w
    settle(state, sparsely=False)
    return state.ahead


@kernel(allocates=False)
def take(state, block, start, hp, work):
    """Take rows of the block from `start` on into the batch, as `gather`; `work`: four numbers."""
    X, y, order, margins = block
    active, known, t, i = state.active, state.step_size, state.steps[0], start
    point = state.ahead if hp.optimizer == Optimizer.nesterov else state.w
    # Where mini-batches touch few features, to observe one costs more than to learn it.
    rare = state.lag[0] > 0.0 and t >= step_size.SETTLED
    period = step_size.RARELY if rare else step_size.PERIOD
    observed = hp.spectral and (t < hp.burn_in or t % period == 0)
    more = True
    while more and i < len(order) and state.batch.count[rows.ROWS] < hp.batch_size:
        stop = min(i + step_size.FEW, len(order)) if observed else len(order)
        part = rows.Block(X, y, order[:stop], margins)
        slopes = state.batch.curvature[2]
        n = gather_with(state.batch, part, i, hp, point, active, active, work)
        seen, shown = order[i:n], margins[i:n]
        if hp.importance == Importance.noise_aware:
            if state.moments.rows[0] < hp.different:
                rows.update_squares(state.moments, X, seen, active)
            else:
                state.batch.curvature[2] = slopes
        elif hp.importance != Importance.coef:
            rows.update_moments(state.moments, X, seen, y, False, active)
        if hp.spectral:
            step_size.add_slopes(known, y, seen, shown, hp.loss)
        if observed:
            step_size.observe(known, X, y, seen, shown, hp.loss, state.batch, active, work)
        more, i = n > i, n
    return i


@kernel
def fold(state, block, hp):
    """Show the rows of the block, as `RowStream` asks for."""
    return _fold(
        state, block, hp, np.empty(step_size.FEW), queue_for(state, block.X, len(block.order), hp)
    )


@kernel(allocates=False)
def _fold(state, block, hp, work, queue):
    i, coefs = 0, coefs_of(state, hp)
    while i < len(block.order):
        coming = hp.batch_size - state.batch.count[rows.ROWS]
        leaving.catch_up(queue, coefs, block.X, block.order[i : i + coming])
        i = take(state, block, i, hp, work)
        if state.batch.count[rows.ROWS] < hp.batch_size:
            break
        step_in_stream(state, hp, block.X, queue)
    leaving.close(queue, state.active)
    leaving.settle(queue, coefs, state.active)
    return i


@kernel
def fold_together(states, block, hp):
    """The same for stacked models, which keep the same features."""
    return _fold_together(states, block, hp, np.empty(step_size.FEW), np.empty(states.w.shape[1]))


@kernel(allocates=False)
def _fold_together(states, block, hp, work, norms):
    X, y, order, margins = block
    done, n, count = 0, len(order), states.batch.count
    while done < n:
        start = done
        for c in range(len(y)):
            own = rows.Block(X, nth(y, c), order, nth(margins, c))
            done = take(nth(states, c), own, start, hp, work)
            if done < n and count[c, rows.ROWS] < hp.batch_size:
                return done
        if count[0, rows.ROWS] == hp.batch_size:
            _step_together(states, hp, norms)
    return n


def learn(state, block, hp):
    """Show the rows of the block to one model or to those of a relay, as `RowStream` asks for."""
    return show(state, block, hp, fold)


def learn_together(states, block, hp):
    """The same for stacked models or relays, which keep the same features."""
    return show(states, block, hp, fold_together)


def mean_iterate(state: State) -> np.ndarray:
    """The mean of the iterates, as `settle` would have it."""
    if state.lag[0] == 0.0:
        return state.ahead
    mean = state.w + state.lag[0] * state.ahead
    mean[-1] = state.ahead[-1]
    return mean


@estimator
class Annealing(RowStream):
    """What SFSA and AnytimeSFSA share."""

    learning_rate: float | str = param(
        "auto finds the step as the stream runs: the inverse of the spectral norm of the features "
        "in the model; what is ranked and shown is then a mean of the last iterates. The first 8 "
        "mini-batches of a stream whose length is not known are only observed. It goes with "
        "optimizer='sgd'. A number is the papers' constant step size eta of the mean gradient.",
        one_of("auto"),
        POSITIVE,
        default="auto",
    )
    batch_size: int | None = param(
        "Rows of a mini-batch. None: 25, or fewer with learning_rate='auto' where SFSA's maturity "
        "would take less than 250 steps.",
        AT_LEAST_ONE,
        None,
        default=None,
    )
    optimizer: str = param(
        "nesterov is the papers' SFSA-AG, adam (with decay rates 0.9 and 0.999) SFSA-Adam. "
        "momentum and nesterov are those of Sutskever et al. 2013, with the gradient times 1 - m, "
        "m = `momentum`, as Table 1 asks for: steps sum up to eta, as those of sgd. nesterov "
        "predicts with the coefficients at which it takes the gradient.",
        one_of(*Optimizer.__members__),
        default="sgd",
    )
    momentum: float = param("Of the optimizers momentum and nesterov.", NOT_NEGATIVE, default=0.9)
    mu: float = param("Annealing: the larger, the earlier features go.", NOT_NEGATIVE, default=10.0)
    importance: str | None = param(
        "What features are ranked by: coef is |beta|, scaled_coef sd * |beta| (sfsa, Algorithm 2), "
        "scaled_root sqrt(variance * |beta|) (sfsa, Algorithm 1 as printed), noise_aware |beta| "
        "without the noise in it. None: noise_aware with learning_rate='auto', else coef.",
        one_of(*Importance.__members__),
        None,
        default=None,
    )

    fold, fold_together, step_together, hyper = learn, learn_together, step_together, Hyper
    frozen = ("optimizer", "importance")

    @property
    def _spectral(self) -> bool:
        return self.learning_rate == "auto"

    @property
    def _importance(self) -> str:
        return self.importance or ("noise_aware" if self._spectral else "coef")

    def _refuse_changes(self):
        super()._refuse_changes()
        old = getattr(self, "_learned_with", {}).get("learning_rate", self.learning_rate)
        if (old == "auto") != self._spectral:
            raise ValueError(
                f"learning_rate={self.learning_rate!r} differs from learning_rate={old!r}, with "
                "which learning began: set it back, or begin anew by fit."
            )

    def _new_state(self, n_features):
        p, sgd, spectral = n_features, self.optimizer == "sgd", self._spectral
        if spectral and not sgd:
            raise ValueError(
                f"optimizer={self.optimizer!r} has no learning_rate='auto': give a number, or "
                "take optimizer='sgd'."
            )
        if self._importance == "noise_aware" and self.optimizer == "adam":
            raise ValueError(
                "optimizer='adam' has no importance='noise_aware', as its coefficients do not "
                "follow the gradients: take another importance or optimizer."
            )
        return State(
            w=np.zeros(p + 1),
            v=np.zeros(1 if sgd else p + 1),
            ahead=np.zeros(1 if sgd and not spectral else p + 1),
            lag=np.zeros(1),
            step_size=step_size.new_step_size(p if spectral else 0),
            active=rows.new_active(p),
            batch=rows.new_batch(p, reach=1 if spectral else 4),
            moments=moments_for(self._importance, p),
            noise=new_noise(),
            steps=np.zeros(1, np.int64),
            scratch=np.zeros((2, p + 1)),
        )

    def _schedule(self, n_rows, warmup: int, rows: int | None, batch_size: int) -> Hyper:
        """The hyper-parameters for a warm-up, and a maturity if there is one, of so many rows."""
        spectral, maturity = self._spectral, batches(rows, batch_size)
        # As many as the power iteration needs, but few of a short stream
        burn_in = (min(max(maturity // 16, 1), 8) if maturity else 8) if spectral else 0
        own = {"maturity": maturity, "spectral": spectral, "burn_in": burn_in}
        own |= {"warmup": warmup // batch_size, "batch_size": batch_size}
        own |= {"importance": self._importance, "different": different_rows(self, n_rows)}
        own |= {"learning_rate": 0.0} if spectral else {}
        hyper = super()._read_hyper(None, **own)
        return hyper if self.optimizer == "sgd" else WithMemory(*hyper)

    def _remedy(self):
        return super()._remedy() if self._spectral else "take learning_rate='auto'"

    def _learners(self, state):
        """The models that learn, each with its hyper-parameters; the last one is shown."""
        hp = self._hyper
        return [(state, hp)] if isinstance(hp, Hyper) else hp.learners(state)

    def _finish(self, state):
        for model, hp in self._learners(state):
            if model.batch.count[rows.ROWS]:
                step(model, hp)

    def _shown(self, state):
        model, hp = self._learners(state)[-1]
        if hp.spectral and model.steps[0] <= hp.burn_in and not model.w[:-1].any():
            observed = (hp.burn_in + 1) * hp.batch_size
            self._say_once("only observed", _ONLY_OBSERVED.format(self, observed))
        w = mean_iterate(model) if hp.spectral else model.w
        mean = model.step_size.mean_row() if hp.spectral and hp.intercept > 0.0 else None
        model = model._replace(noise=model.noise.copy())
        update_noise(model, hp)
        return w, model.active, model.moments, hp.importance, hp.k, mean, model.noise

    def _model(self, state):
        return best_model(*self._shown(state))


@estimator
class SFSA(Annealing):
    """Stochastic Feature Selection with Annealing."""

    about = (
        "Mini-batch gradient descent, in the course of which the number of features falls from all "
        "of them to `k`. Cost: O(entries of the row) per row and about O(features left) per "
        "mini-batch at most; with `forget` at most twice that."
    )

    maturity: int | None = param(
        "Rows until only k features are left. None: all rows of `fit`, or three quarters of them "
        "in regression with learning_rate='auto'; in `partial_fit`, where the end is not known, "
        "no feature is dropped for good and coef_ shows the k most important. With `forget` its "
        "rows take the place of those of `fit`.",
        AT_LEAST_ONE,
        None,
        default=None,
    )
    warmup: int | None = param(
        "Rows before pruning. None: 0, or maturity / 3 with learning_rate='auto'.",
        WHOLE,
        None,
        default=None,
    )
    forget: int | None = param(
        "For streams that change: every so many rows a new model begins with all features, and "
        "the one begun before, of so many rows, is shown from then on. coef_ thus knows of the "
        "last `forget` to 2 `forget` rows only, and `fit` shows the rows in their order, whatever "
        "`shuffle` says. None: nothing is forgotten.",
        AT_LEAST_ONE,
        None,
        default=None,
    )

    frozen = ("forget",)
    # What `beyond/parts.py` needs
    ranked_by, anneal, anneal_together = ranked_by, anneal, anneal_together

    def _forgets(self):
        return self.forget is not None

    def _new_state(self, n_features):
        one = super()._new_state
        return one(n_features) if self.forget is None else new_relay(one, n_features)

    def _left_for_good(self):
        if self._forgets():
            return super()._left_for_good()
        return min(int(state.active.size[0]) for state in self._states)

    def rows_until_mature(self, n_rows: int | None) -> int | None:
        """The maturity of a stream of so many rows; None: of one whose end is not known."""
        if self.maturity is not None or n_rows is None:
            return self.maturity
        # A label tells little: to find the features takes all rows.
        refine = self._spectral and self.loss == "squared_error"
        return 3 * n_rows // 4 if refine else n_rows

    def _read_hyper(self, n_rows):
        warmup, spectral = self.warmup, self._spectral
        maturity = self.rows_until_mature(n_rows if self.forget is None else self.forget)
        if warmup is None:
            warmup = (maturity or 0) // 3 if spectral else 0
        if maturity is not None and warmup >= max(maturity, 1):
            raise ValueError(
                f"warmup={warmup} rows must be less than maturity={maturity} rows, "
                "by which only k features are left."
            )
        most = max(maturity // _STEPS, 1) if spectral and maturity else _ROWS
        size = self.batch_size or min(most, _ROWS)
        schedule = self._schedule(n_rows, warmup, maturity, size)
        if self.forget is None:
            return schedule
        for name, least in (("batch_size", size), ("maturity", maturity)):
            if least > self.forget:
                raise ValueError(
                    f"forget={self.forget} rows must be at least {name}={least} rows: a new model "
                    "has seen no more when it is shown."
                )
        return ForgetHyper(schedule, int(self.forget))


@estimator
class SFSAClassifier(JointClassifier, SFSA):
    """Stochastic Feature Selection with Annealing for classification (sfsa, Algorithm 1)."""

    mu: float = param("Annealing: the larger, the earlier features go.", NOT_NEGATIVE, default=5.0)


@estimator
class SFSARegressor(RowRegressor, SFSA):
    """Stochastic Feature Selection with Annealing for regression (sfsa, Algorithm 1)."""


@estimator
class AnytimeSFSA(Annealing):
    """SFSA with growing maturities, so that there is a set of k features at any time."""

    about = (
        "At any time there is a set of k features, that of the last maturity, which goes on "
        "learning, and a better one in the making: it has branched off at that maturity from a "
        "model that keeps all features, and matures at the next. Cost: at most 2.5 times that of "
        "SFSA."
    )

    first_maturity: int = param("Rows until the first k features.", AT_LEAST_ONE, default=1000)
    growth: float = param(
        "Each maturity is so many times the one before.",
        number(Real, 1, closed="neither"),
        default=2.0,
    )

    frozen = ("first_maturity", "growth", "batch_size")

    def _new_state(self, n_features):
        return new_relay(super()._new_state, n_features)

    def _read_hyper(self, n_rows):
        size = int(self.batch_size or _ROWS)
        start = self._schedule(n_rows, 0, self.first_maturity, size)
        first, start = start.maturity, start._replace(maturity=0)
        return AnytimeHyper(start, size, first, float(self.growth))


@estimator
class AnytimeSFSAClassifier(JointClassifier, AnytimeSFSA):
    """SFSA with growing maturities for classification (sfsa, Figure 1)."""

    mu: float = param("Annealing: the larger, the earlier features go.", NOT_NEGATIVE, default=5.0)


@estimator
class AnytimeSFSARegressor(RowRegressor, AnytimeSFSA):
    """SFSA with growing maturities for regression (sfsa, Figure 1)."""
