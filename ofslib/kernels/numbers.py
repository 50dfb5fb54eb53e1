"""Numbers of texts, read to the last bit.

A number of at most 19 digits is a whole number w times a power of ten 10^q. Where both are exact
doubles, one multiplication or division rounds right (Clinger, How to read floating point numbers
accurately, 1990). Else w times the first 128 bits of 5^q nearly always decides (Lemire, Number
parsing at a gigabyte per second, Software: Practice and Experience 51, 2021, Algorithm 1). The
caller has an exact reader for the rest: numbers that overflow, subnormal and undecided ones.
"""

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.words import high_zeros, upper, word

# State of a number or a word. HARD: it is right, but only an exact reader can tell its value.
RIGHT, HARD, LONG, LABEL, FEATURE, INDEX = range(6)
LONGEST_NUMBER = 2000  # characters; the longest double in full has 1,077

# An int64 beside an uint64 is a float64, and numba tests whether an int64 index is negative.
_U = np.uint64
_ZERO, _ONE, _THREE, _NINE, _TEN = (_U(k) for k in (0, 1, 3, 9, 10))
_EIGHT, _SIXTEEN, _HALF = _U(8), _U(16), _U(32)
_LAST_EXACT = _U(2**53)
_ZEROS, _PAIRS, _HUNDREDS = _U(0x3030303030303030), _U(0x000000FF000000FF), _U(0x000F424000000064)
_TEN_THOUSANDS = _U(0x0000271000000001)
_LAST_BYTES = np.array([2**64 - 2 ** (64 - 8 * k) for k in range(9)], np.uint64)
_POWERS_OF_TEN = np.array([float(f"1e{q}") for q in range(23)])
_WHOLE_POWERS = np.array([10**k for k in range(20)], np.uint64)
SIGNS = np.array([1.0, -1.0])
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
def last_digits(text, end, k):
    """The number that the k digits before `end` are, for k <= 8."""
    digits = (word(text, end - _EIGHT) ^ _ZEROS) & _LAST_BYTES[k]
    digits = digits * _TEN + (digits >> _EIGHT)
    high, low = digits & _PAIRS, (digits >> _SIXTEEN) & _PAIRS
    return (high * _HUNDREDS + low * _TEN_THOUSANDS) >> _HALF


@kernel
def decimal(text, point, whole, end, fraction):
    """The double of `whole` digits before `point` and `fraction` before `end`: 8, and 19 in all."""
    w = last_digits(text, point, whole) * _WHOLE_POWERS[fraction]
    if fraction <= _EIGHT:
        w += last_digits(text, end, fraction)
    else:
        rest = fraction - _EIGHT
        middle = min(rest, _EIGHT)
        w += last_digits(text, end, _EIGHT) + _WHOLE_POWERS[8] * last_digits(
            text, end - _EIGHT, middle
        )
        w += _WHOLE_POWERS[16] * last_digits(text, end - _SIXTEEN, rest - middle)
    if whole + fraction <= _U(15):
        return np.float64(np.int64(w)) / _POWERS_OF_TEN[fraction]
    if w == _ZERO:
        return 0.0
    value, _ = _by_bits(w, -np.int64(fraction))  # certain, for q >= -27
    return value


@kernel
def digits_from(text, i, w):
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
def number(text, i):
    """The number that begins at i: the double, where it ends, and its state."""
    start = i
    negative = text[i] == 45
    if negative or text[i] == 43:
        i += _ONE
    first = i
    w, i = digits_from(text, i, _ZERO)
    count, q = i - first, 0
    if text[i] == 46:
        i += _ONE
        point = i
        w, i = digits_from(text, i, w)
        count += i - point
        q -= np.int64(i - point)
    state = RIGHT if count > _ZERO else LABEL
    if text[i] | 32 == 101:
        i += _ONE
        falling = text[i] == 45
        if falling or text[i] == 43:
            i += _ONE
        point = i
        power, i = digits_from(text, i, _ZERO)
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
