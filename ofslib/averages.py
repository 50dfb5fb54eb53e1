"""Running averages (Sun 2019, chapter 3): all that least squares needs to know of the rows.

Rows z = (x, y) are kept as the sum of their weights W, their mean m and the centred co-moments
C = sum w (z - m)(z - m)', from which the averages of the dissertation follow: S_xx = C_xx / W +
mu_x mu_x', and likewise S_xy and S_yy. Sums of raw squares, as printed, would lose all digits of
a variance where the mean is large: at a mean of 1e6 and unit variance float64 keeps 3 digits of
the raw form and 15 of this one.
"""

import copy
from numbers import Integral, Real
from typing import NamedTuple, Self

import numpy as np
from sklearn.utils.validation import check_X_y

from ofslib._comoments import DTYPES, PENDING, CoMoments, not_finite, symmetric, without_last
from ofslib._interrupts import interrupts_held
from ofslib._model_files import OtherState, Saved, Stored, filled
from ofslib._sparse import (
    cells_named,
    checked,
    checked_targets,
    checked_weights,
    plain_words,
    refuse_misread,
)  # fmt: skip

# What is kept in a file, the co-moments last.
_KEPT = ("n_features", "block_rows", "n", "_weight", "_folded", "_raw", "_rate", "_per")
_KEPT += ("_mean", "_rest", *PENDING, "_C")
_PER = ("observation", "block")


class Standardized(NamedTuple):
    """Running averages of standardised rows, (3.2) and (3.3)."""

    S_xx: np.ndarray  # (p, p) correlations of x, Fortran order; the dtype of the averages
    S_xy: np.ndarray  # (p,) float64, covariances of x / scale with y
    S_yy: float  # variance of y
    scale: np.ndarray  # (p,) float64, what x was divided by; inf where a feature is constant
    mean_x: np.ndarray  # (p,) float64, what was subtracted before
    mean_y: float
    n: int  # rows

    def intercept(self, coef: np.ndarray) -> float:
        """The constant that belongs to coefficients (p,) on the original scale."""
        return self.mean_y - float(self.mean_x @ coef)


