"""Synthetic stand-ins for public sets that are too large to come along: shapes, not rows.

Popularity follows a power law, as that of words and addresses does. The features of a day, in their
order, are cut into strata of equal popularity, and a row has at most one entry in each: the entries
of a row come out in ascending order, none twice, with nothing to sort, and how often a feature
occurs is known. This negative dependence within a stratum is that of fields of which a row has one
value each. Of the sets only the sizes are copied; popularity, drift and labels are of our own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from ofslib.simulate.papers import check_call, check_kinds

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

# Places drawn at once.
_PIECE = 2**17
# Knots of the places among the features, in all strata together.
_KNOTS = 2**13
# What keeps rounding from moving a place out of its stratum; features are 1 apart.
_GAP = 2.0**-20
# Entries of a block, unless its rows are given.
_BLOCK = 2**21
# Rows from which the labels' law is scaled.
_SCALED_BY = 4000


class _Law(NamedTuple):
    """Where the entries of a day's rows fall: at base + slope * (32 random bits), rounded down."""

    knots: np.ndarray  # (strata, knots of one + 1) places, ascending
    base: np.ndarray  # (strata * knots of one,)
    slope: np.ndarray
    first: np.ndarray  # (strata,) index of the first knot of a stratum
    shift: int  # of the bits, which leaves the number of the knot


class _Piece(NamedTuple):
    """Some rows of a day; a list of these is joined to a block."""

    counts: np.ndarray  # (rows,) entries
    indices: np.ndarray  # (entries,) int32
    data: np.ndarray  # (entries,) float64
    y: np.ndarray  # (rows,) -1.0 or 1.0

    def cut(self, start: int, stop: int) -> "_Piece":
        """Some of its rows."""
        first, last = np.append(0, np.cumsum(self.counts))[[start, min(stop, len(self.y))]]
        rows, entries = slice(start, stop), slice(first, last)
        return _Piece(self.counts[rows], self.indices[entries], self.data[entries], self.y[rows])


