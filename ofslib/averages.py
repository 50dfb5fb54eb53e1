"""Running averages (Sun 2019, chapter 3): all that least squares needs to know of the rows.

Rows z = (x, y) are kept as the sum of their weights W, their mean m and the centred co-moments
C = sum w (z - m)(z - m)', from which the averages of the dissertation follow: S_xx = C_xx / W +
mu_x mu_x', and likewise S_xy and S_yy. Sums of raw squares, as printed, would lose all digits of
a variance where the mean is large: at a mean of 1e6 and unit variance float64 keeps 3 digits of
the raw form and 15 of this one.

The file is longer than others: its one class shares what it holds among all its methods, and a
third of the lines says what they promise.
"""

import copy
import os
import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from numbers import Integral, Real
from pathlib import Path
from typing import NamedTuple

import numpy as np
import psutil
import scipy.sparse as sp
from scipy.linalg.blas import ddot, dsyrk, sdot, ssyrk
from sklearn.utils import assert_all_finite
from sklearn.utils.extmath import row_norms
from sklearn.utils.validation import check_X_y

from ofslib._dask import Columns, alike, blocks_of, columns_of, dask_for
from ofslib._interrupts import interrupts_held
from ofslib._model_files import OtherState, Saved, Stored, filled, read
from ofslib._sparse import checked, checked_targets, checked_weights, refuse_times

# Co-moments of more bytes than this lie in a file of the system's temporary folder.
MAX_BYTES = psutil.virtual_memory().total * 2 // 3

_SYRK = {"float64": dsyrk, "float32": ssyrk}
# numpy's BLAS has threads of its own, which for a while go on waiting at full speed: scipy's, for
# the products that follow, would share the cores with them.
_DOT, _MOST_AT_ONCE = {"float64": ddot, "float32": sdot}, 1 << 30
_MOST_FEATURES = 1 << 28  # their co-moments would take 2^59 bytes
# So many rows are folded in at a time that the product, not the reading and writing of the
# co-moments, takes the time; no more, so that the rows are still in the processor's cache by then.
_FEATURES_PER_ROW, _LEAST_ROWS = 8, 256
_BUFFER_BYTES = 64 << 20  # before _LEAST_ROWS
_THIN_ROWS, _THIN_PAIRS = 1024, 4000  # see _is_thin
_PANEL = 128  # columns of a matrix that are scaled and mirrored at a time
_FAN_IN = 8  # averages that one task of dask merges
# What is kept, beside the co-moments.
_FACTS = ("n_features", "block_rows", "n", "_weight", "_folded", "_raw", "_rate", "_per")
_PENDING = ("_rows", "_weights", "_decays")
_MEAN = ("_mean", "_rest")
_PER = ("observation", "block")
_BEGUN = "an interrupt of the first rows"  # what is undone before the next use, if not at once


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


