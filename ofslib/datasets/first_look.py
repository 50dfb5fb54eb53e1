"""A first look at a table: what is in each of its columns, whatever its cells hold."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np

LEVELS = 1000  # different values of a column that are counted, and the most that become features
_FEW = 20  # rows in which words may all differ by chance
_DATES = 100  # words of a chunk that tell whether all are dates
_A_DATE = r"\d[-/.: ]\d"
# As they stand in a text; a file with types has missing values of its own.
MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")
TRUTHS = {"true": 1.0, "false": 0.0}
PER_CENT, TRUTH, WORDS = "per cent", "truth values", ("words", "dates")

# Why a column cannot be learned from as it is, and what to type.
REMEDIES = {
    "no value in": "--ignore",
    "another word in each row of": "--ignore",
    "dates in": "--ignore",
    f"more than {LEVELS:,} different words in": "--categorical hash",
    "words in": "--categorical onehot",
    "missing values in": "--missing mean",
}


def absent(cells, values=None) -> np.ndarray:
    """Which cells of a column hold no value; its numbers, if known, save the search."""
    if values is not None and not np.isnan(values).any():
        return np.zeros(len(values), bool)
    return (cells.isna() | (cells.dtype.kind == "O" and cells.isin(MISSING))).to_numpy()


def as_words(cells) -> np.ndarray:
    """The cells of a column as text, "" where one is missing."""
    words = np.array([*map(str, cells)], object)
    words[absent(cells)] = ""
    return words


def as_numbers(cells, kind: str = "numbers") -> np.ndarray:
    """The cells of a column as float64; NaN if a cell is missing, or no finite number."""
    import pandas as pd

    if kind in (PER_CENT, TRUTH):
        cells = pd.Series(as_words(cells), dtype=object)
        percent = cells.where(cells.str.endswith("%"), "").str[:-1]
        cells = percent if kind == PER_CENT else cells.str.lower().map(TRUTHS)
    elif cells.dtype.kind in "mM":  # of which pandas makes numbers, by their unit
        return np.full(len(cells), np.nan)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan, copy=True)
    values[~np.isfinite(values)] = np.nan
    return values


class FirstLook:
    """What is in each column of a table, learned from frames of its rows.

    Attributes
    ----------
    names, rows : list of str, int
        Of the columns; how many rows there are.
    missing, nonzero : ndarray of int
        Cells of each column without a value, and those that are no 0.
    levels : list of dict
        How often each different value of a column occurs; of the first 1000.
    many : ndarray of bool
        Whether a column has more.
    low, high : ndarray of float
        The range of the numbers of a column, if it has any.
    ragged : list of int
        Rows of a text with another number of cells, which can be learned from in no way.
    """

    def __init__(self, names: Sequence[str]):
        from sklearn.preprocessing import StandardScaler

        p = len(names)
        self.names, self.rows, self.scaler = list(names), 0, StandardScaler()
        (self.missing, self.nonzero), self.many = np.zeros((2, p), int), np.zeros(p, bool)
        self._found = {kind: np.zeros(p, int) for kind in ("numbers", PER_CENT, TRUTH)}
        self._dates, self.low, self.high = np.ones(p, bool), np.full(p, np.inf), np.full(p, -np.inf)
        self.levels: list[dict] = [{} for _ in names]
        self.ragged: list[int] = []

    def add(self, frame) -> None:
        """Take in some rows."""
        columns = [self._column(j, frame.iloc[:, j]) for j in range(len(self.names))]
        values = np.column_stack(columns)
        self.rows += len(frame)
        self.low = np.fmin(self.low, np.fmin.reduce(values))
        self.high = np.fmax(self.high, np.fmax.reduce(values))
        with np.errstate(invalid="ignore", divide="ignore"):  # of columns without numbers
            self.scaler.partial_fit(values)

    def _column(self, j, cells) -> np.ndarray:
        """The numbers of some cells of column j; what else they hold is counted."""
        import pandas as pd

        values = as_numbers(cells)
        missing = absent(cells, values)
        self.missing[j] += missing.sum()
        self._found["numbers"][j] += np.isfinite(values).sum()
        if not self.many[j]:
            there = cells[~missing]
            begin = there.iloc[: 2 * LEVELS]  # which may be enough
            counts = (begin if begin.nunique() > LEVELS else there).value_counts(sort=False)
            for value, count in zip(map(str, counts.index), counts.tolist(), strict=True):
                self.levels[j][value] = self.levels[j].get(value, 0) + count
            self.many[j] = len(self.levels[j]) > LEVELS
        if (np.isnan(values) & ~missing).any():
            for kind in (PER_CENT, TRUTH):
                others = as_numbers(cells, kind)
                self._found[kind][j] += np.isfinite(others).sum()
                values = np.where(np.isnan(values), others, values)
            words = pd.Series(as_words(cells))[~missing].head(_DATES)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of days that may be months
                dates = pd.to_datetime(words, errors="coerce", format="mixed", utc=True)
            self._dates[j] &= bool((dates.notna() & words.str.contains(_A_DATE)).all())
        self.nonzero[j] += (~missing & (values != 0)).sum()
        return values

    @property
    def mean(self) -> np.ndarray:
        """Of the numbers of each column; 0 without any."""
        return np.nan_to_num(self.scaler.mean_)

    @property
    def size(self) -> np.ndarray:
        """Root of the mean square of the numbers of each column that are not 0."""
        square = np.nan_to_num(self.scaler.var_ + self.scaler.mean_**2)
        return np.sqrt(square * (self.rows - self.missing) / np.maximum(1, self.nonzero))

    def kind(self, j: int) -> str:
        """What column j holds: numbers, per cent, truth values, dates, words, or none."""
        there = self.rows - self.missing[j]
        alike = [kind for kind, found in self._found.items() if found[j] == there]
        return (alike[0] if alike else "dates" if self._dates[j] else "words") if there else "none"

    def lacks(self, j: int, missing: str = "refuse", categorical: str | None = None) -> list[str]:
        """Why column j cannot be learned from, so encoded: keys of `REMEDIES`."""
        kind, distinct = self.kind(j), len(self.levels[j])
        empty, unlike, dates, many, words, gaps = REMEDIES
        if kind == "none":
            return [empty]
        found = [gaps] * bool(missing == "refuse" and self.missing[j])
        if kind in WORDS and categorical != "hash":
            if kind == "dates" and categorical is None:
                return [dates, *found]
            if distinct == self.rows - self.missing[j] > _FEW:
                return [unlike, *found]
            if self.many[j] or categorical is None:
                return [many if self.many[j] else words, *found]
        return found


def looked_at(names: Sequence[str], frames: Iterable) -> FirstLook:
    """A first look at all rows, which come as frames of pandas."""
    look = FirstLook(names)
    for frame in frames:
        look.add(frame)
    return look
