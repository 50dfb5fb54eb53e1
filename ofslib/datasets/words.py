"""Rows of texts in which names or labels are words, or that have weights."""

import numpy as np

from ofslib.datasets.text import _NUMBER, FileRows, TextRows, _line_of, _Wrong, as_matrix
from ofslib.kernels.names import parse_words


class WordTextRows(TextRows):
    """The rows of a text; names are hashed to `buckets` columns, unless that is 0.

    A name counts as `namespace^name`, as Vowpal Wabbit shows it, or as it is where it has no
    namespace; numbers are names like others. Its column is the absolute value of its MurmurHash3
    modulo `buckets`: that of scikit-learn's FeatureHasher(alternate_sign=False). Values of names
    that meet in one column add up.
    """

    size = FileRows.size  # by parsing, as names may be no numbers

    def __init__(self, path, *given, buckets=0, worded=False, weighted=False):
        super().__init__(path, *given)
        self.buckets, self.worded, self.weighted = buckets, worded, weighted
        self.columns = buckets or None

    @property
    def numbering(self):
        """How the text has its columns."""
        return "hashed" if self.buckets else super().numbering

    def options(self) -> list:
        """What else the rows depend on."""
        return [*super().options(), self.buckets, self.worded, self.weighted]

    def _kernel(self, text, stop, lowest, highest):
        options = np.uint64(self.buckets), self.worded, self.weighted
        n, nnz, ascend, rows, fault = parse_words(text, stop, self.is_vw, lowest, highest, *options)
        hard, room = rows.hard[1 : rows.hard[0, 0] + 1], len(rows.data)
        of_weights = hard[:, 0] >= room
        for place, begin in hard[of_weights]:
            rows.weights[place - room] = float(_NUMBER.match(text.data, begin)[0])
        others = hard[~of_weights]
        return n, nnz, ascend, rows._replace(hard=np.vstack([[[len(others), 0]], others])), fault

    def _finished(self, piece, ascend, rows, text):
        n = len(piece.y)
        if not self.buckets:
            piece = super()._finished(piece, ascend, rows, text)
        elif not ascend:
            X, _ = as_matrix(piece, self.buckets)
            X.sum_duplicates()
            piece = piece._replace(data=X.data, indices=X.indices, indptr=X.indptr)
            self._check_finite(piece, text)
        if self.worded:
            piece = piece._replace(y=_decoded(rows.labels[:n], text))
        if self.weighted:
            weight = rows.weights[:n].copy()
            wrong = np.flatnonzero(~((weight >= 0) & np.isfinite(weight)))
            if len(wrong):
                reason = f"the weight {weight[wrong[0]]} is not a finite number from 0 on"
                raise _Wrong(reason, _line_of(text, wrong[0]))
            piece = piece._replace(weight=weight)
        return piece


def _decoded(places, text):
    """The words between some places; each different one is decoded once."""
    raw = np.array([bytes(text[begin:end]) for begin, end in places.tolist()])
    found, which = np.unique(raw, return_inverse=True)
    try:
        words = [word.decode() for word in found.tolist()]
    except UnicodeDecodeError as error:
        at = int(np.flatnonzero(raw == error.object)[0])
        raise _Wrong(f"the label {error.object!r} is not UTF-8", _line_of(text, at)) from None
    return np.array(words, str)[which] if words else np.empty(0, str)