class RunningAverages(CoMoments, Saved):
    """Weight, mean and co-moments of the rows of a stream; O(p^2) memory, whatever its length.

    Rows wait in a buffer of `block_rows` rows and are then folded in by one symmetric rank-k
    update. What is read counts those that wait, but leaves them there. The result hence does not
    depend, bit for bit, on how the rows are cut into calls of `update`, nor on what was read.

    A method raises ValueError or TypeError if an argument is not allowed, and says what is.

    Where rows are known, Ctrl-C waits until a call of `update` or `merge` has ended, and is raised
    then: all is learned. Averages that were empty before the call are empty again. Another error
    half way through a change of known rows, and ``standardized(overwrite=True)``, leave averages
    that raise RuntimeError from then on.

    Parameters
    ----------
    n_features : int
        Number p of features.
    dtype : {float64, float32}, default=float64
        Type of the co-moments and of waiting rows, which are kept as distances from the mean.
        After 1e6 rows standard deviations were right to 2e-15 in float64 and 1e-6 in float32
        (relative errors, measured; the same at a mean of 0 and of 1e6 standard deviations), and
        float32 is twice as fast. Means are float64 in any case.
    memory_map : None
        No longer takes a folder: ValueError.

    Attributes
    ----------
    n : int
        Rows of positive weight that were shown. A row of weight zero counts as not shown.
    weight : float
        Sum W of the weights of the rows; after `adapt` their effective number.
    mean_x, mean_y : ndarray of shape (p,), float
        Means.
    S_xx, S_xy, S_yy : ndarray of shape (p, p), ndarray of shape (p,), float
        Uncentred averages, as defined in section 3.1; computed anew each time they are read.

    Raises
    ------
    MemoryError
        If the co-moments, (p + 1)^2 numbers, take more than two thirds of the machine's memory.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib import OLSthRegressor, RunningAverages, simulate
    >>> design, averages = simulate.Equicorrelated(p=50, k=3), RunningAverages(50)
    >>> for X, y in design.stream(3000, np.random.default_rng(0)):
    ...     averages = averages.update(X, y)
    >>> averages.n, OLSthRegressor(k=3).fit_averages(averages).support_.tolist()
    (3000, [9, 19, 29])
    """

    def __init__(self, n_features: int, dtype=np.float64, memory_map=None):
        _refuse_folder(memory_map)
        if not isinstance(n_features, Integral) or n_features < 1:
            raise ValueError(f"n_features must be an int of 1 or more, got {n_features!r}.")
        if dtype not in DTYPES:
            raise ValueError(f"dtype must be float64 or float32, got {dtype!r}.")
        super().__init__(int(n_features), np.dtype(dtype))
        self._spent = ""  # why they are of no use any more

    @classmethod
    def from_moments(
        cls, n: int, mean, comoments, dtype=np.float64, memory_map=None, copy: bool = True
    ):
        """Running averages of `n` rows of weight 1 whose moments are known.

        Parameters
        ----------
        n : int
            Number of rows, at least 1.
        mean : array-like of shape (p + 1,)
            Means of x, and last that of y; finite.
        comoments : array-like of shape (p + 1, p + 1)
            sum (z - mean)(z - mean)'; only the upper triangle is read. It is finite, its diagonal
            not negative.
        dtype, memory_map
            As in `RunningAverages`.
        copy : bool, default=True
            If False, `comoments` become the averages' own, to be changed by them, where they have
            their dtype and Fortran order, and may be written to.
        """
        mean, comoments = np.array(mean, dtype=np.float64), np.asarray(comoments)
        if not isinstance(n, Integral) or n < 1:
            raise ValueError(f"n must be an int of 1 or more, got {n!r}.")
        if mean.ndim != 1 or len(mean) < 2:
            raise ValueError(f"mean must have the shape (p + 1,), got {mean.shape}.")
        if comoments.shape != (shape := 2 * mean.shape):
            raise ValueError(f"comoments must have the shape {shape}, got {comoments.shape}.")
        if not np.isfinite(mean).all():
            raise ValueError("mean must be finite.")
        diagonal = np.diagonal(comoments)
        if not (np.isfinite(diagonal) & (diagonal >= 0)).all():
            raise ValueError("comoments must have finite diagonal entries of 0 or more.")
        new = cls(len(mean) - 1, dtype, memory_map)
        new.n, new._mean = int(n), mean
        new._weight = new._folded = float(n)
        with np.errstate(over="ignore"):
            taken = np.array(comoments, new.dtype, order="F") if copy else comoments
            new._C = np.require(taken, new.dtype, ["F", "W"])
            new._raw = float(n * (mean @ mean) + new._squares().sum())
        if place := not_finite(new._C):
            kind, found = new.dtype.name, comoments[place]
            raise ValueError(f"comoments must be finite in {kind}, got {found} at {place}.")
        return new

    # -------------------------------------------------- rows come in

    def update(self, X, y, sample_weight=None) -> "RunningAverages":
        """Take in rows; returns self. If it raises ValueError, nothing has changed.

        Parameters
        ----------
        X : {ndarray, DataFrame, sparse matrix or array} of shape (b, p)
            Observations, at least one. Sparse rows give the same, bit for bit, as in dense form.
            Only of many rows that are nearly empty, shown in one call, X'X is made as a sparse
            product, and equal up to rounding. (Not after `adapt`.)
        y : array-like of shape (b,)
            Responses: numbers.
        sample_weight : array-like of shape (b,), default=None
            Weights, not negative; 1 each if None. Weight 2 is the same as showing the row twice,
            up to rounding (while equation (3.11) forgets: to first order in 2 * rate).
        """
        self._refuse_if_spent()
        X, y, weights = self._checked(X, y, sample_weight)
        if self._per == "block" and len(y):
            weights = weights / weights.sum()
        self._change(RunningAverages._take_rows, X, y, weights, self._fitting(X, y, weights))
        return self

    def _change(self, act, *what) -> None:
        """Let an act change these averages: all or nothing."""
        if self.n == 0:
            new = copy.copy(self)
            # Of zeros the system gives memory when it is first written to.
            new._C = np.zeros(self._C.shape, self.dtype, order="F")
            act(new, *what)
            vars(self).update(vars(new))  # one step, which no interrupt cuts
            return
        # In place, as a copy would take as much memory again.
        with interrupts_held():
            self._spent = "an update or merge stopped half-way: begin anew, or load a file"
            act(self, *what)
            self._spent = ""

    def _checked(self, X, y, sample_weight):
        """Finite X (float64, float32 or CSR), y and weights; rows of weight zero left out."""
        refuse_misread(X=X, y=y)
        own = {"dtype": [np.float64, np.float32], "estimator": "RunningAverages"}
        # What is not finite is found in _fitting.
        with cells_named(X, y):
            y = plain_words(y)
            X, y = check_X_y(checked(X), y, accept_sparse="csr", ensure_all_finite=False, **own)
        if X.shape[1] != self.n_features:
            raise ValueError(
                f"X has {X.shape[1]} features, but RunningAverages is expecting "
                f"{self.n_features} features as input."
            )
        y = checked_targets(y)
        if sample_weight is None:
            return X, y, np.ones(len(y))
        weights = checked_weights(sample_weight, len(y))
        used, least = weights > 0, np.finfo(self.dtype).tiny
        with np.errstate(over="ignore"):
            total = self._weight + weights.sum()
        if total > self._limit or (used & (weights < least)).any():
            raise ValueError(
                f"sample_weight must be 0 or at least {least:.0e}, and sum up to {self._limit:.0e} "
                f"at most with earlier weights; got {weights.min()} to {weights.max()}."
            )
        return (X, y, weights) if used.all() else (X[used], y[used], weights[used])

    def adapt(self, rate: float | None, per: str = "observation") -> "RunningAverages":
        """From now on let new rows count more than old ones, by equation (3.11); returns self.

        Parameters
        ----------
        rate : float in (0, 1] or None
            Adaptation rate: the least share alpha = max(rate, 1 / (W + 1)) of a new observation
            in the averages; of a row of weight w it is max(min(1, w rate), w / (W + w)), and W is
            at most 1 / rate from the next row on. None: all further rows have equal weights, beside
            the weight W of what is known by then.
        per : {"observation", "block"}, default="observation"
            What enters with that share: each row, or the average of all rows of one call of
            `update`, whatever their number. Then `weight` counts calls.
        """
        self._refuse_if_spent()
        if per not in _PER:
            raise ValueError(f'per must be "observation" or "block", got {per!r}.')
        if rate is not None and (isinstance(rate, bool) or not isinstance(rate, Real)):
            raise TypeError(f"rate must be a number or None, got {rate!r}.")
        if rate is not None and not 0 < rate <= 1:
            raise ValueError(f"rate must be above 0 and at most 1, got {rate!r}.")
        self._rate, self._per = (None, "observation") if rate is None else (float(rate), per)
        return self

    # -------------------------------------------------- averages are read

    @property
    def weight(self) -> float:
        """Sum of the weights of the rows; after `adapt` their effective number."""
        return self._weight

    @property
    def mean_x(self) -> np.ndarray:
        """Means of the features, (p,) float64."""
        return self._settled()._mean[:-1].copy()

    @property
    def mean_y(self) -> float:
        """Mean of the response."""
        return float(self._settled()._mean[-1])

    @property
    def S_xx(self) -> np.ndarray:
        """(1 / W) sum w x x', (p, p), in the dtype of the averages, Fortran order."""
        now = self._settled()
        if not (now._squares() / now._weight + now._mean**2 <= 4 * self._limit).all():
            raise OverflowError(f"squares of the values shown do not fit into {self.dtype.name}.")
        out, ones = np.empty_like(now._C[:-1, :-1]), np.ones(self.n_features)
        symmetric(now._C[:-1, :-1], now._weight, now._mean[:-1], ones, out)
        return out

    @property
    def S_xy(self) -> np.ndarray:
        """(1 / W) sum w y x, (p,) float64."""
        now = self._settled()
        return now._C[:-1, -1] / now._weight + now._mean[:-1] * now._mean[-1]

    @property
    def S_yy(self) -> float:
        """(1 / W) sum w y^2."""
        now = self._settled()
        return float(now._C[-1, -1] / now._weight + now._mean[-1] ** 2)

    def standardized(self, centre: bool = True, overwrite: bool = False) -> Standardized:
        """The averages of standardised rows, equations (3.2) and (3.3), of at least 2 rows.

        A feature whose standard deviation is not above the rounding of its mean has the scale inf:
        its row, column and S_xy are zero, with 1 on the diagonal. OverflowError if the values were
        too large for their squares to be summed in the dtype.

        Parameters
        ----------
        centre : bool, default=True
            Subtract the means and divide x by its standard deviations (divisor W). If False,
            subtract nothing and divide x by its root mean squares.
        overwrite : bool, default=False
            Let S_xx take the memory of the co-moments. Any further use of the object raises.
        """
        now = self._settled(spend=overwrite)
        if now.n < 2:
            raise ValueError(f"standardized needs at least 2 rows, got n={now.n}.")
        # What the moments have in addition to the centred ones.
        added = np.zeros_like(now._mean) if centre else now._mean.copy()
        square = np.diagonal(now._C) / now._weight + added**2
        if not np.isfinite(square).all():
            raise OverflowError(f"squares of the values shown do not fit into {self.dtype.name}.")
        scale = np.sqrt(square[:-1])
        scale[scale <= 10 * np.finfo(np.float64).eps * np.abs(now._mean[:-1])] = np.inf
        S_xy = (now._C[:-1, -1] / now._weight + added[:-1] * added[-1]) / scale
        if overwrite or now is not self:
            # Before it is changed: an interrupt leaves no halves.
            now._spent, now._C, matrix = "standardized(overwrite=True) took them", None, now._C
            matrix = out = without_last(matrix)
        else:
            matrix, out = now._C[:-1, :-1], np.empty_like(now._C[:-1, :-1])
        symmetric(matrix, now._weight, added[:-1], 1 / scale, out)
        np.fill_diagonal(out, 1.0)
        mean = now._mean - added
        return Standardized(out, S_xy, float(square[-1]), scale, mean[:-1], float(mean[-1]), now.n)

    def _settled(self, spend: bool = False) -> "RunningAverages":
        """These averages with no rows that wait: itself if there are none, else a copy.

        `spend`: itself in any case, as it will not be used again.
        """
        self._refuse_if_spent()
        if self.n == 0:
            raise ValueError("these RunningAverages have seen no rows: call update first.")
        if not self._filled:
            return self
        if spend:
            self._change(RunningAverages._fold)
            return self
        new = self.copy()
        new._fold()
        return new

    def _refuse_if_spent(self) -> None:
        if self._spent:
            raise RuntimeError(f"these RunningAverages are of no use since {self._spent}.")

    # -------------------------------------------------- objects are joined, copied and kept

    def merge(self, other: "RunningAverages") -> "RunningAverages":
        """Take in the rows of `other`, with their weights; returns self. `other` stays as it is.

        It must have the same number of features and the same dtype.
        """
        if not isinstance(other, RunningAverages):
            raise TypeError(f"other must be a RunningAverages, got {type(other).__name__}.")
        for name in ("n_features", "dtype"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                raise ValueError(f"other must have {name}={mine}, got {name}={its}.")
        self._refuse_if_spent()
        other._refuse_if_spent()
        if other.n == 0:
            return self
        its = other._settled()
        raw = self._raw + its._raw
        if not raw <= self._limit and self.n:
            mine = self._settled()
            share = its._folded / (mine._folded + its._folded)
            with np.errstate(over="ignore"):
                apart = (its._mean - mine._mean) ** 2 * (mine._folded * share)
            self._refuse_too_large(mine._squares() + its._squares() + apart, "other")
        self._change(RunningAverages._take_averages, its, raw)
        return self

    def __add__(self, other):
        if not isinstance(other, RunningAverages):
            return NotImplemented
        return self.copy().merge(other)

    def __radd__(self, other):
        # `sum` begins with 0.
        return self.copy() if isinstance(other, int) and other == 0 else NotImplemented

    def copy(self) -> "RunningAverages":
        """An independent copy."""
        new = copy.copy(self)
        new._C = self._C.copy(order="F")
        return new

    def __deepcopy__(self, memo):
        return self.copy()

    def __getstate__(self):
        self._refuse_if_spent()
        waiting = {name: getattr(self, name)[: self._filled] for name in PENDING}
        return vars(self) | waiting

    def __setstate__(self, state):
        vars(self).update(state)
        # joblib may hand over a read-only map of a file: BLAS would write to it all the same.
        self._C = np.require(self._C, requirements=["F", "W"])
        self._new_buffer([state[name] for name in PENDING])

    def _parts(self):
        state = self.__getstate__()
        return {name: state[name] for name in _KEPT}

    def _restore(self, parts, model=None):
        if parts.keys() != set(_KEPT):
            found, kept = (", ".join(sorted(map(str, names))) for names in (parts, _KEPT))
            raise OtherState(f"it has the parts {found}, not {kept}")
        p, C = parts["n_features"], parts["_C"]
        known = isinstance(C, Stored) and C.dtype in DTYPES and C.order == "F"
        if p != vars(self).get("n_features", p) or type(p) is not int:
            raise ValueError(f"it has averages of {p} features")
        if not known or C.shape != 2 * (p + 1,):
            raise ValueError(f"it has no co-moments of {p} features")
        new = RunningAverages(p, C.dtype)
        new._rate = None if parts["_rate"] is None else 0.0
        state = new.__getstate__()
        state |= {name: filled(parts[name], state[name], p, name) for name in _KEPT[:-1]}
        state["_C"] = C.read(into=new._C)
        new.adapt(state["_rate"], state["_per"])
        rows, weights, decays = (state[name] for name in PENDING)
        sums = [state[name] for name in ("n", "_weight", "_folded", "_raw")]
        finite = (sums[:3], state["_mean"], state["_rest"], rows, weights, decays)
        right = (
            len(rows) == len(weights) == len(decays) < state["block_rows"] <= new.block_rows,
            all(value >= 0 for value in sums) and (sums[0] > 0) == (sums[1] > 0),
            all(np.isfinite(values).all() for values in finite),
            (weights > 0).all() and (decays >= 0).all() and (decays <= 1).all(),
            not not_finite(new._C) and (np.diagonal(new._C) >= 0).all(),
        )
        if not all(right):
            raise ValueError("its sums, rows that wait or co-moments (upper triangle) cannot be")
        self.__setstate__(state)

    @classmethod
    def load(cls, path, memory_map=None) -> Self:
        """Read what `save` wrote; `memory_map` as in `RunningAverages`.

        OSError if the file cannot be read. ValueError if it is not whole, if a bit of it has
        changed, if it holds another class or is of a newer version, or if there is too little
        memory.
        """
        _refuse_folder(memory_map)
        return super().load(path)

    @staticmethod
    def from_dask(X, y, dtype=np.float64) -> "RunningAverages":
        """Running averages of rows of dask collections: of each block, then merged in a tree.

        Each takes O(p^2) memory of a worker; blocks of more than p rows are worth it. Needs dask,
        else raises ImportError.

        Parameters
        ----------
        X : dask array (n, p), dask data frame, or list of delayed blocks
            Observations. Of an array the chunks of rows; those that cut the columns are joined.
        y : dask array (n,), dask series, or list of delayed blocks
            Responses, in as many blocks; one array is cut as the other.
        dtype
            As in `RunningAverages`.

        Raises
        ------
        ValueError
            As `update`; and if a block has other columns than the others, or y another length.
        """
        from ofslib.beyond.dask_blocks import averages_of_blocks

        return averages_of_blocks(X, y, dtype)


def _refuse_folder(memory_map) -> None:
    if memory_map is not None:
        raise ValueError(f"memory_map={memory_map!r}: co-moments are no longer kept in a file.")
