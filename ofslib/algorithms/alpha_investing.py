"""Alpha-investing: Zhou, Foster, Stine and Ungar 2005, Streaming feature selection using
alpha-investing, Section 3; Alpha in Wang et al. 2018 (`ofs`).

Each feature on arrival is tested against the linear model of those accepted before it. A test costs
wealth, an acceptance earns some.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import stdtr
from sklearn.utils.validation import check_is_fitted

from ofslib.streams.column_stream import ColumnStream
from ofslib.streams.parameters import POSITIVE, estimator, param

# A feature that varies by a smaller share outside of the span of the accepted ones tells nothing
# new; what rounding may leave, relative to lengths.
_OUTSIDE, _ROUNDING = 1e-6, 1e-14


class State(NamedTuple):
    """The linear model by least squares of the accepted features and a constant."""

    basis: np.ndarray  # (n, 1 + accepted) orthonormal basis of the constant and these features
    residual: np.ndarray  # (n,) of the targets
    least: float  # length of residuals that rounding may leave
    wealth: float  # w_i
    tested: int  # i - 1
    index: tuple[int, ...]  # the accepted features


def p_value(state: State, x) -> tuple[float, np.ndarray]:
    """Of the t test that x has coefficient 0 beside the accepted features; x outside their span."""
    Q, residual = state.basis, state.residual
    outside = x - Q @ (Q.T @ x)
    outside -= Q @ (Q.T @ outside)
    length, freedom = np.linalg.norm(outside), len(x) - Q.shape[1] - 1
    varies = _OUTSIDE * np.linalg.norm(x - x.mean())
    if freedom < 1 or length <= max(varies, _ROUNDING * np.linalg.norm(x)):
        return 1.0, outside
    if np.linalg.norm(residual) <= state.least:  # a perfect fit: nothing is left to test
        return 1.0, outside
    outside /= length
    gain = (outside @ residual) ** 2
    left = residual @ residual - gain
    if left <= 0:
        return float(gain == 0), outside
    return float(2 * stdtr(freedom, -np.sqrt(freedom * gain / left))), outside


def step(state: State, x, j: int, payout: float) -> State:
    """The state after feature j was offered."""
    tested = state.tested + 1
    level = state.wealth / (2 * tested)
    p, outside = p_value(state, x)
    state = state._replace(tested=tested, wealth=state.wealth - level)
    if p >= level:
        return state
    return state._replace(
        basis=np.column_stack([state.basis, outside]),
        residual=state.residual - (outside @ state.residual) * outside,
        wealth=state.wealth + payout,
        index=(*state.index, j),
    )


@estimator
class AlphaInvesting(ColumnStream):
    """Alpha-investing (Zhou et al. 2005).

    Feature i is accepted if the p-value of its coefficient, in a linear regression on the accepted
    features and a constant, is below w_i / (2 i), where w_i is the wealth. The test costs that
    much, and an acceptance earns the payout. How many features are accepted cannot be chosen.
    Classes are learned as numbers.

    Cost: O(n accepted) per feature; memory O(n accepted).
    """

    sources = "zhou2005streaming"
    example = """
        >>> model = {name}(initial_wealth=0.01, payout=0.01)
        >>> model.partial_fit_columns(X, y).support_
        array([ 9, 19, 29])
    """

    initial_wealth: float = param("w_1; as in the paper.", POSITIVE, default=0.5)
    payout: float = param(
        "alpha_Delta, what an acceptance earns; as in the paper.", POSITIVE, default=0.5
    )

    frozen = ("initial_wealth", "payout")
    supervised = True

    def _new_state(self, n):
        constant = np.full((n, 1), n**-0.5)
        residual = self._y - self._y.mean()
        least = 100 * _ROUNDING * float(np.linalg.norm(self._y))
        return State(constant, residual, least, float(self.initial_wealth), 0, ())

    def _learn_block(self, state, block):
        for x, j in zip(block.values, block.index, strict=True):
            state = step(state, x, int(j), float(self.payout))
        return state

    @property
    def wealth_(self) -> float:
        """float
        Wealth that is left."""
        check_is_fitted(self)
        return self._state.wealth
