"""Rows of LIBSVM and Vowpal Wabbit texts, parsed to the last bit.

A number of at most 19 digits is a whole number w times a power of ten 10^q. Where both are exact
doubles, one multiplication or division rounds right (Clinger, How to read floating point numbers
accurately, 1990); else w times the first 128 bits of 5^q nearly always decides (Lemire, Number
parsing at a gigabyte per second, Software: Practice and Experience 51, 2021, Algorithm 1). What is
left, and what overflows or is subnormal, is named to the caller, who has an exact reader for it.
"""

from typing import NamedTuple

import numpy as np

from ofslib._jit import kernel

PADDING = 8  # a text is read in words of eight bytes, also at its end

# What a number or a word is: HARD is right, but to be read by other means
RIGHT, HARD, LONG, LABEL, FEATURE, INDEX = range(6)
LONGEST_NUMBER = 2000  # characters; the longest double in full has 1,077

# An int64 beside an uint64 is a float64, and numba looks whether an int64 index is negative.
_U = np.uint64
_ZERO, _ONE, _TWO, _THREE, _NINE, _TEN = (_U(k) for k in (0, 1, 2, 3, 9, 10))
_LAST_EXACT = _U(2**53)
_HALF, _LOW_HALF = _U(32), _U(2**32 - 1)
_EIGHT, _HUNDRED_MILLION = _U(8), _U(10**8)
_HIGH_NIBBLES, _SIXES, _THREES = (_U(int(digit * 8, 16)) for digit in ("f0", "06", "33"))
_ZEROS, _PAIRS, _HUNDREDS = _U(0x3030303030303030), _U(0x000000FF000000FF), _U(0x000F424000000064)
_TEN_THOUSANDS = _U(0x0000271000000001)
_SHIFTS = tuple(_U(8 * k) for k in range(8))
_POWERS_OF_TEN = np.array([float(f"1e{q}") for q in range(23)])
_WHOLE_POWERS = np.array([10**k for k in range(8)], np.uint64)
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
    """Arrays for rows, larger than need be."""

    y: np.ndarray  # (n,) float64
    data: np.ndarray  # (nnz,) float64, in the order of the text
    indices: np.ndarray  # (nnz,) int32, from 0
    indptr: np.ndarray  # (n + 1,) int32
    # (m + 1, 2) int64: m; then of each hard number its place in `data`, or -1 - its place in `y`,
    # and where it begins
    hard: np.ndarray


@kernel
def _product(a, b):
    """The upper and the lower half of a * b."""
    a0, a1, b0, b1 = a & _LOW_HALF, a >> _HALF, b & _LOW_HALF, b >> _HALF
    low, left, right = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _HALF) + (left & _LOW_HALF) + (right & _LOW_HALF)
    upper = a1 * b1 + (left >> _HALF) + (right >> _HALF) + (middle >> _HALF)
    return upper, (middle << _HALF) | (low & _LOW_HALF)


@kernel
def _by_bits(w, q):
    """The double nearest to w 10^q as (double, whether this is certain), for w > 0."""
    if q < _SMALLEST_Q or q > _LARGEST_Q:
        return 0.0, False
    # float64() may round w up to a power of two.
    zeros = max(1086 - np.int64(np.float64(w).view(_U) >> _U(52)), 0)
    if (w << _U(zeros)) >> _U(63) == _ZERO:
        zeros += 1
    w = w << _U(zeros)
    upper, lower = _product(w, _HIGH[q - _SMALLEST_Q])
    if upper & _U(0x1FF) == _U(0x1FF):
        more, _ = _product(w, _LOW[q - _SMALLEST_Q])
        lower += more
        if lower < more:
            upper += _ONE
        if lower == ~_ZERO and (q < -27 or q > 55):
            return 0.0, False
    top = upper >> _U(63)
    shift = top + _U(9)
    mantissa = upper >> shift
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(top) - zeros
    if exponent <= 0:
        return 0.0, False
    # Halfway between two doubles: to the even one.
    if lower <= _ONE and -4 <= q <= 23 and mantissa & _THREE == _ONE and mantissa << shift == upper:
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
def _word(text, i):
    """The eight bytes from i on."""
    return (
        _U(text[i])
        | (_U(text[i + _U(1)]) << _SHIFTS[1])
        | (_U(text[i + _U(2)]) << _SHIFTS[2])
        | (_U(text[i + _U(3)]) << _SHIFTS[3])
        | (_U(text[i + _U(4)]) << _SHIFTS[4])
        | (_U(text[i + _U(5)]) << _SHIFTS[5])
        | (_U(text[i + _U(6)]) << _SHIFTS[6])
        | (_U(text[i + _U(7)]) << _SHIFTS[7])
    )


@kernel
def _eight(word):
    """The number that eight digits are."""
    word = word * _TEN + (word >> _EIGHT)
    return ((word & _PAIRS) * _HUNDREDS + ((word >> _U(16)) & _PAIRS) * _TEN_THOUSANDS) >> _HALF