class RunningAverages(Saved):
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
    memory_map : path, default=None
        Folder of a file that holds the co-moments; it has no name and goes with the object. None:
        they are in memory, or, if they take more than `MAX_BYTES` (two thirds of the machine's
        memory), in such a file in the system's temporary folder.

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
    """

    memory_map = None

    def __init__(self, n_features: int, dtype=np.float64, memory_map=None):
        if not isinstance(n_features, Integral) or n_features < 1:
            raise ValueError(f"n_features must be an int of 1 or more, got {n_features!r}.")
        if n_features > _MOST_FEATURES:
            raise ValueError(f"n_features={n_features}: their square is more than a machine holds.")
        dtype = _float_type(dtype)
        self.memory_map = _folder(memory_map)
        self.n_features, self.dtype = int(n_features), dtype
        self.block_rows = _block_rows(self.n_features, self.dtype)
        self._rate, self._per = None, "observation"
        self._C = self._new_matrix(self.n_features + 1)
        self._new_buffer()
        self._begin()

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
            their dtype and Fortran order, may be written to, and no file is to hold them.
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
        flags, in_memory = comoments.flags, memory_map is None and new._C.nbytes <= MAX_BYTES
        suits = comoments.dtype == new.dtype and flags.f_contiguous and flags.writeable
        if in_memory and suits and not copy:
            new._C = comoments
        else:
            with np.errstate(over="ignore"):
                new._C[:] = comoments
        if place := not_finite(new._C):
            found = comoments[place]
            raise ValueError(
                f"comoments must be finite in {new.dtype.name}, got {found} at {place}."
            )
        with np.errstate(over="ignore"):
            new._raw = float(n * (mean @ mean) + new._squares().sum())
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
        raw = self._fitting(X, y, weights)
        thin = sp.issparse(X) and self._rate is None and raw <= self._limit and _is_thin(X, weights)

        def take_in():
            if thin:
                self._add_thin(X, y, weights)
            start = 0
            while start < len(y) and not thin:
                # As many as fit into the buffer as it is then.
                part = slice(start, start + self.block_rows - self._filled)
                self._append(X[part], y[part], weights[part], opens_call=start == 0)
                start = part.stop
            self._raw = raw

        self._change(take_in)
        return self

    def _change(self, act: Callable[[], None]) -> None:
        """Change all or nothing: what fails is undone, or, if known rows are half changed, lost."""
        before, empty = dict(self.__dict__), self.n == 0
        with nullcontext() if empty else interrupts_held():
            try:
                self._spent = _BEGUN if empty else ""
                act()
                self._spent = ""
            except BaseException:
                if empty:
                    self._spent = _BEGUN
                    self._forget()
                elif self._spent:
                    self._C = None
                else:
                    self.__dict__.update(before)
                raise

    def _begin(self) -> None:
        """Know no rows, with co-moments that are zero."""
        self.n, self._weight, self._folded = 0, 0.0, 0.0  # _folded: the weight of _mean and _C
        # Sum of w |z|^2 over all rows: as long as it fits into dtype, so do the co-moments.
        self._raw, self._filled = 0.0, 0
        # The mean is the sum of these: float64, and what it was rounded by.
        self._mean, self._rest = np.zeros((2, self.n_features + 1))
        self._spent = ""  # last: if Ctrl-C comes before, it is done again

    def _forget(self) -> None:
        self._C[:] = 0
        self._begin()

    def _checked(self, X, y, sample_weight):
        """Finite X (float64, float32 or CSR), y and weights; rows of weight zero left out."""
        kinds = [np.float64, np.float32]
        refuse_times(X=X, y=y)
        X, y = check_X_y(
            checked(X),
            y,
            accept_sparse="csr",
            dtype=kinds,
            ensure_all_finite=False,  # see _fitting
            estimator="RunningAverages",
        )
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

    def _fitting(self, X, y, weights) -> float:
        """What `_raw` will be; ValueError if X is not finite, or the co-moments would not be.

        One pass over X. Only if its squares, which a mean makes larger, do not fit, those of the
        distances from the mean are summed up: no co-moment can be larger.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            raw = self._raw + float((weights * y * y).sum()) + _sum_of_squares(X, weights)
            if raw <= self._limit:
                return raw
            assert_all_finite(X, estimator_name="RunningAverages", input_name="X")
            waiting = np.square(self._rows[: self._filled], dtype=np.float64)
            squares = self._squares() + self._weights[: self._filled] @ waiting
            mean = self._mean if self._weight or not len(y) else self._first(X, y)
            for start in range(0, len(y), _LEAST_ROWS):
                part = slice(start, start + _LEAST_ROWS)
                block = X[part].toarray() if sp.issparse(X) else X[part]
                squares += weights[part] @ (np.column_stack([block, y[part]]) - mean) ** 2
        self._refuse_too_large(squares, "X")
        return raw

    @property
    def _limit(self) -> float:
        """What no sum of squares may exceed, so that none of their sums is infinite."""
        return float(np.finfo(self.dtype).max) / 4

    def _refuse_too_large(self, squares, owner: str) -> None:
        if not (squares <= self._limit).all():
            j = int(np.argmax(~(squares <= self._limit)))
            name = "y" if j == self.n_features else f"feature {j}"
            raise ValueError(
                f"{owner} is too large for {self.dtype.name}: weighted squares of distances from "
                f"the mean of {name} sum up to more than {self._limit:.0e}."
            )

    @staticmethod
    def _first(X, y) -> np.ndarray:
        first = X[:1].toarray()[0] if sp.issparse(X) else X[0]
        return np.append(first, y[0]).astype(np.float64)

    def _squares(self) -> np.ndarray:
        """The diagonal of the co-moments, float64."""
        return np.diagonal(self._C).astype(np.float64)

    def _append(self, X, y, weights, opens_call: bool) -> None:
        X = X.toarray() if sp.issparse(X) else X
        if self._weight == 0:
            self._mean = self._first(X, y)
        start, stop = self._filled, self._filled + len(y)
        rows = self._rows[start:stop]
        # What is kept in float32 is the distance from the mean: of a large mean nothing is lost.
        np.subtract(X, self._mean[:-1], out=rows[:, :-1], casting="same_kind")
        np.subtract(y, self._mean[-1], out=rows[:, -1], casting="same_kind")
        self._weights[start:stop], self._decays[start:stop] = self._enter(weights, opens_call)
        self._filled = stop
        if stop == self.block_rows:
            self._fold()

    def _enter(self, weights, opens_call: bool):
        """The weight of each row, and by what it multiplies that of all before it, as in (3.11).

        A row of weight w becomes the share max(w * rate, w / (W + w)), at most 1: hence W
        never exceeds 1 / rate. With adaptation per block the rows of one call, whose
        weights sum to 1, take that share at once.
        """
        limit = np.inf if self._rate is None else 1 / self._rate
        decays, old = np.ones(len(weights)), self._weight
        if self._per == "block":
            if opens_call and old > limit - 1:
                decays[0], old = (limit - 1) / old, limit - 1
            after = np.cumsum(np.append(old, weights))[1:]
        else:
            weights = np.minimum(weights, limit)
            after = np.minimum(np.cumsum(np.append(old, weights))[1:], limit)
            before, left = np.append(old, after[:-1]), limit - weights
            np.divide(left, before, out=decays, where=before > left)
        self._weight, self.n = float(after[-1]), self.n + len(weights)
        return weights, decays

    def _fold(self) -> None:
        """Take the waiting rows into mean and co-moments."""
        # Until the call that changes the averages has ended: see _change.
        why = "an update or merge stopped half-way: begin anew, or load a file"
        self._spent = self._spent or why
        if self._filled == 0:
            return
        rows = self._rows[: self._filled + 1]
        fading, step, weight = self._gathered(rows)
        _SYRK[self.dtype.name](1.0, rows.T, beta=fading, c=self._C, overwrite_c=1)
        self._move_mean(step, weight)
        self._filled = 0

    def _gathered(self, rows):
        """What the waiting rows, and one more in the same memory, add (Chan, Golub, LeVeque 1983).

        The rows, as distances from the mean before, are centred by their own mean; one more row
        stands for the distance of the two means. Returns what is left of the weight before, the
        step of the mean, and the weight after.
        """
        count = len(rows) - 1
        # What is left, after the last row, of the weight before each row; then of its own.
        fading = np.append(np.cumprod(self._decays[:count][::-1])[::-1], 1.0)
        weights = self._weights[:count] * fading[1:]
        old, new = fading[0] * self._folded, float(weights.sum())
        share = new / (old + new)
        shift = np.einsum("i,ij->j", weights, rows[:count]) / new
        rows[:count] -= shift.astype(self.dtype)
        if (weights != 1).any():
            rows[:count] *= np.sqrt(weights).astype(self.dtype)[:, None]
        distance = shift - self._rest
        rows[count] = np.sqrt(old * share) * distance
        return fading[0], share * distance, old + new

    def _add_thin(self, X, y, weights) -> None:
        """Take in nearly empty rows at once, without filling them up.

        Their uncentred products lose no digits, because no column is filled in more than half of
        the rows: a variance is then at least half of the mean square.
        """
        self._fold()
        if self._weight == 0:
            self._mean = np.append(np.zeros(self.n_features), y[0])
        old, new = self._folded, float(weights.sum())
        share = new / (old + new)
        response = y - self._mean[-1]
        shift = np.append(X.T @ weights, weights @ response) / new
        response -= shift[-1]
        centre = np.append(shift[:-1], 0.0)
        shift[:-1] -= self._mean[:-1]
        distance = shift - self._rest
        Z = sp.hstack([X, sp.csr_array(response[:, None])], format="csc", dtype=self.dtype)
        weighted = (sp.diags_array(weights) @ Z).astype(self.dtype).tocsc()
        for start in range(0, len(centre), _PANEL):
            part = slice(start, start + _PANEL)
            stop = min(start + _PANEL, len(centre))
            panel = (Z[:, :stop].T @ weighted[:, part]).toarray()
            panel -= centre[:stop, None] * (new * centre[part])
            panel += distance[:stop, None] * (old * share * distance[part])
            self._C[:stop, part] += panel
        self._move_mean(share * distance, old + new)
        self.n += len(y)

    def _move_mean(self, step, weight: float) -> None:
        """Add to the mean, set its weight, and keep the rounding error (Knuth's two-sum).

        Else the co-moments would belong to another mean: an error of its rounding per block.
        """
        step = step + self._rest
        mean = self._mean + step
        taken = mean - self._mean
        self._rest = (self._mean - (mean - taken)) + (step - taken)
        self._mean = mean
        self._folded = self._weight = float(weight)

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
        return self._mean_now()[:-1].copy()

    @property
    def mean_y(self) -> float:
        """Mean of the response."""
        return float(self._mean_now()[-1])

    @property
    def S_xx(self) -> np.ndarray:
        """(1 / W) sum w x x', (p, p), in the dtype of the averages, Fortran order."""
        now = self._settled()
        if not (now._squares() / now._weight + now._mean**2 <= 4 * self._limit).all():
            raise OverflowError(f"squares of the values shown do not fit into {self.dtype.name}.")
        out, ones = self._new_matrix(self.n_features), np.ones(self.n_features)
        _symmetric(now._C[:-1, :-1], now._weight, now._mean[:-1], ones, out)
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
            matrix = out = _without_last(matrix)
        else:
            matrix, out = now._C[:-1, :-1], self._new_matrix(self.n_features)
        _symmetric(matrix, now._weight, added[:-1], 1 / scale, out)
        np.fill_diagonal(out, 1.0)
        mean = now._mean - added
        return Standardized(out, S_xy, float(square[-1]), scale, mean[:-1], float(mean[-1]), now.n)

    def _settled(self, spend: bool = False) -> "RunningAverages":
        """These averages with no rows that wait: itself if there are none, else a copy.

        `spend`: itself in any case, as it will not be used again.
        """
        self._refuse_if_unknown()
        if not self._filled:
            return self
        if not spend:
            self = self.copy()
        self._change(self._fold)
        return self

    def _mean_now(self) -> np.ndarray:
        self._refuse_if_unknown()
        if not self._filled:
            return self._mean
        _, step, _ = self._gathered(self._rows[: self._filled + 1].copy())
        return self._mean + (step + self._rest)

    def _refuse_if_unknown(self) -> None:
        self._refuse_if_spent()
        if self.n == 0:
            raise ValueError("these RunningAverages have seen no rows: call update first.")

    def _refuse_if_spent(self) -> None:
        if self._spent == _BEGUN:
            self._forget()
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
        C, mean, rest, weight = its._C, its._mean, its._rest, its._folded
        raw, both = self._raw + its._raw, self._weight + weight
        if both > self._limit:
            raise ValueError(f"other must not be so heavy: the weights of both sum up to {both}.")
        if not raw <= self._limit and self.n:
            mine = self._settled()
            with np.errstate(over="ignore"):
                apart = (mean - mine._mean) ** 2 * (mine._folded * (weight / both))
            self._refuse_too_large(mine._squares() + its._squares() + apart, "other")

        def take_in():
            self._fold()
            if not self._folded:
                self._mean, self._rest = mean.copy(), rest.copy()  # with what it was rounded by
            total = self._folded + weight
            share = weight / total
            distance = (mean - self._mean) + (rest - self._rest)
            column = (np.sqrt(self._folded * share) * distance).astype(self.dtype)[:, None]
            self._C += C
            _SYRK[self.dtype.name](1.0, column, beta=1.0, c=self._C, overwrite_c=1)
            self._move_mean(share * distance, total)
            self.n, self._raw = self.n + other.n, raw

        self._change(take_in)
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
        self._refuse_if_spent()
        new = copy.copy(self)
        new._mean, new._rest = self._mean.copy(), self._rest.copy()
        new._C = self._new_matrix(self.n_features + 1)
        new._C[:] = self._C
        return new

    def __deepcopy__(self, memo):
        return self.copy()

    def __getstate__(self):
        waiting = {name: getattr(self, name)[: self._filled] for name in _PENDING}
        return self.__dict__ | waiting

    def __setstate__(self, state):
        self.__dict__.update(state)
        # joblib may hand over a read-only map of a file: BLAS would write to it all the same.
        if self._C is not None and not (self._C.flags.writeable and self._C.flags.f_contiguous):
            self._C, given = self._new_matrix(self.n_features + 1), self._C
            self._C[:] = given
        self._new_buffer({name: state[name] for name in _PENDING})

    def _parts(self):
        self._refuse_if_spent()
        state = self.__getstate__()
        return {name: state[name] for name in (*_FACTS, *_MEAN, *_PENDING, "_C")}

    def _restore(self, parts, model=None):
        if parts.keys() != (kept := {*_FACTS, *_MEAN, *_PENDING, "_C"}):
            found, kept = (", ".join(sorted(map(str, names))) for names in (parts, kept))
            raise OtherState(f"it has the parts {found}, not {kept}")
        p, C, rows = (parts[name] for name in ("n_features", "_C", "_rows"))
        known = isinstance(C, Stored) and C.dtype in map(np.dtype, _SYRK)
        if type(p) is not int or not known or C.shape != 2 * (p + 1,) or C.order != "F":
            raise ValueError("such averages cannot be: n_features or co-moments")
        if p != vars(self).get("n_features", p):
            raise ValueError(f"its averages are not those of {self.n_features} features")
        waiting = rows.shape[:1] if isinstance(rows, Stored) else (0,)
        shapes = dict.fromkeys(_MEAN, (p + 1,)) | dict.fromkeys(_PENDING[1:], waiting)
        fresh = {name: np.broadcast_to(0.0, shape) for name, shape in shapes.items()}
        fresh |= {"_rows": np.broadcast_to(C.dtype.type(0), (*waiting, p + 1)), "_per": ""}
        fresh |= dict.fromkeys(_FACTS[:3], 0) | dict.fromkeys(_FACTS[3:6], 0.0)
        fresh |= {"_rate": None if parts["_rate"] is None else 0.0}
        found = {name: filled(parts[name], fresh[name], p, name) for name in fresh}
        most = max(1, _BUFFER_BYTES // ((p + 1) * C.dtype.itemsize))
        finite = (*_MEAN, *_PENDING, *_FACTS[3:5])
        right = {
            "rows that wait": len({len(found[name]) for name in _PENDING}) == 1,
            "n": (found["n"] > 0) == (found["_weight"] > 0) and found["n"] >= 0,
            "sums": all(found[name] >= 0 for name in _FACTS[3:6]),
            "values": all(np.isfinite(found[name]).all() for name in finite),
            "weights": bool((found["_weights"] > 0).all()),
            "decays": bool(((found["_decays"] >= 0) & (found["_decays"] <= 1)).all()),
            "rate": found["_rate"] is None or 0 < found["_rate"] <= 1,
            "per": found["_per"] in _PER,
            "block_rows": waiting[0] < found["block_rows"] <= most,
        }
        if wrong := [name for name, holds in right.items() if not holds]:
            raise ValueError(f"such averages cannot be: {', '.join(wrong)}")
        self.dtype, self._spent = C.dtype, ""
        vars(self).update(found)
        # A fresh object has memory for them: in a file, if they are large.
        if "_C" not in vars(self) or self._C.dtype != C.dtype:
            self._C = self._new_matrix(p + 1)
        C.read(into=self._C)
        if not_finite(self._C) or not (np.diagonal(self._C) >= 0).all():
            raise ValueError("such averages cannot be: upper triangle")
        self._new_buffer({name: found[name] for name in _PENDING})

    @classmethod
    def load(cls, path, memory_map=None) -> "RunningAverages":
        """Read what `save` wrote; `memory_map` as in `RunningAverages`.

        OSError if the file cannot be read. ValueError if it is not whole, if a bit of it has
        changed, or if it holds another class or is of a newer version.
        """
        new = cls.__new__(cls)
        new.memory_map = _folder(memory_map)
        return read(cls, path, new)

    def _new_buffer(self, waiting=None) -> None:
        """Space for waiting rows, their weights, and what they multiply the weights before by."""
        self._rows = np.empty((self.block_rows + 1, self.n_features + 1), self.dtype)
        self._weights, self._decays = np.empty((2, self.block_rows))
        self._filled = 0
        for name, values in (waiting or {}).items():
            self._filled = len(values)
            getattr(self, name)[: self._filled] = values

    def _new_matrix(self, order: int) -> np.ndarray:
        """Zeros, (order, order) in Fortran order, in memory or in a file that has no name."""
        folder, dtype, size = self.memory_map, self.dtype, order**2 * self.dtype.itemsize
        if folder is None and size <= MAX_BYTES:
            return np.zeros((order, order), dtype, order="F")
        with tempfile.TemporaryFile(dir=folder) as file:
            # Without space reserved, a full disk would end the process instead of raising.
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
            except OSError as error:
                place, reason = folder or tempfile.gettempdir(), error.strerror
                raise OSError(
                    f"co-moments of {order} columns take {size / 1e9:.3g} GB, for which {place} "
                    f"has no room ({reason}): take a method on rows, as SFSA, or another memory_map"
                ) from error
            mapped = np.memmap(file, dtype, "w+", shape=(order, order), order="F")
        return np.asarray(mapped)

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
        dask, blocks = dask_for("from_dask"), blocks_of(X, y)
        learn, merge = dask.delayed(_averages_of), dask.delayed(_merged)
        parts = [learn(*block, dtype) for block in blocks]
        while len(parts) > 1:
            parts = [merge(parts[i : i + _FAN_IN]) for i in range(0, len(parts), _FAN_IN)]
        averages, _ = parts[0].compute()
        return averages


def _averages_of(X, y, dtype) -> tuple[RunningAverages, Columns]:
    columns, averages = columns_of(X, y), RunningAverages(X.shape[1], dtype)
    # Merged rows do not wait: a copy would be made of all co-moments to add them.
    return averages.update(X, y)._settled(spend=True) if len(y) else averages, columns


def _merged(parts: list[tuple[RunningAverages, Columns]]) -> tuple[RunningAverages, Columns]:
    averages, columns = zip(*parts, strict=True)
    columns = alike(columns)
    return sum(averages), columns


def _sum_of_squares(X, weights) -> float:
    """sum of w |x|^2"""
    if sp.issparse(X):
        return float(weights @ row_norms(X, squared=True))
    if X.flags.forc and (weights == 1).all():
        flat, dot = X.reshape(-1, order="A"), _DOT[X.dtype.name]
        starts = range(0, len(flat), _MOST_AT_ONCE)
        parts = (flat[start : start + _MOST_AT_ONCE] for start in starts)
        return float(sum(dot(part, part) for part in parts))
    return float(weights @ np.einsum("ij,ij->i", X, X))


def _is_thin(X, weights) -> bool:
    """Whether a sparse product is faster than filling up the rows, and as accurate.

    Per row it takes some 10 ns for each pair of entries, the dense product p^2 / 70 ns; and each
    call passes through the co-moments some times.
    """
    n, p = X.shape
    entries = np.diff(X.indptr)
    if n < _THIN_ROWS or np.square(entries, dtype=np.float64).sum() > n * p**2 / _THIN_PAIRS:
        return False
    filled = np.bincount(X.indices, weights=np.repeat(weights, entries), minlength=p)
    return bool(filled.max() <= weights.sum() / 2)


def _block_rows(n_features, dtype) -> int:
    fitting = max(1, _BUFFER_BYTES // ((n_features + 1) * dtype.itemsize))
    return min(fitting, max(_LEAST_ROWS, n_features // _FEATURES_PER_ROW))


def _symmetric(matrix, weight, mean, factor, out) -> None:
    """out <- D (matrix / weight + mean mean') D, D = diag(factor), both triangles.

    Of `matrix` the upper triangle is read; `out` may be the same memory.
    """
    for start in range(0, len(matrix), _PANEL):
        part = slice(start, start + _PANEL)
        # In squares, which stay in the processor's cache.
        for first in range(0, start + 1, _PANEL):
            rows = slice(first, first + _PANEL)
            tile = matrix[rows, part] * (factor[part] / weight)
            if mean.any():
                tile += mean[rows, None] * (mean[part] * factor[part])
            tile *= factor[rows, None]
            if first == start:
                tile = np.triu(tile) + np.triu(tile, 1).T
            out[rows, part] = tile
            out[part, rows] = tile.T


def _without_last(matrix) -> np.ndarray:
    """The upper triangle of all but the last row and column, moved together in the same memory."""
    p = len(matrix) - 1
    flat = matrix.reshape(-1, order="F")
    for j in range(1, p):
        flat[j * p : j * p + j + 1] = flat[j * (p + 1) : j * (p + 1) + j + 1]
    return flat[: p * p].reshape((p, p), order="F")


def not_finite(matrix) -> tuple[int, int] | None:
    """Row and column of an entry of the upper triangle that is not finite; None: all are."""
    for start in range(0, len(matrix), _PANEL):
        part = slice(start, start + _PANEL)
        upper = np.triu(matrix[: part.stop, part], -start)
        if not np.isfinite(upper).all():
            i, j = np.argwhere(~np.isfinite(upper))[0]
            return int(i), int(start + j)
    return None


def _float_type(dtype):
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.name not in _SYRK:
        raise ValueError(f"dtype must be float64 or float32, got {dtype!r}.")
    return found


def _folder(memory_map):
    path = isinstance(memory_map, str | os.PathLike)
    if memory_map is not None and not (path and Path(memory_map).is_dir()):
        raise ValueError(f"memory_map must be a folder that exists, got {memory_map!r}.")
    return memory_map
