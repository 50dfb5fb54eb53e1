"""Rows of LIBSVM and Vowpal Wabbit texts, parsed to the last bit.

Where the bytes stand that are no digits is listed first. Nearly each feature can then be told from
the next few of these places, whatever became of the one before: a processor works at several of
them at once (Langdale and Lemire, Parsing gigabytes of JSON per second, VLDB Journal 28, 2019).
What does not look like one (an exponent, many digits, a comment, a fault) is read byte by byte.

A number of at most 19 digits is a whole number w times a power of ten 10^q. Where both are exact
doubles, one multiplication or division rounds right (Clinger, How to read floating point numbers
accurately, 1990); else w times the first 128 bits of 5^q nearly always decides (Lemire, Number
parsing at a gigabyte per second, Software: Practice and Experience 51, 2021, Algorithm 1). What is
left, and what overflows or is subnormal, is named to the caller, who has an exact reader for it.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.words import (
    colons,
    high_zeros,
    low_zeros,
    marks,
    newlines,
    no_digits,
    ones,
    upper,
    word,
)

PADDING = 64  # a text is read 64 bytes at a time, also at its end

# What a number or a word is: HARD is right, but to be read by other means
RIGHT, HARD, LONG, LABEL, FEATURE, INDEX = range(6)
LONGEST_NUMBER = 2000  # characters; the longest double in full has 1,077

# An int64 beside an uint64 is a float64, and numba looks whether an int64 index is negative.
_U = np.uint64
_ZERO, _ONE, _TWO, _THREE, _NINE, _TEN = (_U(k) for k in (0, 1, 2, 3, 9, 10))
_LAST_EXACT = _U(2**53)
_HALF, _LOW_HALF = _U(32), _U(2**32 - 1)
_EIGHT, _SIXTEEN, _BLOCK = _U(8), _U(16), _U(64)
_ZEROS, _PAIRS, _HUNDREDS = _U(0x3030303030303030), _U(0x000000FF000000FF), _U(0x000F424000000064)
_TEN_THOUSANDS = _U(0x0000271000000001)
_LAST_BYTES = np.array([2**64 - 2 ** (64 - 8 * k) for k in range(9)], np.uint64)
_POWERS_OF_TEN = np.array([float(f"1e{q}") for q in range(23)])
_WHOLE_POWERS = np.array([10**k for k in range(20)], np.uint64)
_SIGNS = np.array([1.0, -1.0])
_SMALLEST_Q, _LARGEST_Q = -342, 308


def _first_bits(q):
    """128 bits of 5^q, as Lemire's tables have them: rounded up for -27 <= q < 0, else cut off."""
    power = 5 ** abs(q)
    length = power.bit_length()
    if q >= 0:
        return (power << 128) >> length
    if q >= -27:
        return (1 << (length + 127)) // power + 1
    bits = (1 << (2 * length + 128)) // power + 1
    return bits >> (bits.bit_length() - 128)


_BITS = [_first_bits(q) for q in range(_SMALLEST_Q, _LARGEST_Q + 1)]
_HIGH = np.array([bits >> 64 for bits in _BITS], np.uint64)
_LOW = np.array([bits & (2**64 - 1) for bits in _BITS], np.uint64)


class Rows(NamedTuple):
    """Arrays for rows, larger than need be where a comment has colons or an end of line no row."""

    y: np.ndarray  # (n,) float64
    data: np.ndarray  # (nnz,) float64, in the order of the text
    indices: np.ndarray  # (nnz,) int32, from 0
    indptr: np.ndarray  # (n + 1,) int32
    # (m + 1, 2) int64: m; then of each hard number its place in `data`, or -1 - its place in `y`,
    # and where it begins
    hard: np.ndarray


# -------------------------------------------------- numbers


@kernel
def _by_bits(w, q):
    """The double nearest to w 10^q as (double, whether this is certain), for w > 0."""
    if q < _SMALLEST_Q or q > _LARGEST_Q:
        return 0.0, False
    zeros = high_zeros(w)
    w = w << zeros
    high, low = upper(w, _HIGH[q - _SMALLEST_Q]), w * _HIGH[q - _SMALLEST_Q]
    if high & _U(0x1FF) == _U(0x1FF):
        more = upper(w, _LOW[q - _SMALLEST_Q])
        low += more
        if low < more:
            high += _ONE
        if low == ~_ZERO and (q < -27 or q > 55):
            return 0.0, False
    top = high >> _U(63)
    shift = top + _NINE
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(top) - np.int64(zeros)
    if exponent <= 0:
        return 0.0, False
    # Halfway between two doubles: to the even one.
    if low <= _ONE and -4 <= q <= 23 and mantissa & _THREE == _ONE and mantissa << shift == high:
        mantissa -= _ONE
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >= _U(2**53):
        mantissa = _U(2**52)
        exponent += 1
    if exponent >= 2047:
        return 0.0, False
    bits = (mantissa & _U(2**52 - 1)) | (_U(exponent) << _U(52))
    return _U(bits).view(np.float64), True


