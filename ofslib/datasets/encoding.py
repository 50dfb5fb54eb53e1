"""What a first look learned of columns, and how it turns raw ones into features.

These are the fitted parts of scikit-learn's transformers, as plain lists and arrays: a model file
keeps them.
"""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ofslib.datasets.first_look import REMEDIES, WORDS, FirstLook, absent, as_numbers, as_words

BUCKETS = 4096  # columns of hashed words, unless n_features says how many


def _said(option: str) -> str:
    return f"{option.split()[0][2:]} ({option})"


class Encoding(NamedTuple):
    """How the columns of a file become features; `open_stream` learns it in a first look.

    Of a LIBSVM or Vowpal Wabbit text there are `scale`s only, one for each feature.
    """

    names: list[str]  # columns of the file
    kinds: list[str]  # what each holds, as a first look says
    levels: list[list[str]]  # words of a column that have a feature each
    gaps: list[bool]  # whether a feature says where a number or word is missing
    mean: np.ndarray  # of each column; where numbers are missing
    scale: np.ndarray  # ones, unless features are standardised
    missing: str = "refuse"
    center: bool = False  # whether means are taken off
    buckets: int = 0  # of hashed words

    @classmethod
    def learned(cls, where, look: FirstLook, missing, categorical, standardize, buckets):
        """The encoding that these options ask for; one ValueError names all columns without."""
        p, told = range(len(look.names)), {}
        for j in p:
            for reason in look.lacks(j, missing, categorical):
                told.setdefault(reason, []).append(repr(look.names[j]))
        if told:
            parts = [f"{why} {', '.join(n)}: see {_said(REMEDIES[why])}" for why, n in told.items()]
            said = "; ".join([*parts, "`ofslib inspect FILE` lists all columns"])
            raise ValueError(f"{where}: {said}")
        kinds, words = [look.kind(j) for j in p], [look.kind(j) in WORDS for j in p]
        levels = [sorted(look.levels[j]) if words[j] and categorical == "onehot" else [] for j in p]
        gaps = [missing == "indicator" and bool(some) for some in look.missing]
        scale = np.nan_to_num(look.scaler.scale_, nan=1.0) if standardize else np.ones(len(p))
        buckets = buckets if categorical == "hash" and any(words) else 0
        new = cls(look.names, kinds, levels, gaps, look.mean, scale, missing, standardize, buckets)
        if twice := [name for name, count in Counter(new.features).items() if count > 1]:
            raise ValueError(f"{where}: two features would be named {twice[0]!r}: rename a column")
        return new

    @classmethod
    def restored(cls, parts: dict[str, Any]) -> "Encoding":
        """That of a model file; ValueError if it is none."""
        try:
            new = cls(**parts)
            p, words = len(new.names), [*new.names, *new.kinds, *itertools.chain(*new.levels)]
            right = {type(word) for word in words} <= {str}
            right &= [new.mean.dtype, new.scale.dtype] == [np.float64] * 2
            if not right or (p and {len(part) for part in new[1:6]} != {p}):
                raise ValueError("parts that do not fit")
            return new
        except (AttributeError, TypeError, ValueError) as error:
            raise ValueError(f"its preprocessing is none of this version ({error})") from error

    def digest(self) -> str:
        """What tells it from others."""
        return hashlib.sha256(json.dumps(self, default=np.ndarray.tolist).encode()).hexdigest()

    def _origins(self) -> list[tuple[str, int]]:
        """Each feature, and the column it is made of: -1 of hashed words, which are made of all."""
        numbered = list(enumerate(zip(self.names, self.kinds, self.gaps, strict=True)))
        found = [(name, j) for j, (name, kind, _) in numbered if kind not in WORDS]
        found += [(f"{name} is missing", j) for j, (name, _, gaps) in numbered if gaps]
        for j, name in enumerate(self.names):
            found += [(f"{name}={level}", j) for level in self.levels[j]]
        return found + [(f"hash {bucket}", -1) for bucket in range(self.buckets)]

    @property
    def features(self) -> list[str]:
        """Names of the features, in their order."""
        return [name for name, _ in self._origins()]

    def sources(self, features: Iterable[str]) -> list[str]:
        """The columns of the file of which these features are made; ValueError if one is none."""
        origins, wanted = dict(self._origins()), list(features)
        if other := [name for name in wanted if name not in origins]:
            raise ValueError(f"columns: {other[0]!r} is no feature of the encoding")
        used = {origins[name] for name in wanted}
        hashed = {j for j, kind in enumerate(self.kinds) if kind in WORDS} if -1 in used else set()
        return [name for j, name in enumerate(self.names) if j in used | hashed]

    def only(self, names: list[str]) -> "Encoding":
        """The encoding of these columns of the file."""
        kept = [j for j, name in enumerate(self.names) if name in names]
        lists = ([part[j] for j in kept] for part in self[:4])
        return Encoding(*lists, self.mean[kept], self.scale[kept], *self[6:])

    def matrix(self, frame, where: str, first: int) -> sp.csr_array:
        """The features of some rows; `frame` holds the columns in the order of `names`."""
        numbers, gaps, words = [], [], {}
        for j, kind in enumerate(self.kinds):
            cells = frame.iloc[:, j]
            if kind in WORDS:
                words[j], missing = as_words(cells), absent(cells)
                wrong = np.zeros(len(missing), bool)
            else:
                values = as_numbers(cells, kind)
                missing = absent(cells, values)
                wrong = np.isnan(values) & ~missing
                values[missing] = self.mean[j]
                numbers.append((values - self.center * self.mean[j]) / self.scale[j])
            if self.missing == "refuse":
                wrong = wrong | missing
            if wrong.any():
                i = int(wrong.argmax())
                gap = "a missing value, of which no row had one when this was learned: learn with "
                got = gap + _said("--missing mean") if missing[i] else cells.iloc[i]
                raise ValueError(f"{where}, row {first + i + 1}, column {self.names[j]!r}: "
                                 f"expected {kind}, got {got}")  # fmt: skip
            if self.gaps[j]:
                gaps.append(missing)
        dense = np.column_stack([np.empty((len(frame), 0)), *numbers, *gaps])
        parts = [sp.csr_array(dense), *self._of_words(words)]
        return sp.csr_array(sp.hstack(parts, "csr"))

    def _of_words(self, words: dict[int, np.ndarray]) -> list:
        """Sparse features of columns of words."""
        from sklearn.feature_extraction import FeatureHasher
        from sklearn.preprocessing import OneHotEncoder

        if not words:
            return []
        if self.buckets:
            named = ([f"{self.names[j]}={w}" if w else "" for w in words[j]] for j in words)
            rows = [[word for word in row if word] for row in zip(*named, strict=True)]
            own = {"input_type": "string", "alternate_sign": False}
            return [FeatureHasher(self.buckets, **own).transform(rows)]
        levels = [np.array(self.levels[j], object) for j in words]
        encoder = OneHotEncoder(categories=levels, handle_unknown="ignore")
        encoder.fit(np.array([[own[0] for own in levels]], object))
        return [encoder.transform(np.column_stack([*words.values()]))]


def of_scales(blocks: Iterable) -> Encoding:
    """The encoding that standardises sparse rows: zeros stay zeros, no means are taken off."""
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=False)
    for X, *_ in blocks:
        scaler.partial_fit(sp.csr_array(X))
    return Encoding([], [], [], [], np.empty(0), scaler.scale_)
