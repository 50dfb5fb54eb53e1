"""Stochastic Feature Selection with Annealing: sfsa, Algorithm 1; dissertation, Section 2.1.

beta = 0; all p features are in the model
for each mini-batch t = 1, 2, ...:
    update the moments of x, if features are ranked by them             `gather`
    beta <- beta - eta * (mean gradient of the mini-batch)              `gather`, `descend`
    M_t = k + (p - k) max(0, (T - t) / (t mu + T)), rounded             `features_left`
    keep the M_t features with the largest importance v_j               `prune`

`importance` says what v_j is; Algorithm 1 as printed has v_j = scaled_root. After a warm-up of W
steps the schedule counts from it: t - W and T - W take the places of t and T.
"""

from numbers import Real
from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels import (
    automatic_step,
    mean_iterate,
    minibatch,
    optimizers,
    pruning_queue,
    rows,
    selection,
)
from ofslib.kernels.losses import Loss
from ofslib.kernels.optimizers import Optimizer
from ofslib.kernels.selection import Importance
from ofslib.streams import diagnostics, joint, rotation
from ofslib.streams.parameters import (
    AT_LEAST_ONE,
    NOT_NEGATIVE,
    POSITIVE,
    WHOLE,
    estimator,
    number,
    one_of,
    param,
    read_parameters,
)
from ofslib.streams.row_stream import JointClassifier, RowRegressor, RowStream

# While the mean is deferred, at least 1 of 16 features is dropped at a time: each time the mean has
# to be written, which takes as long as ranking all features.
ROUND = 16
# Default rows of a mini-batch. An automatic step has fewer if `maturity` would take less than 250
# steps.
BATCH_SIZE, LEAST_STEPS = 25, 250
# Mini-batches that an automatic step only observes: as many as the power iteration needs, but at
# most 1 of 16 before `maturity`.
BURN_IN, SHARE = 8, 16


class Hyper(NamedTuple):
    k: int
    loss: Loss
    optimizer: Optimizer
    learning_rate: float  # eta, if constant
    momentum: float
    batch_size: int
    importance: Importance
    mu: float
    warmup: int  # steps before pruning starts
    maturity: int  # T in steps: k features are left; 0: never prune
    automatic: bool  # the step is found as the stream runs; then a mean of the iterates is ranked
    burn_in: int  # if automatic: mini-batches that are only observed, before the first step; else 0
    different: int  # rows of the first pass: those of later passes tell nothing new of the noise
    intercept: float  # 1.0 or 0.0


class State(NamedTuple):
    w: np.ndarray  # (p + 1,) beta and the intercept
    memory: optimizers.Memory
    step_size: automatic_step.StepSize  # its estimates, if automatic
    iterates: mean_iterate.MeanIterate  # their mean, if automatic
    active: rows.Active
    batch: rows.Batch
    moments: rows.Moments  # of different rows, if features are ranked by them
    noise: np.ndarray  # (1, 3) of the coefficients: PATH, CURVATURE, VARIANCE of `selection`
    steps: np.ndarray  # (1,) t: gradient steps made
    scratch: np.ndarray  # (2, p + 1) of the selection


@kernel
def learn(state, block, hp):
    """Algorithm 1 on the rows of a block; returns how many, as `RowStream` asks for."""
    return learn_with(  # the buffer has room for the slopes of four rows, as many as go together
        state, block, hp, np.empty(4), pruning_queue.queue_for(state, block.X, len(block.order), hp)
    )


@kernel(allocates=False)
def learn_with(state, block, hp, buffer, queue):
    """`learn` with a buffer and a queue: a kernel that makes no array is cheaper to call."""
    done = 0
    while done < len(block.order):
        done = gather(state, block, done, hp, buffer)
        if state.batch.count[rows.ROWS] < hp.batch_size:
            break
        step(state, hp, queue)
    pruning_queue.close(queue, state.active)
    return done


@kernel(allocates=False)
def gather(state, block, start, hp, buffer):
    """Add the gradients of rows from `start` on to the mini-batch, until it is full."""
    (X, y, order, margins), batch, active, done = block, state.batch, state.active, start
    point = state.memory.lookahead if hp.optimizer == Optimizer.nesterov else state.w
    observed = hp.automatic and automatic_step.is_observed(state, hp)
    more = True
    while more and done < len(order) and batch.count[rows.ROWS] < hp.batch_size:
        stop = min(done + automatic_step.FEW, len(order)) if observed else len(order)
        part, squared_slopes = rows.Block(X, y, order[:stop], margins), batch.curvature[2]  # a sum
        n = minibatch.gather_with(batch, part, done, hp, point, active, active, buffer)
        seen, predicted = order[done:n], margins[done:n]
        if not selection.add_rows(state.moments, X, seen, y, hp, active):
            batch.curvature[2] = squared_slopes  # without rows seen before: see `different`
        if hp.automatic:
            automatic_step.add_slopes(state.step_size, y, seen, predicted, hp.loss)
        if observed:
            automatic_step.observe(
                state.step_size, X, y, seen, predicted, hp.loss, batch, active, buffer
            )
        more, done = n > done, n
    return done