@kernel
def _last(text, end, k):
    """The number that the k digits before `end` are, for k <= 8."""
    digits = (word(text, end - _EIGHT) ^ _ZEROS) & _LAST_BYTES[k]
    digits = digits * _TEN + (digits >> _EIGHT)
    high, low = digits & _PAIRS, (digits >> _SIXTEEN) & _PAIRS
    return (high * _HUNDREDS + low * _TEN_THOUSANDS) >> _HALF


@kernel
def _decimal(text, point, whole, end, fraction):
    """The double of `whole` digits before `point` and `fraction` before `end`: 8, and 19 in all."""
    w = _last(text, point, whole) * _WHOLE_POWERS[fraction]
    if fraction <= _EIGHT:
        w += _last(text, end, fraction)
    else:
        rest = fraction - _EIGHT
        middle = min(rest, _EIGHT)
        w += _last(text, end, _EIGHT) + _WHOLE_POWERS[8] * _last(text, end - _EIGHT, middle)
        w += _WHOLE_POWERS[16] * _last(text, end - _SIXTEEN, rest - middle)
    if whole + fraction <= _U(15):
        return np.float64(np.int64(w)) / _POWERS_OF_TEN[fraction]
    if w == _ZERO:
        return 0.0
    value, _ = _by_bits(w, -np.int64(fraction))  # certain, for q >= -27
    return value


@kernel
def _digits(text, i, w):
    """w with the digits from i on after it, and where they end."""
    while True:
        digit = _U(text[i]) - _U(48)
        if digit > _NINE:
            return w, i
        w = w * _TEN + digit
        i += _ONE


@kernel
def _leading_zeros(text, i):
    """How many zeros a number begins with."""
    zeros = _ZERO
    while text[i] == 48 or text[i] == 46:
        zeros += _U(text[i] == 48)
        i += _ONE
    return zeros


@kernel(inline=True)
def _number(text, i):
    """The number that begins at i: the double, where it ends, and its state."""
    start = i
    negative = text[i] == 45
    if negative or text[i] == 43:
        i += _ONE
    first = i
    w, i = _digits(text, i, _ZERO)
    count, q = i - first, 0
    if text[i] == 46:
        i += _ONE
        point = i
        w, i = _digits(text, i, w)
        count += i - point
        q -= np.int64(i - point)
    state = RIGHT if count > _ZERO else LABEL
    if text[i] | 32 == 101:
        i += _ONE
        falling = text[i] == 45
        if falling or text[i] == 43:
            i += _ONE
        point = i
        power, i = _digits(text, i, _ZERO)
        if i == point:
            state = LABEL
        elif i - point > _NINE:
            state = max(state, HARD)
        q += -np.int64(power) if falling else np.int64(power)
    if i - start > _U(LONGEST_NUMBER):
        state = max(state, LONG)
    if count > _U(19) and count - _leading_zeros(text, first) > _U(19):
        state = max(state, HARD)
    value = 0.0
    if state == RIGHT and w != _ZERO:
        if w <= _LAST_EXACT and -22 <= q <= 22:
            value = np.float64(w)
            value = value * _POWERS_OF_TEN[q] if q >= 0 else value / _POWERS_OF_TEN[-q]
        else:
            value, certain = _by_bits(w, q)
            state = RIGHT if certain else HARD
    return (-value if negative else value), i, state


# -------------------------------------------------- words and rows


@kernel
def _is_blank(byte):
    return byte == 32 or (9 <= byte <= 13 and byte != 10)


@kernel
def _next_word(text, i):
    """Where the next byte is that is no blank."""
    while _is_blank(text[i]):
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


@kernel
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
    # Without branches, or numba would count references here. `_last` looks back from 24.
    short = (whole <= _EIGHT) & (whole + fraction - _ONE < _U(19)) & (begin >= _U(24))
    blank = (text[end] == 32) | (_U(text[end]) - _NINE < _U(5))
    return short & blank, minus, point, whole, end, fraction, c + _ONE


@kernel
def _postpone(hard, place, begin):
    hard[0, 0] += 1
    hard[hard[0, 0], 0] = place
    hard[hard[0, 0], 1] = begin


@kernel
def _after_namespace(text, i):
    """Where features begin after a bar and a plain name, whether there is a bar, what is wrong."""
    begin = i
    if text[i] != 124:
        return i, False, RIGHT if text[i] == 10 or text[i] == 35 else FEATURE
    i += _ONE
    while not _is_blank(text[i]) and text[i] != 10:
        if text[i] == 58 or text[i] == 124:
            return begin, True, FEATURE
        i += _ONE
    return i, True, RIGHT


@kernel
def _ends(text, i, comments):
    """Whether a word may end before i."""
    return _is_blank(text[i]) or text[i] == 10 or (comments and text[i] == 35)


@kernel
def _label(text, i, bars, hard, n):
    """The label of row n, which begins at i: the number, where it ends, and its state."""
    begin = i
    value, i, state = _number(text, i)
    if state < LONG and not (_ends(text, i, True) or (bars and text[i] == 124)):
        state = LABEL
    if state == HARD:
        _postpone(hard, -1 - n, begin)
    return value, i, state


