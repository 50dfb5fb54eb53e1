"""Rows of LIBSVM and Vowpal Wabbit texts.

The kernel first lists where the bytes stand that are no digits. Nearly each feature can then be
told from the next few of these places, whatever became of the one before: a processor works at
several of them at once (Langdale and Lemire, Parsing gigabytes of JSON per second, VLDB Journal
28, 2019). Anything else (an exponent, many digits, a comment, a name, a fault) is read byte by
byte.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.numbers import (
    FEATURE,
    HARD,
    INDEX,
    LABEL,
    LONG,
    RIGHT,
    SIGNS,
    decimal,
    digits_from,
    last_digits,
    number,
)
from ofslib.kernels.words import (
    colons,
    high_zeros,
    low_zeros,
    marks,
    newlines,
    no_digits,
    ones,
    word,
)

PADDING = 64  # a text is read 64 bytes at a time, also at its end

# An int64 beside an uint64 is a float64, and numba tests whether an int64 index is negative.
_U = np.uint64
_ZERO, _ONE, _THREE, _FOUR, _FIVE, _EIGHT, _NINE = (_U(k) for k in (0, 1, 3, 4, 5, 8, 9))
_ZEROS = _U(0x3030303030303030)
# Constants of MurmurHash3, 32 bits
_BITS_32, _HALF = _U(2**32 - 1), _U(2**31)
_C1, _C2, _ADDED = _U(0xCC9E2D51), _U(0x1B873593), _U(0xE6546B64)
_F1, _F2 = _U(0x85EBCA6B), _U(0xC2B2AE35)
_CARET = np.uint8(94)


class Rows(NamedTuple):
    """Arrays for rows, larger than need be where a comment has colons or an end of line no row."""

    y: np.ndarray  # (n,) float64
    data: np.ndarray  # (nnz,) float64, in the order of the text
    indices: np.ndarray  # (nnz,) int32, from 0
    indptr: np.ndarray  # (n + 1,) int32
    # (m + 1, 2) int64: m; then of each hard number where it begins, and its place: in `data`,
    # -1 - its place in `y`, or len(data) + its place in `weights`
    hard: np.ndarray
    weights: np.ndarray  # (n,) float64, or (0,) without weights
    labels: np.ndarray  # (n, 2) int64: where the words of labels begin and end; (0, 2) of numbers


# -------------------------------------------------- words


@kernel
def _is_blank(byte):
    return byte == 32 or (9 <= byte <= 13 and byte != 10)


@kernel(allocates=False)
def _next_word(text, i):
    """Where the next byte is that is no blank."""
    while _is_blank(text[i]):
        i += _ONE
    return i


@kernel
def _word_end(text, i, bars):
    """Where the next byte is that is a blank or ends the line; with `bars`, also a bar."""
    while not (_is_blank(text[i]) or text[i] == 10 or (bars and text[i] == 124)):
        i += _ONE
    return i


@kernel
def _next_line(text, i):
    while text[i] != 10:
        i += _ONE
    return i + _ONE


@kernel
def _others(text, stop):
    """Where bytes are that are no digits, and how many ends of lines and colons there may be."""
    places = np.empty(stop + 2 * 64, np.uint32)
    m, lines, entries = _ZERO, _ZERO, _ZERO
    for start in range(0, stop, 64):
        i = _U(start)
        lines += ones(newlines(text, i))
        entries += ones(colons(text, i))
        found = no_digits(text, i)
        end = m + ones(found)
        while True:
            for _ in range(16):  # more than there are, for a known number takes no guess
                places[m] = i + low_zeros(found)
                found &= found - _ONE
                m += _ONE
            if m >= end:
                break
        m = end
    for k in range(8):  # these are looked at, but no feature reaches them
        places[m + _U(k)] = stop
    return places, np.int64(lines), np.int64(entries)


@kernel(allocates=False)
def _from(places, c, i):
    """The first of the places from number c on that does not lie before i."""
    while places[c] < i:
        c += _ONE
    return c


@kernel
def _plain(text, places, c, begin):
    """A number as nearly all are: perhaps a minus, digits with a point or without, a blank.

    Whether it is one; then the minus, the point or end of its digits, their number, its end, the
    number of digits after a point, and which place comes next.
    """
    minus = _U(text[begin] == 45)
    point = _U(places[c + minus])
    pointed = _U(text[point] == 46)
    c += minus + pointed
    end = _U(places[c])
    whole, fraction = point - begin - minus, end - point - pointed
    # Without branches, or numba would count references here. `last_digits` looks back from 24.
    short = (whole <= _EIGHT) & (whole + fraction - _ONE < _U(19)) & (begin >= _U(24))
    blank = (text[end] == 32) | (_U(text[end]) - _NINE < _U(5))
    return short & blank, minus, point, whole, end, fraction, c + _ONE


# -------------------------------------------------- the parts of a row, byte by byte


@kernel
def _postpone(hard, place, begin):
    hard[0, 0] += 1
    hard[hard[0, 0], 0] = place
    hard[hard[0, 0], 1] = begin


@kernel(allocates=False)
def _label(text, i, bars, words, rows, n):
    """Read the label of row n, which begins at i: where it ends, and its state."""
    begin = i
    if words:
        i = _word_end(text, i, bars)
        rows.y[n], rows.labels[n, 0], rows.labels[n, 1] = 0.0, begin, i
        return i, LABEL if i == begin else RIGHT
    rows.y[n], i, state = number(text, i)
    if state < LONG and _word_end(text, i, bars) != i and text[i] != 35:
        state = LABEL
    if state == HARD:
        _postpone(rows.hard, -1 - n, begin)
    return i, state


@kernel(allocates=False)
def _before_bar(text, i, weighted, tags, rows, n):
    """Read the weight of row n, 1 where there is none, and pass over its tag.

    Where the word begins that is wrong, where the bar or the end of the row is, and the state.
    """
    if weighted:
        begin = i
        rows.weights[n] = 1.0
        if not (text[i] == 124 or text[i] == 10 or text[i] == 35 or text[i] == 39):
            rows.weights[n], i, state = number(text, i)
            if state < LONG and _word_end(text, i, True) != i:
                state = FEATURE
            if state > HARD:
                return begin, i, state
            if state == HARD:
                _postpone(rows.hard, len(rows.data) + n, begin)
            i = _next_word(text, i)
    if tags and text[i] == 39:
        i = _next_word(text, _word_end(text, i, True))
    ends = text[i] == 124 or text[i] == 10 or text[i] == 35
    return i, i, RIGHT if ends else FEATURE


@kernel
def _namespace(text, i):
    """Where a namespace ends whose bar is at i, and whether it is a plain name or none."""
    i += _ONE
    while not (_is_blank(text[i]) or text[i] == 10):
        if text[i] == 58 or text[i] == 124:  # it has a value, or there are two bars
            return i, False
        i += _ONE
    return i, True


@kernel(allocates=False)
def _bucket(text, space, space_end, begin, end, buckets):
    """The column of `namespace^name`, or of the name where its namespace has none.

    It is the absolute value of MurmurHash3 (32 bits, seed 0) modulo the number of columns, as
    FeatureHasher of scikit-learn has it.
    """
    before = space_end - space + _ONE if space_end > space else _ZERO
    size = before + end - begin
    found, k = _ZERO, _ZERO
    while k < size:
        if k >= before and k + _FOUR <= size:
            four = word(text, begin + k - before) & _BITS_32
            k += _FOUR
        else:
            four, shift, stop = _ZERO, _ZERO, min(k + _FOUR, size)
            while k < stop:
                byte = text[space + k] if k < before else text[begin + k - before]
                four |= _U(_CARET if k + _ONE == before else byte) << shift
                shift += _EIGHT
                k += _ONE
        four = (four * _C1) & _BITS_32
        four = ((four << _U(15)) | (four >> _U(17))) & _BITS_32
        found ^= (four * _C2) & _BITS_32
        if k & _THREE == _ZERO:
            found = ((found << _U(13)) | (found >> _U(19))) & _BITS_32
            found = (found * _FIVE + _ADDED) & _BITS_32
    found ^= size
    found = ((found ^ (found >> _U(16))) * _F1) & _BITS_32
    found = ((found ^ (found >> _U(13))) * _F2) & _BITS_32
    found ^= found >> _U(16)
    return (found if found < _HALF else _U(2**32) - found) % buckets


@kernel(allocates=False)
def _name_end(text, i, bars):
    """Where a name ends that is to be hashed; where it begins if it names a query (`qid:`)."""
    begin, last = i, 124 if bars else 35
    while not (_is_blank(text[i]) or text[i] == 10 or text[i] == 58 or text[i] == last):
        i += _ONE
    is_qid = text[begin] == 113 and text[begin + _ONE] == 105 and text[begin + _U(2)] == 100
    if is_qid and not bars and i - begin == _THREE and text[i] == 58:
        return begin
    return i


@kernel(allocates=False)
def _feature(text, i, bars, space, space_end, lowest, highest, buckets, hard, nnz):
    """Entry number nnz, which begins at i: its column, its value, where it ends, its state."""
    begin, value = i, 1.0
    if buckets == _ZERO:
        column, i = digits_from(text, begin, _ZERO)
        if i == begin or text[i] != 58:
            return _ZERO, value, i, FEATURE
        if i - begin > _U(18) or column < lowest or column > highest:
            return _ZERO, value, i, INDEX
        column -= lowest
    else:
        i = _name_end(text, begin, bars)
        if i == begin or not (bars or text[i] == 58):
            return _ZERO, value, i, FEATURE
        column = _bucket(text, space, space_end, begin, i, buckets)
    state = RIGHT
    if text[i] == 58:
        begin = i + _ONE
        value, i, state = number(text, begin)
        if state == HARD:
            _postpone(hard, nnz, begin)
    last = 124 if bars else 35
    ends = _is_blank(text[i]) or text[i] == 10 or text[i] == last
    if state != LONG and (state == LABEL or not ends):
        state = FEATURE
    return column, value, i, state


# -------------------------------------------------- rows


@kernel
def _empty(text, stop, hashed, words, weighted):
    """Where bytes are that are no digits, and arrays for the rows."""
    places, n, nnz = _others(text, stop)
    nnz = stop // 2 + 1 if hashed else nnz + 1  # with one for an entry that is wrong
    hard = np.empty((2 * n + nnz + 1, 2), np.int64)  # memory that is not written to costs nothing
    hard[0, 0] = 0
    indices, indptr = np.empty(nnz, np.int32), np.empty(n + 1, np.int32)
    indptr[0] = 0
    weights, labels = np.empty(n if weighted else 0), np.empty((n if words else 0, 2), np.int64)
    return places, Rows(np.empty(n), np.empty(nnz), indices, indptr, hard, weights, labels)


@kernel(allocates=False)
def _features(text, i, bars, places, c, lowest, highest, buckets, rows, nnz):
    """Read the features of a row from i on, or what else stands before the end of the line.

    Where it ends, which place comes next, how many entries there are then, whether they ascend,
    the state, and where the word begins that is wrong.
    """
    data, indices, last, ascend = rows.data, rows.indices, -1, True
    space, space_end, fault, begin = _ZERO, _ZERO, RIGHT, i
    while fault <= HARD and text[i] != 10:
        colon, column = _U(places[c]), _ZERO
        plain, minus, point, whole, end, fraction, following = _plain(
            text, places, c + _ONE, colon + _ONE
        )
        plain &= (text[colon] == 58) & (colon - i - _ONE < _EIGHT) & (buckets == _ZERO)
        if plain:
            column = last_digits(text, colon, colon - i)
            plain = lowest <= column <= highest
            column -= lowest
        if plain:
            data[nnz] = decimal(text, point, whole, end, fraction) * SIGNS[minus]
            i, c = end + _U(text[end] != 10), following
        else:
            begin = _next_word(text, i)
            if begin != i:
                i, c = begin, _from(places, c, begin)
                continue
            if text[i] == 35 and space == _ZERO:
                break
            if bars and text[i] == 124:
                further = space != _ZERO and buckets == _ZERO
                space = i + _ONE
                space_end, is_plain = _namespace(text, i)
                fault = RIGHT if is_plain and not further else FEATURE
                i = _next_word(text, space_end)
                c = _from(places, c, i)
                continue
            given = space, space_end, lowest, highest, buckets
            column, data[nnz], i, fault = _feature(text, i, bars, *given, rows.hard, nnz)
            i = _next_word(text, i)
            c = _from(places, c, i)
        indices[nnz] = column
        ascend &= np.int64(column) > last
        last, nnz = np.int64(column), nnz + 1
    return i, c, nnz, ascend, fault, begin


@kernel
def parse_rows(text, stop, bars, lowest, highest, buckets, words, weighted):
    """Whole lines as rows: how many, how many entries, whether all ascend, the arrays, the fault.

    `text` has PADDING bytes after `stop`. With `bars` a namespace stands before the features.
    `lowest` and `highest` (uint64) are the indices allowed; `buckets` (uint64) is how many columns
    names are hashed to, 0 if they are indices. With `words` labels are words, with `weighted` a
    weight may stand after the label. The fault is what is wrong (nothing, up to HARD), where the
    word begins, and the number of lines before it.
    """
    places, rows = _empty(text, stop, buckets != _ZERO, words, weighted)
    n, nnz, line, fault, all_ascend = 0, 0, 0, RIGHT, True
    tags = words or weighted or buckets != _ZERO  # who has these reads tags and leaves them out
    i, c, begin = _ZERO, _ZERO, _ZERO
    while i < _U(stop) and fault <= HARD:
        i = _next_word(text, i)
        if text[i] != 10 and text[i] != 35:
            begin, c = i, _from(places, c, i)
            plain, minus, point, whole, end, fraction, following = _plain(text, places, c, i)
            if plain and not words:
                rows.y[n] = decimal(text, point, whole, end, fraction) * SIGNS[minus]
                i, c = end, following
            else:
                i, fault = _label(text, i, bars, words, rows, n)
            i = _next_word(text, i)
            if bars and fault <= HARD:
                begin, i, fault = _before_bar(text, i, weighted, tags, rows, n)
            c = _from(places, c, i)
            if fault <= HARD:
                i, c, nnz, ascend, fault, begin = _features(
                    text, i, bars, places, c, lowest, highest, buckets, rows, nnz
                )
                all_ascend &= ascend
            n += 1
            rows.indptr[n] = nnz
        i = _next_line(text, i)
        line += fault <= HARD
    return n, nnz, all_ascend, rows, (fault, np.int64(begin), line)


# -------------------------------------------------- without parsing


@kernel
def _number_before(text, end):
    """The number that ends before `end`; 0 if it has more than 18 digits."""
    if end >= _EIGHT:
        digits = word(text, end - _EIGHT) ^ _ZEROS
        # The highest bit of each byte that is no digit.
        other = ((digits & _U(0x7F7F7F7F7F7F7F7F)) + _U(0x7676767676767676)) | digits
        k = high_zeros(other & _U(0x8080808080808080)) >> _THREE
        if k < _EIGHT:
            return last_digits(text, end, k)
    begin = end
    while begin > _ZERO and 48 <= text[begin - _ONE] <= 57:
        begin -= _ONE
    found, _ = digits_from(text, begin, _ZERO)
    return found if end - begin <= _U(18) else _ZERO


@kernel
def extent(text, stop, bars):
    """How many rows whole lines are, and their largest index, or -1: of a text without faults."""
    rows, largest, line, comment, named = 0, -1, _ZERO, False, False
    for start in range(0, stop, 64):
        found = marks(text, _U(start))
        while found != _ZERO:
            i = _U(start) + low_zeros(found)
            found &= found - _ONE
            if i >= _U(stop):
                break
            if text[i] == 58:
                if not comment:
                    largest = max(largest, np.int64(_number_before(text, i)))
            elif text[i] == 10:
                line = _next_word(text, line)
                rows += text[line] != 10 and text[line] != 35
                line, comment, named = i + _ONE, False, False
            elif text[i] == 35:
                comment |= not named
            else:
                named = bars
    return rows, largest