@kernel(allocates=False)
def descend(state, hp):
    """beta <- beta - eta * the mean gradient of the mini-batch."""
    batch, active, eta = state.batch, state.active, hp.learning_rate
    if hp.automatic:
        automatic_step.step(state, hp)
    else:
        t = state.steps[0] + 1
        batch.gradient[-1] *= minibatch.pace(hp, t, batch.curvature)  # the intercept's own step
        state.noise[0, selection.PATH] += eta
        optimizers.step(state.w, state.memory, batch, active, t, eta, hp)
    rows.clear(batch, active)
    state.steps[0] += 1


@kernel(allocates=False)
def features_left(state, hp):
    """M_t; all features that are left during the warm-up, the burn-in and without a maturity."""
    t, active, p = state.steps[0] - hp.warmup, state.active, len(state.active.index)
    if hp.maturity == 0 or t <= 0 or state.steps[0] <= hp.burn_in:
        return active.size[0]
    left = selection.annealed(t, hp.maturity - hp.warmup, p, min(hp.k, p), hp.mu)
    return min(left, active.size[0])


@kernel(allocates=False)
def prunes(state, hp):
    """Whether features are dropped after this step."""
    m, keep = state.active.size[0], features_left(state, hp)
    return keep < m and (not state.iterates.deferred[0] or keep <= hp.k or ROUND * (m - keep) >= m)


@kernel(allocates=False)
def prune(state, hp):
    """Keep the M_t most important features."""
    coef = ranked_by(state, hp)
    selection.rank(state.scratch[0], coef, state.active, state.moments, hp.importance, state.noise)
    drop(state, hp)


@kernel(inline=True)
def ranked_by(state, hp):
    """The coefficients that features are ranked by; updates their noise."""
    selection.update_noise(state, hp)
    automatic_step.write_mean(state)
    return state.iterates.mean if hp.automatic else state.w


@kernel(allocates=False)
def drop(state, hp):
    """Keep the M_t features with the largest values in `scratch`, in the order of `active`."""
    active, m, keep = state.active, state.active.size[0], features_left(state, hp)
    before = automatic_step.stable_rate(state.step_size, active, hp.batch_size, hp.loss)
    selection.drop_least(state.w, active, keep, state.scratch)
    dropped = active.index[keep:m]
    optimizers.forget(state.memory, dropped, hp)
    if hp.automatic:
        automatic_step.drop(state, dropped, before, hp)


@kernel(allocates=False)
def step(state, hp, queue):
    """A step with the rows of the mini-batch, and the pruning after it."""
    # Before `descend`, which resets the count, but leaves the list as it is.
    touched = state.batch.touched[: state.batch.count[rows.TOUCHED]]
    descend(state, hp)
    if not pruning_queue.prunes(queue, state, touched, features_left(state, hp)):
        if prunes(state, hp):
            prune(state, hp)


@kernel
def finish(state, hp):
    """A step with the rows of the last mini-batch, if there are any."""
    if state.batch.count[rows.ROWS] > 0:
        step(state, hp, pruning_queue.new_queue(0, state.scratch[1]))


