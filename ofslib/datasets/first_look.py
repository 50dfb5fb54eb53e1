"""A first look at a table: what is in each of its columns, whatever its cells hold."""

import warnings
from collections.abc import Iterable, Sequence

import numpy as np

LEVELS = 1000  # different values of a column that are counted, each as a column of its own at most
FEW = 20  # rows in which words may all differ by chance
_DATES = 100  # words of a chunk that tell whether all are dates
_A_DATE = r"\d[-/.: ]\d"
# As they stand in a text; a file with types has missing values of its own.
MISSING = ("", "?", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None")
_TRUTHS = {"true": 1.0, "false": 0.0}

# Why a column cannot be learned from as it is, and what takes it.
REMEDIES = {
    "no value in": "ignore (--ignore)",
    "another word in each row of": "ignore (--ignore)",
    "dates in": "ignore (--ignore), or columns of numbers in their place, such as the month",
    f"more than {LEVELS:,} different words in": "categorical (--categorical hash)",
    "words in": "categorical (--categorical onehot)",
    "missing values in": "missing (--missing mean)",
}
PER_CENT = "per cent"


def absent(cells, values=None) -> np.ndarray:
    """Which cells of a column hold no value; its numbers, if known, save the search."""
    if values is not None and not np.isnan(values).any():
        return np.zeros(len(values), bool)
    missing = cells.isna().to_numpy()
    return missing if _typed(cells) else missing | cells.isin(MISSING).to_numpy()


def as_words(cells) -> np.ndarray:
    """The cells of a column as text, "" where one is missing."""
    words = cells.to_numpy(object, copy=True)
    words[absent(cells)] = ""
    return words if all(type(word) is str for word in words) else np.array([*map(str, words)], "O")


def as_numbers(cells, kind: str = "numbers") -> np.ndarray:
    """The cells of a column as float64; NaN if a cell is missing, or no finite number."""
    import pandas as pd

    if kind == "truth values":
        cells = pd.Series(as_words(cells), dtype=object).str.lower().map(_TRUTHS)
    elif kind == PER_CENT:
        cells = pd.Series(as_words(cells), dtype=object)
        cells = cells.where(cells.str.endswith("%"), "").str[:-1]
    elif cells.dtype.kind in "mM":  # of which pandas makes numbers, by their unit
        return np.full(len(cells), np.nan)
    values = pd.to_numeric(cells, errors="coerce").to_numpy(np.float64, na_value=np.nan, copy=True)
    values[~np.isfinite(values)] = np.nan
    return values


def _typed(cells) -> bool:
    """Whether the file says what kind of values a column holds, but text."""
    import pandas as pd

    return not (pd.api.types.is_object_dtype(cells) or pd.api.types.is_string_dtype(cells))


class FirstLook:
    """What is in each column of a table, learned from frames of its rows.

    Attributes
    ----------
    names : list of str
        Of the columns.
    rows : int
        How many there are.
    kinds : list of str
        numbers, per cent, truth values, dates, words, or none.
    missing : ndarray of int
        Cells without a value.
    levels : list of dict
        How often each different value occurs; of the first 1000 of a column.
    many : ndarray of bool
        Whether a column has more.
    mean, scale : ndarray of float
        Of the numbers of a column, as StandardScaler has them; 0 and 1 without any.
    low, high : ndarray of float
        Their range.
    ragged : list of int
        Rows of a text with another number of cells, which can be learned from in no way.
    """

    def __init__(self, names: Sequence[str]):
        from sklearn.preprocessing import StandardScaler

        p = len(names)
        self.names, self.rows, self._scaler = list(names), 0, StandardScaler()
        self.missing, self.many = np.zeros(p, int), np.zeros(p, bool)
        self._found = {kind: np.zeros(p, int) for kind in ("numbers", PER_CENT, "truth values")}
        self._dates, self.nonzero = np.ones(p, bool), np.zeros(p, int)
        self.low, self.high = np.full(p, np.inf), np.full(p, -np.inf)
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
            self._scaler.partial_fit(values)

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
            for kind in (PER_CENT, "truth values"):
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
        """Of the numbers of each column."""
        return np.nan_to_num(self._scaler.mean_)

    @property
    def scale(self) -> np.ndarray:
        """Standard deviations; 1 of a constant, as StandardScaler has it."""
        return np.nan_to_num(self._scaler.scale_, nan=1.0)

    @property
    def size(self) -> np.ndarray:
        """Root of the mean square of the numbers of each column that are not 0."""
        square = np.nan_to_num(self._scaler.var_ + self._scaler.mean_**2)
        return np.sqrt(square * (self.rows - self.missing) / np.maximum(1, self.nonzero))

    @property
    def kinds(self) -> list[str]:
        """What each column holds."""
        return [self._kind(j) for j in range(len(self.names))]

    def _kind(self, j) -> str:
        there = self.rows - self.missing[j]
        if not there:
            return "none"
        alike = [kind for kind, found in self._found.items() if found[j] == there]
        return alike[0] if alike else "dates" if self._dates[j] else "words"

    def lacks(self, j: int, missing: str = "refuse", categorical: str | None = None) -> list[str]:
        """Why column j cannot be learned from, so encoded: keys of `REMEDIES`."""
        there, kind = self.rows - self.missing[j], self._kind(j)
        empty, unlike, dates, many, words, gaps = REMEDIES
        if kind == "none":
            return [empty]
        found = [gaps] if missing == "refuse" and self.missing[j] else []
        if kind not in ("words", "dates") or categorical == "hash":
            return found
        if kind == "dates" and categorical is None:
            return [dates, *found]
        if len(self.levels[j]) == there > FEW:
            return [unlike, *found]
        if self.many[j]:
            return [many, *found]
        return [words, *found] if categorical is None else found


def looked_at(names: Sequence[str], frames: Iterable) -> FirstLook:
    """A first look at all rows, which come as frames of pandas."""
    look = FirstLook(names)
    for frame in frames:
        look.add(frame)
    return look