@kernel
def _digits(text, i, w):
    """w with the digits from i on after it, and where they end."""
    while True:
        word = _word(text, i)
        # The lowest bit that is set belongs to the first byte that is no digit.
        other = ((word + _U(0x4646464646464646)) | (word - _ZEROS)) & _U(0x8080808080808080)
        if other != _ZERO:
            break
        w = w * _HUNDRED_MILLION + _eight(word - _ZEROS)
        i += _EIGHT
    first = (other & (~other + _ONE)) >> _U(7)  # 256^k: k digits are left
    k = (first * _U(0x0001020304050607)) >> _U(56)
    # (word - zeros) 256^(8 - k), in two steps, for k may be 0
    word = ((word - _ZEROS) << _U(8)) << (_U(56) - _EIGHT * k)
    return w * _WHOLE_POWERS[k] + _eight(word), i + k


@kernel
def _few_digits(text, i):
    """The number that begins at i, and where it ends: faster than `_digits` where it is short."""
    w = _ZERO
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
    w, i = _few_digits(text, i)
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
        power, i = _few_digits(text, i)
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
def _features(text, i, comments, lowest, highest, rows, nnz):
    """The features of a row: where they end, how many entries there are then, and what is wrong."""
    last, ascending = -1, True
    while True:
        i = _next_word(text, i)
        begin = i
        if text[i] == 10 or (comments and text[i] == 35):
            return i, nnz, ascending, RIGHT, begin
        index, i = _few_digits(text, i)
        if i == begin or text[i] != 58:
            return i, nnz, ascending, FEATURE, begin
        if i - begin > _U(18) or index < lowest or index > highest:
            return i, nnz, ascending, INDEX, begin
        place = i + _ONE
        value, i, state = _number(text, place)
        if state >= LONG or not (
            _is_blank(text[i]) or text[i] == 10 or (text[i] == 35 and comments)
        ):
            return i, nnz, ascending, LONG if state == LONG else FEATURE, begin
        if state == HARD:
            _postpone(rows.hard, nnz, place)
        rows.data[nnz] = value
        column = np.int64(index - lowest)
        rows.indices[nnz] = column
        ascending &= column > last
        last = column
        nnz += 1


@kernel
def _postpone(hard, place, begin):
    hard[0, 0] += 1
    hard[hard[0, 0], 0] = place
    hard[hard[0, 0], 1] = begin


@kernel
def _after_namespace(text, i):
    """Where the features begin after a bar and a plain name; the bar itself if it is not plain."""
    bar = i
    i += _ONE
    while not _is_blank(text[i]) and text[i] != 10:
        if text[i] == 58 or text[i] == 124:
            return bar
        i += _ONE
    return i


@kernel
def parse_rows(text, stop, bars, lowest, highest):
    """Whole lines as rows: how many, how many entries, whether all ascend, the arrays, the fault.

    `text` has PADDING bytes after `stop`; with `bars` a namespace stands before the features.
    `lowest` and `highest` (uint64) are the indices allowed. The fault is what is wrong (RIGHT:
    nothing), where the word begins, and the number of lines before it.
    """
    # A row is two bytes or more, a feature four. Memory that is not written to costs nothing.
    n, nnz = stop // 2 + 1, stop // 4 + 1
    hard = np.empty((n + nnz + 1, 2), np.int64)
    hard[0, 0] = 0
    rows = Rows(
        np.empty(n), np.empty(nnz), np.empty(nnz, np.int32), np.empty(n + 1, np.int32), hard
    )
    rows.indptr[0] = 0
    n, nnz, line, all_ascend = 0, 0, 0, True
    i, fault, begin = _ZERO, RIGHT, _ZERO
    while i < _U(stop):
        i = _next_word(text, i)
        if text[i] != 10 and text[i] != 35:
            i, fault, begin, value = _label(text, i, bars)
            if fault > HARD:
                break
            rows.y[n] = value
            if fault == HARD:
                _postpone(hard, -1 - n, begin)
            i = _next_word(text, i)
            begin, named = i, bars and text[i] == 124
            if named:
                i = _after_namespace(text, i)
            if i == begin and bars and text[i] != 10 and text[i] != 35:
                fault = FEATURE
                break
            i, nnz, ascend, fault, begin = _features(text, i, not named, lowest, highest, rows, nnz)
            if fault != RIGHT:
                break
            all_ascend &= ascend
            n += 1
            rows.indptr[n] = nnz
        i = _next_line(text, i)
        line += 1
    return n, nnz, all_ascend, rows, (fault, np.int64(begin), line)


@kernel
def _label(text, i, bars):
    """Where the label ends that begins at i, its state, where it begins, the number."""
    begin = i
    value, i, state = _number(text, i)
    after = _is_blank(text[i]) or text[i] == 10 or text[i] == 35 or (bars and text[i] == 124)
    return i, state if after or state == LONG else LABEL, begin, value


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