@kernel
def _feature(text, i, lowest, highest, comments, hard, nnz):
    """Entry number nnz, which begins at i: its index, its value, where it ends, and its state."""
    begin = i
    index, i = _digits(text, begin, _ZERO)
    if i == begin or text[i] != 58:
        return index, 0.0, i, FEATURE
    if i - begin > _U(18) or index < lowest or index > highest:
        return index, 0.0, i, INDEX
    begin = i + _ONE
    value, i, state = _number(text, begin)
    if state != LONG and (state == LABEL or not _ends(text, i, comments)):
        state = FEATURE
    if state == HARD:
        _postpone(hard, nnz, begin)
    return index, value, i, state


@kernel
def _empty(text, stop):
    """Where bytes are that are no digits, and arrays for the rows."""
    places, n, nnz = _others(text, stop)
    nnz += 1  # for an entry that is wrong
    hard = np.empty((n + nnz + 1, 2), np.int64)  # memory that is not written to costs nothing
    hard[0, 0] = 0
    indptr = np.empty(n + 1, np.int32)
    indptr[0] = 0
    return places, Rows(np.empty(n), np.empty(nnz), np.empty(nnz, np.int32), indptr, hard)


@kernel
def parse_rows(text, stop, bars, lowest, highest):
    """Whole lines as rows: how many, how many entries, whether all ascend, the arrays, the fault.

    `text` has PADDING bytes after `stop`; with `bars` a namespace stands before the features.
    `lowest` and `highest` (uint64) are the indices allowed. The fault is what is wrong (nothing, up
    to HARD), where the word begins, and the number of lines before it.
    """
    places, rows = _empty(text, stop)
    # None of these is given to a function for each row: to count references would cost 80 ns.
    y, data, indices, indptr, hard = rows
    n, nnz, line, fault, all_ascend = 0, 0, 0, RIGHT, True
    i, c, begin = _ZERO, _ZERO, _ZERO
    while i < _U(stop) and fault <= HARD:
        i = _next_word(text, i)
        if text[i] != 10 and text[i] != 35:
            begin, c, named, last = i, _from(places, c, i), False, -1
            plain, minus, point, whole, end, fraction, following = _plain(text, places, c, i)
            if plain:
                y[n] = _decimal(text, point, whole, end, fraction) * _SIGNS[minus]
                i, c = end, following
            else:
                y[n], i, fault = _label(text, i, bars, hard, n)
            i = _next_word(text, i)
            if bars and fault <= HARD:
                begin = i
                i, named, fault = _after_namespace(text, i)
            c = _from(places, c, i)
            while fault <= HARD and text[i] != 10:
                colon, index = _U(places[c]), _ZERO
                plain, minus, point, whole, end, fraction, following = _plain(
                    text, places, c + _ONE, colon + _ONE
                )
                plain &= (text[colon] == 58) & (colon - i - _ONE < _EIGHT)
                if plain:
                    index = _last(text, colon, colon - i)
                if plain and lowest <= index <= highest:
                    data[nnz] = _decimal(text, point, whole, end, fraction) * _SIGNS[minus]
                    i, c = end + _U(text[end] != 10), following
                else:
                    begin = _next_word(text, i)
                    if begin != i:
                        i, c = begin, _from(places, c, begin)
                        continue
                    if text[i] == 35 and not named:
                        break
                    allowed = lowest, highest, not named
                    index, data[nnz], i, fault = _feature(text, i, *allowed, hard, nnz)
                    c = _from(places, c, i)
                column = np.int64(index - lowest)
                indices[nnz] = column
                all_ascend &= column > last
                last, nnz = column, nnz + 1
            n += 1
            indptr[n] = nnz
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
            return _last(text, end, k)
    begin = end
    while begin > _ZERO and 48 <= text[begin - _ONE] <= 57:
        begin -= _ONE
    number, _ = _digits(text, begin, _ZERO)
    return number if end - begin <= _U(18) else _ZERO


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


@kernel
def digest(words):
    """64 bits that tell blocks of bytes apart which differ by accident: no secret, but fast.

    Four sums by turns, for one waits for its last product; each word goes through a product with
    an odd number and a shift, so that no change is lost and each reaches all bits.
    """
    prime = _U(0x9E3779B185EBCA87)
    a, b, c, d = _ZERO, _ONE, _TWO, _THREE
    whole = len(words) // 4 * 4
    for i in range(0, whole, 4):
        a = (a ^ words[i]) * prime
        b = (b ^ words[i + 1]) * prime
        c = (c ^ words[i + 2]) * prime
        d = (d ^ words[i + 3]) * prime
        a, b, c, d = a ^ (a >> _HALF), b ^ (b >> _HALF), c ^ (c >> _HALF), d ^ (d >> _HALF)
    for i in range(whole, len(words)):
        a = (a ^ words[i]) * prime
        a ^= a >> _HALF
    for lane in (b, c, d, _U(len(words))):
        a *= prime  # or equal changes in two sums would take each other back
        a = ((a ^ (a >> _HALF)) * prime) ^ lane
    return a
