"""Rows of LIBSVM and Vowpal Wabbit texts whose names or labels are words, or that have weights.

A name is hashed by MurmurHash3 (32 bits, seed 0), as scikit-learn's FeatureHasher does it.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.text import (
    FEATURE,
    HARD,
    INDEX,
    LABEL,
    LONG,
    RIGHT,
    _digits,
    _is_blank,
    _next_line,
    _next_word,
    _number,
    _postpone,
)

_U = np.uint64
_ZERO, _ONE, _THREE, _FIVE, _EIGHT = _U(0), _U(1), _U(3), _U(5), _U(8)
_BITS_32, _HALF = _U(2**32 - 1), _U(2**31)
_C1, _C2, _ADDED = _U(0xCC9E2D51), _U(0x1B873593), _U(0xE6546B64)
_F1, _F2 = _U(0x85EBCA6B), _U(0xC2B2AE35)
_CARET = 94


class WordRows(NamedTuple):
    """Arrays for rows, larger than need be; the first five are those of `ofslib.kernels.text`."""

    y: np.ndarray  # (n,) float64
    data: np.ndarray  # (nnz,) float64, in the order of the text
    indices: np.ndarray  # (nnz,) int32, from 0
    indptr: np.ndarray  # (n + 1,) int32
    # (m + 1, 2) int64, see there; a place beyond the last of `data` is one in `weights`
    hard: np.ndarray
    weights: np.ndarray  # (n,) float64
    labels: np.ndarray  # (n, 2) int64: where the words of labels begin and end


class Hashed(NamedTuple):
    """A MurmurHash3 of the bytes so far."""

    hash: np.uint64
    rest: np.uint64  # the bytes that do not make four yet
    count: np.uint64


@kernel
def _rotated(word, bits):
    return ((word << bits) | (word >> (_U(32) - bits))) & _BITS_32


@kernel
def _mixed(word):
    return (_rotated((word * _C1) & _BITS_32, _U(15)) * _C2) & _BITS_32


@kernel
def _with_byte(so_far, byte):
    rest = so_far.rest | (_U(byte) << (_EIGHT * (so_far.count & _THREE)))
    count = so_far.count + _ONE
    if count & _THREE != _ZERO:
        return Hashed(so_far.hash, rest, count)
    found = _rotated(so_far.hash ^ _mixed(rest), _U(13))
    return Hashed((found * _FIVE + _ADDED) & _BITS_32, _ZERO, count)


@kernel
def _bucket(so_far, buckets):
    """The absolute value of the hash, as a signed number, modulo the buckets."""
    found = so_far.hash ^ _mixed(so_far.rest) ^ so_far.count
    found = ((found ^ (found >> _U(16))) * _F1) & _BITS_32
    found = ((found ^ (found >> _U(13))) * _F2) & _BITS_32
    found ^= found >> _U(16)
    return (found if found < _HALF else _U(2**32) - found) % buckets


@kernel
def _namespace(text, i):
    """What names behind a bar are hashed after, `name^` or nothing, and where it ends."""
    so_far = Hashed(_ZERO, _ZERO, _ZERO)
    i += _ONE
    begin = i
    while not (_is_blank(text[i]) or text[i] == 10):
        if text[i] == 58 or text[i] == 124:  # a namespace with a value, or two bars
            return so_far, i, False
        so_far = _with_byte(so_far, text[i])
        i += _ONE
    if i > begin:
        so_far = _with_byte(so_far, _CARET)
    return so_far, i, True


@kernel
def _feature(text, i, bars, so_far, lowest, highest, buckets):
    """The index of a name and where it ends; and what is wrong."""
    begin = i
    if buckets == _ZERO:
        index, i = _digits(text, i, _ZERO)
        if i == begin or text[i] != 58:
            return index, i, FEATURE
        wrong = i - begin > _U(18) or index < lowest or index > highest
        return index - lowest, i, INDEX if wrong else RIGHT
    if not bars and text[i] == 113 and text[i + _ONE] == 105 and text[i + _U(2)] == 100:
        if text[i + _THREE] == 58:  # qid:
            return _ZERO, i, FEATURE
    while not (_is_blank(text[i]) or text[i] == 10 or text[i] == 58):
        if (bars and text[i] == 124) or (not bars and text[i] == 35):
            break
        so_far = _with_byte(so_far, text[i])
        i += _ONE
    if i == begin or not (bars or text[i] == 58):
        return _ZERO, i, FEATURE
    return _bucket(so_far, buckets), i, RIGHT


@kernel
def _features(text, i, bars, lowest, highest, buckets, rows, nnz):
    """As in `ofslib.kernels.text`, with hashed names and several namespaces."""
    last, ascending, so_far, spaces = -1, True, Hashed(_ZERO, _ZERO, _ZERO), 0
    while True:
        i = _next_word(text, i)
        begin = i
        if text[i] == 10 or (not bars and text[i] == 35):
            return i, nnz, ascending, RIGHT, begin
        if bars and text[i] == 124:
            so_far, i, plain = _namespace(text, i)
            spaces += 1
            if not plain or (spaces > 1 and buckets == _ZERO):
                return i, nnz, ascending, FEATURE, begin
            continue
        index, i, fault = _feature(text, i, bars, so_far, lowest, highest, buckets)
        if fault != RIGHT:
            return i, nnz, ascending, fault, begin
        value = 1.0
        if text[i] == 58:
            place = i + _ONE
            value, i, state = _number(text, place)
            if state >= LONG:
                return i, nnz, ascending, LONG if state == LONG else FEATURE, begin
            if state == HARD:
                _postpone(rows.hard, nnz, place)
        if not (_is_blank(text[i]) or text[i] == 10 or text[i] == (124 if bars else 35)):
            return i, nnz, ascending, FEATURE, begin
        column = np.int64(index)
        rows.data[nnz], rows.indices[nnz] = value, column
        ascending &= column > last
        last = column
        nnz += 1


@kernel
def _word_end(text, i, bars):
    while not (_is_blank(text[i]) or text[i] == 10 or (bars and text[i] == 124)):
        i += _ONE
    return i


@kernel
def _before_features(text, i, n, bars, words, weighted, rows):
    """Label, weight and tag of a row: where they end, and what is wrong at which place."""
    begin = i
    if words:
        i = _word_end(text, i, bars)
        rows.labels[n, 0], rows.labels[n, 1] = begin, i
        if i == begin:
            return i, LABEL, begin
    else:
        rows.y[n], i, state = _number(text, i)
        if state >= LONG or not (_word_end(text, i, bars) == i or text[i] == 35):
            return i, LONG if state == LONG else LABEL, begin
        if state == HARD:
            _postpone(rows.hard, -1 - n, begin)
    i = _next_word(text, i)
    rows.weights[n] = 1.0
    if weighted and text[i] != 124 and text[i] != 10 and text[i] != 39:
        begin = i
        rows.weights[n], i, state = _number(text, i)
        if state >= LONG or _word_end(text, i, bars) != i:
            return i, FEATURE, begin
        if state == HARD:
            _postpone(rows.hard, len(rows.data) + n, begin)
        i = _next_word(text, i)
    if bars and text[i] == 39:  # 'tag
        i = _next_word(text, _word_end(text, i, bars))
    if bars and text[i] != 124 and text[i] != 10:
        return i, FEATURE, i
    return i, RIGHT, begin


@kernel
def parse_words(text, stop, bars, lowest, highest, buckets, words, weighted):
    """Whole lines as rows, see `parse_rows` of `ofslib.kernels.text`.

    `buckets` (uint64) is what names are hashed to; 0: they are indices. With `words` labels are
    words, with `weighted` a weight may stand after the label.
    """
    n, nnz = stop // 2 + 1, stop // 2 + 1
    hard = np.empty((2 * n + nnz + 1, 2), np.int64)
    hard[0, 0] = 0
    indices, indptr = np.empty(nnz, np.int32), np.empty(n + 1, np.int32)
    labels = np.empty((n if words else 0, 2), np.int64)
    rows = WordRows(np.zeros(n), np.empty(nnz), indices, indptr, hard, np.empty(n), labels)
    rows.indptr[0] = 0
    n, nnz, line, all_ascend = 0, 0, 0, True
    i, fault, begin = _ZERO, RIGHT, _ZERO
    while i < _U(stop):
        i = _next_word(text, i)
        if text[i] != 10 and text[i] != 35:
            i, fault, begin = _before_features(text, i, n, bars, words, weighted, rows)
            if fault != RIGHT:
                break
            i, nnz, ascend, fault, begin = _features(
                text, i, bars, lowest, highest, buckets, rows, nnz
            )
            if fault != RIGHT:
                break
            all_ascend &= ascend
            n += 1
            rows.indptr[n] = nnz
        i = _next_line(text, i)
        line += 1
    return n, nnz, all_ascend, rows, (fault, np.int64(begin), line)