@dataclass(frozen=True)
class PowerLawRows:
    """Sparse rows, features whose popularity is a power law, labels by a logistic law.

    The r-th most popular feature has a popularity of about r^-exponent. With several days a share
    `lasting` of the features, the first ones, is there from the first day on. The others come in
    cohorts of one size, one a day, each with its own power law; a row has a share `changing` of its
    entries there, and of these each cohort has about `fading` times as many as the next younger
    one. P(y = +1) is 1 / (1 + exp(-(x . coef + intercept))). The true features are the 10th, 20th,
    ... of the lasting ones and of each cohort that comes before the day of `sample`, shared out by
    `changing`; their coefficients have random signs. All this follows from the parameters alone.

    Parameters
    ----------
    p, k : int
        Number of features, and of those with a nonzero coefficient.
    nonzeros : int
        Mean number of entries of a row.
    least : float, default=1.0
        A row fills its strata with a probability that is uniform between this and 1.
    exponent : float, default=1.0
        Of the power law; 0 makes all features equally popular.
    real : float, default=0.0
        Share of the strata, the first ones, whose entries are uniform on (0, 1]; others are 1.
    unit_norm : bool, default=False
        Whether rows are divided by their norm.
    positive : float, default=0.5
        Share of the label +1.
    signal : float, default=2.0
        Standard deviation of x . coef.
    days : int, default=1
        Days of the stream.
    day_rows : int, default=None
        Rows of a day; the last one never ends. Needed if there are several.
    train_days : int, default=None
        `sample` draws rows of the day after so many. None: of the last day.
    lasting, changing, fading : float, default=1.0, 0.0 and 1.0
        As above.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import PowerLawRows
    >>> design = PowerLawRows(p=1000, k=3, nonzeros=20)
    >>> X, y = design.sample(500, np.random.default_rng(0))
    >>> X.shape, design.support.tolist()
    ((500, 1000), [9, 19, 29])
    """

    task: ClassVar[str] = "classification"
    p: int
    k: int
    nonzeros: int
    least: float = 1.0
    exponent: float = 1.0
    real: float = 0.0
    unit_norm: bool = False
    positive: float = 0.5
    signal: float = 2.0
    days: int = 1
    day_rows: int | None = None
    train_days: int | None = None
    lasting: float = 1.0
    changing: float = 0.0
    fading: float = 1.0

    def __post_init__(self):
        check_kinds(type(self), vars(self))
        for name, holds, allowed in (
            ("p", self.p < 2**31, "below 2**31"),
            ("least", 0 < self.least <= 1, "above 0 and at most 1"),
            ("exponent", self.exponent >= 0, "at least 0"),
            ("real", 0 <= self.real <= 1, "from 0 to 1"),
            ("positive", 0 < self.positive < 1, "between 0 and 1"),
            ("signal", self.signal > 0, "above 0"),
            ("day_rows", self.day_rows or self.days == 1, "given for several days"),
            ("train_days", (self.train_days or 0) < self.days, f"less than days={self.days}"),
            ("lasting", 0 < self.lasting <= 1, "above 0 and at most 1"),
            ("changing", 0 <= self.changing < 1, "at least 0 and below 1"),
            ("fading", 0 < self.fading <= 1, "above 0 and at most 1"),
        ):
            if not holds:
                raise ValueError(f"{name}={getattr(self, name)} must be {allowed}")
        if (self.lasting < 1) != (self.changing > 0):
            raise ValueError(
                f"changing={self.changing} must be 0 if lasting is 1, and above 0 if it is below; "
                f"got lasting={self.lasting}"
            )
        there = self._starts[:3][-1]
        if there < self._strata:
            raise ValueError(
                f"nonzeros={self.nonzeros} makes {self._strata} strata, more than the {there} "
                "features of the first day"
            )
        for true, size in zip(self._true, np.diff(self._starts), strict=False):
            if 10 * true > size:
                raise ValueError(f"k={self.k} needs {10 * true} features where there are {size}")

    # The law

    @property
    def _filled(self) -> float:
        return 0.5 + 0.5 * self.least

    @property
    def _strata(self) -> int:
        return max(1, round(self.nonzeros / self._filled))

    @property
    def _sampled_day(self) -> int:
        return self.days - 1 if self.train_days is None else self.train_days

    @cached_property
    def _starts(self) -> np.ndarray:
        """First feature of those that last, and of each cohort, and p."""
        if self.changing == 0:
            return np.array([0, self.p])
        ends = np.linspace(self.lasting * self.p, self.p, self.days + 1).round()
        return np.append(0, ends).astype(int)

    @cached_property
    def _true(self) -> np.ndarray:
        """How many of those that last are true, and of each of the first cohorts."""
        of_cohorts = round(self.k * self.changing)
        ends = np.linspace(0, of_cohorts, max(1, self._sampled_day) + 1).round()
        return np.append(self.k - of_cohorts, np.diff(ends)).astype(int)

    @property
    def support(self) -> np.ndarray:
        """Indices (from 0) of the nonzero coefficients, shape (k,)."""
        pairs = zip(self._starts, self._true, strict=False)
        return np.concatenate([first + np.arange(9, 10 * true, 10) for first, true in pairs])

    @property
    def coef(self) -> np.ndarray:
        """True coefficients, shape (p,)."""
        return self._truth[0].astype(np.float64)

    @property
    def intercept(self) -> float:
        """That of the labels' law."""
        return self._truth[1]

    @cached_property
    def _truth(self) -> tuple[np.ndarray, float]:
        """Coefficients, in single precision to spare memory, and intercept."""
        # Here, because Snakemake reads the names of the designs and should start at once.
        from scipy.optimize import brentq
        from scipy.special import expit

        rng, coef = np.random.default_rng([self.p, self.k]), np.zeros(self.p, np.float32)
        coef[self.support] = rng.choice([-1.0, 1.0], self.k) * rng.uniform(0.5, 1.5, self.k)
        found, days = [], np.linspace(0, self._sampled_day, 8).astype(int)
        while len(found) * self._piece_rows < _SCALED_BY or len(found) < len(days):
            law = self._law(days[len(found) % len(days)])
            found.append(self._entries(law, rng, self._piece_rows, coef)[-1])
        margins = np.concatenate(found)
        scale = np.float32(self.signal / margins.std())
        margins *= scale
        coef *= scale
        reach = np.abs(margins).max() + 40.0
        intercept = brentq(lambda b: expit(margins + b).mean() - self.positive, -reach, reach)
        return coef, intercept

    def frequency(self, day: int = 0) -> np.ndarray:
        """Probability that a row of a day, from 0 on, has an entry of each feature, shape (p,)."""
        if day not in range(self.days):
            raise ValueError(f"day={day!r} must be from 0 to days - 1 = {self.days - 1}")
        knots = self._law(day).knots
        mass = np.arange(len(knots))[:, None] + np.linspace(0.0, 1.0, knots.shape[1])
        return self._filled * np.diff(np.interp(np.arange(self.p + 1), knots.flat, mass.flat))

    def auc(self, coef: np.ndarray, rows: int = 20_000) -> float:
        """Expected area under the ROC curve of the score x . coef on rows as those of `sample`.

        It is taken over their labels; the rows are `rows` that are always the same. Of the true
        coefficients it is the largest that there is.
        """
        from scipy.special import expit

        X, _ = self.sample(rows, np.random.default_rng(0))
        p = expit(X @ self.coef + self.intercept)
        _, place = np.unique(X @ coef, return_inverse=True)
        positive, negative = np.bincount(place, p), np.bincount(place, 1.0 - p)
        # A row is in no pair with itself.
        itself = 0.5 * p @ (1.0 - p)
        right = positive @ (np.cumsum(negative) - 0.5 * negative) - itself
        return float(right / (p.sum() * (1.0 - p).sum() - 2.0 * itself))

    def _law(self, day: int) -> _Law:
        from scipy.special import boxcox, inv_boxcox

        strata, starts = self._strata, self._starts[: day + 3]
        share = np.ones(1)
        if self.changing > 0:
            ages = np.arange(len(starts) - 3, -1, -1.0)
            cohorts = self.fading**ages
            share = np.append(1.0 - self.changing, self.changing * cohorts / cohorts.sum())
        # Places among the features below which there is so much of the mass
        parts = 1 << (max(1, _KNOTS // strata).bit_length() - 1)
        mass, below = np.linspace(0.0, 1.0, strata * parts + 1), np.append(0.0, np.cumsum(share))
        own = np.searchsorted(below[1:-1], mass, side="right")
        power, inner = 1.0 - self.exponent, np.clip((mass - below[own]) / share[own], 0.0, 1.0)
        whole = boxcox(np.diff(starts)[own] + 1.0, power)
        places = starts[own] + inv_boxcox(inner * whole, power) - 1.0
        # Strata end between features, and have at least one.
        count = np.arange(strata + 1)
        edges = np.maximum.accumulate(places[::parts].round() - count)
        edges = np.minimum(edges, starts[-1] - strata) + count
        edges[-1] = starts[-1]
        low, high = edges[:-1, None] + _GAP, edges[1:, None] - _GAP
        knots = places[count[:-1, None] * parts + np.arange(parts + 1)].clip(low, high)
        knots[:, :1], knots[:, -1:] = low, high
        shift = 33 - parts.bit_length()
        slope = np.diff(knots) / 2.0**shift
        base = knots[:, :-1] - slope * np.arange(parts) * 2.0**shift
        return _Law(knots, base.ravel(), slope.ravel(), count[:-1] * parts, shift)

    # Rows

    def stream(
        self, n: int, rng: np.random.Generator, block_rows: int | None = None, start: int = 0
    ) -> Iterator[tuple["csr_matrix", np.ndarray]]:
        """Yield n rows, or those of them from `start` on, as blocks (X, y).

        A block has at most `block_rows` rows; None: of about two million entries.
        """
        return self._blocks(n, rng, block_rows, start)

    def test_stream(
        self, n: int, rng: np.random.Generator, block_rows: int | None = None
    ) -> Iterator[tuple["csr_matrix", np.ndarray]]:
        """Yield n rows of the day after `train_days`, as `stream`."""
        return self._blocks(n, rng, block_rows, day=self._sampled_day)

    def sample(self, n: int, rng: np.random.Generator) -> tuple["csr_matrix", np.ndarray]:
        """Draw n rows of the day after `train_days` at once."""
        return next(self.test_stream(n, rng, block_rows=n))

    def _blocks(self, n, rng, block_rows, start=0, day=None):
        block_rows = max(1, _BLOCK // self.nonzeros) if block_rows is None else block_rows
        check_call(n, rng, block_rows)
        if not 0 <= start < n:
            raise ValueError(f"start={start!r} must be from 0 to n - 1 = {n - 1}")
        key, held, rows = int(rng.integers(2**63)), [], 0
        for piece in self._pieces(key, start, n, day):
            while rows + len(piece.y) >= block_rows:
                room = block_rows - rows
                yield self._joined([*held, piece.cut(0, room)])
                piece, held, rows = piece.cut(room, len(piece.y)), [], 0
            if len(piece.y):
                held.append(piece)
                rows += len(piece.y)
        if held:
            yield self._joined(held)

    def _joined(self, pieces: list[_Piece]) -> tuple["csr_matrix", np.ndarray]:
        from scipy.sparse import csr_matrix

        counts, indices, data, y = map(np.concatenate, zip(*pieces, strict=True))
        indptr = np.append(0, np.cumsum(counts))
        return csr_matrix((data, indices, indptr), shape=(len(y), self.p)), y

    def _pieces(self, key: int, row: int, stop: int, only: int | None) -> Iterator[_Piece]:
        """The rows from `row` to `stop` of the stream, or of one day, which then never ends."""
        law, known = None, None
        while row < stop:
            day = min(row // (self.day_rows or stop), self.days - 1) if only is None else only
            first = 0 if only is not None else day * (self.day_rows or 0)
            number, skipped = divmod(row - first, self._piece_rows)
            rows = self._piece_rows
            if only is None and day < self.days - 1:
                rows = min(rows, self.day_rows - number * rows)
            if day != known:
                law, known = self._law(day), day
            seed = np.random.SeedSequence(key, spawn_key=(day, number))
            piece = self._piece(law, np.random.Generator(np.random.SFC64(seed)), rows)
            yield piece.cut(skipped, skipped + stop - row)
            row += rows - skipped

    def _piece(self, law: _Law, rng: np.random.Generator, rows: int) -> _Piece:
        coef, intercept = self._truth
        indices, data, there, margins = self._entries(law, rng, rows, coef)
        y = np.where(rng.logistic(size=rows) < margins + intercept, 1.0, -1.0)
        counts = np.full(rows, self._strata) if there is None else np.count_nonzero(there, axis=1)
        # Several times as fast as to index by the mask
        kept = slice(None) if there is None else np.flatnonzero(there)
        return _Piece(counts, indices.ravel()[kept], data.ravel()[kept], y)

    @property
    def _piece_rows(self) -> int:
        return max(1, _PIECE // self._strata)

    def _entries(self, law, rng, rows, coef):
        """Features and values of each row, which of them there are (None: all), and x . coef."""
        shape, there = (rows, self._strata), None
        bits = _bits(rng, shape, "<u4")
        bucket = (bits >> law.shift) + law.first
        places = law.slope.take(bucket)
        places *= bits
        places += law.base.take(bucket)
        features, values = places.astype(np.int32), np.ones(shape)
        if self.least < 1:
            filled = self.least + (1.0 - self.least) * rng.random((rows, 1))
            there = _bits(rng, shape, "<u2") < (filled * 2**16).astype(np.uint16)
            values = there.astype(np.float64)
        if number := round(self.real * self._strata):
            values[:, :number] *= 1.0 - rng.random((rows, number), np.float32)
        if self.unit_norm:
            squares = np.einsum("ij,ij->i", values, values)[:, None]
            values /= np.sqrt(np.maximum(squares, 2.0**-48))
        return features, values, there, (coef.take(features) * values).sum(axis=1)


def _bits(rng, shape, kind):
    """Random numbers of as many bits; several times as fast as by `rng.integers`."""
    size = np.prod(shape)
    raw = rng.bit_generator.random_raw(-(-size * np.dtype(kind).itemsize // 8))
    return raw.astype("<u8", copy=False).view(kind)[:size].reshape(shape)


@dataclass(frozen=True)
class URLShaped(PowerLawRows):
    """As URL (Ma et al. 2009): sfsa, Table 4; dissertation, Table 4.5. `sample`: the 101st day.

    2,396,130 rows of 121 days, 3,231,961 features, a third of the labels +1, and, of our own, about
    115 entries a row, of which one in ten is not 1, and a vocabulary that grows by 21,368 features
    a day, each of which loses a tenth of its popularity a day.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import URLShaped
    >>> X, y = URLShaped(p=100_000, k=100).sample(20, np.random.default_rng(0))
    >>> X.shape
    (20, 100000)
    """

    p: int = 3_231_961
    k: int = 16_000
    nonzeros: int = 115
    least: float = 0.7
    real: float = 0.1
    positive: float = 1 / 3
    signal: float = 12.0
    days: int = 121
    day_rows: int | None = 19_803
    train_days: int | None = 100
    lasting: float = 0.2
    changing: float = 0.5
    fading: float = 0.9


@dataclass(frozen=True)
class AvazuShaped(PowerLawRows):
    """As Avazu (Juan et al. 2016): sfsa, Table 4.

    Fifteen fields of which a row has one value each, a million features; clicks (+1) are rare and
    hard to tell.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import AvazuShaped
    >>> X, y = AvazuShaped(p=10_000, k=100).sample(20, np.random.default_rng(0))
    >>> X.shape
    (20, 10000)
    """

    p: int = 1_000_000
    k: int = 1000
    nonzeros: int = 15
    positive: float = 0.15
    signal: float = 0.8


@dataclass(frozen=True)
class WebspamShaped(PowerLawRows):
    """As webspam (trigrams): dissertation, Table 4.5.

    Long rows of norm 1: about 3730 entries of 16,609,143.

    Examples
    --------
    >>> import numpy as np
    >>> from ofslib.simulate import WebspamShaped
    >>> X, y = WebspamShaped(p=100_000, k=100, nonzeros=1000).sample(20, np.random.default_rng(0))
    >>> X.shape
    (20, 100000)
    """

    p: int = 16_609_143
    k: int = 16_609
    nonzeros: int = 3730
    least: float = 0.25
    real: float = 1.0
    unit_norm: bool = True
    positive: float = 0.6
    signal: float = 10.0