@estimator
class Annealing(RowStream):
    """What SFSA and AnytimeSFSA share."""

    sources = "sun_stochastic, sun2019online"

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

    hyper, lines = Hyper, joint.Lines(gather, descend, prunes, ranked_by, drop)
    frozen = ("optimizer", "importance")

    @property
    def _importance(self) -> str:
        return self.importance or ("noise_aware" if self.learning_rate == "auto" else "coef")

    def _refuse_changes(self):
        super()._refuse_changes()
        old = getattr(self, "_learned_with", {}).get("learning_rate", self.learning_rate)
        if (old == "auto") != (self.learning_rate == "auto"):
            raise ValueError(
                f"learning_rate={self.learning_rate!r} differs from learning_rate={old!r}, with "
                "which learning began: set it back, or begin anew by fit."
            )

    def _new_state(self, n_features):
        p, automatic = n_features, self.learning_rate == "auto"
        if automatic and self.optimizer != "sgd":
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
            memory=optimizers.new_memory(self.optimizer, p),
            step_size=automatic_step.new_step_size(p * automatic),
            iterates=mean_iterate.new_mean(p * automatic),
            active=rows.new_active(p),
            # Dense if it has more entries than features are in the model, or than a quarter of
            # them: with an automatic step a dense mini-batch visits the mean and direction, too.
            batch=rows.new_batch(p, dense_threshold=1 if automatic else 4),
            moments=selection.moments_for(self._importance, p),
            noise=np.zeros((1, 3)),
            steps=np.zeros(1, np.int64),
            scratch=np.zeros((2, p + 1)),
        )

    def _schedule(self, n_rows, warmup: int, maturity: int | None, batch_size: int) -> Hyper:
        """The hyper-parameters for a warm-up, and a maturity if there is one, of so many rows."""
        automatic, batch_size = self.learning_rate == "auto", int(batch_size)
        steps = -(-int(maturity or 0) // batch_size)  # rounded up
        # The rows of one pass; all rows of a stream whose length is not known.
        different = 2**62 if n_rows is None else n_rows // int(self.n_passes)
        burn_in = min(max(steps // SHARE, 1), BURN_IN) if steps else BURN_IN
        own = {"maturity": steps, "automatic": automatic, "burn_in": burn_in * automatic}
        own |= {"warmup": int(warmup) // batch_size, "batch_size": batch_size}
        own |= {"importance": self._importance, "different": different}
        own |= {"learning_rate": 0.0} if automatic else {}
        return read_parameters(self, Hyper, intercept=self.fit_intercept, **own)

    def _learn_block(self, state, block):
        if not isinstance(state, rotation.Rotation):
            return learn(state, block, self._hyper)
        return rotation.learn([state], block, self._hyper, lambda own, *rest: learn(own[0], *rest))

    def _finish(self, state):
        for (model,), hyper in rotation.learners([state], self._hyper):
            finish(model, hyper)

    def _remedy(self):
        return super()._remedy() if self.learning_rate == "auto" else "take learning_rate='auto'"

    def _exposed(self, state):
        """The arguments of `selection.best_model`, of the model that is exposed."""
        (state,), hp = rotation.learners([state], self._hyper)[-1]
        if hp.automatic and state.steps[0] <= hp.burn_in and not state.w[:-1].any():
            diagnostics.only_observed(self, (hp.burn_in + 1) * hp.batch_size)
        w = state.iterates.up_to_date(state.w, state.active) if hp.automatic else state.w
        mean = state.step_size.mean_row() if hp.automatic and hp.intercept > 0.0 else None
        state = state._replace(noise=state.noise.copy())  # reading leaves the state as it is
        selection.update_noise(state, hp)
        return w, state.active, state.moments, hp.importance, hp.k, mean, state.noise

    def _model(self, state):
        return selection.best_model(*self._exposed(state))


@estimator
class SFSA(Annealing):
    """Stochastic Feature Selection with Annealing."""

    description = (
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
    ranked_by, anneal = ranked_by, prune

    def _new_state(self, n_features):
        new_state = super()._new_state
        if self.forget is None:
            return new_state(n_features)
        return rotation.new_rotation(new_state, n_features)

    def _left_for_good(self):
        if self.forget is not None:
            return super()._left_for_good()
        return min(int(state.active.size[0]) for state in self._states)

    def rows_until_mature(self, n_rows: int | None) -> int | None:
        """The maturity of a stream of so many rows; None: of one whose end is not known."""
        if self.maturity is not None or n_rows is None:
            return self.maturity
        # In regression the last quarter refines the k coefficients. A label tells less than a
        # number: in classification it takes all rows to find the features.
        refine = self.learning_rate == "auto" and self.loss == "squared_error"
        return 3 * n_rows // 4 if refine else n_rows

    def _read_hyper(self, n_rows):
        warmup, automatic = self.warmup, self.learning_rate == "auto"
        maturity = self.rows_until_mature(n_rows if self.forget is None else self.forget)
        if warmup is None:
            warmup = (maturity or 0) // 3 if automatic else 0
        if maturity is not None and warmup >= max(maturity, 1):
            raise ValueError(
                f"warmup={warmup} rows must be less than maturity={maturity} rows, "
                "by which only k features are left."
            )
        most = max(maturity // LEAST_STEPS, 1) if automatic and maturity else BATCH_SIZE
        size = self.batch_size or min(most, BATCH_SIZE)
        hyper = self._schedule(n_rows, warmup, maturity, size)
        if self.forget is None:
            return hyper
        return rotation.forgetting(hyper, int(self.forget), batch_size=size, maturity=maturity)


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

    description = (
        "At any time there is a set of k features, that of the last maturity, which goes on "
        "learning, and a better one in the making: it has branched off at that maturity from a "
        "model that keeps all features, and matures at the next. Cost: at most 2.5 times that of "
        "SFSA."
    )
    example = """
        >>> {name}(k=3, first_maturity=500).partial_fit(X, y).support_
        array([ 9, 19, 29])
    """

    first_maturity: int = param("Rows until the first k features.", AT_LEAST_ONE, default=1000)
    growth: float = param(
        "Each maturity is so many times the one before.",
        number(Real, 1, closed="neither"),
        default=2.0,
    )

    frozen = ("first_maturity", "growth", "batch_size")

    def _new_state(self, n_features):
        return rotation.new_rotation(super()._new_state, n_features)

    def _read_hyper(self, n_rows):
        size = int(self.batch_size or BATCH_SIZE)
        hyper = self._schedule(n_rows, 0, self.first_maturity, size)
        start = hyper._replace(maturity=0)  # of the model that keeps all features
        return rotation.Anytime(start, size, hyper.maturity, float(self.growth))


@estimator
class AnytimeSFSAClassifier(JointClassifier, AnytimeSFSA):
    """SFSA with growing maturities for classification (sfsa, Figure 1)."""

    mu: float = param("Annealing: the larger, the earlier features go.", NOT_NEGATIVE, default=5.0)


@estimator
class AnytimeSFSARegressor(RowRegressor, AnytimeSFSA):
    """SFSA with growing maturities for regression (sfsa, Figure 1)."""
