"""Random numbers of the designs: standard normal ones, and places of the entries of sparse rows.

Words of 64 random bits come from several of numpy's generators SFC64 in turn, which a processor
steps side by side. A word gives a normal number by the ziggurat (Marsaglia and Tsang, The ziggurat
method for generating random variables, J. Statistical Software 5(8), 2000), exact as numpy's own
is: eight bits choose one of 256 layers of equal area under the density, 53 others a point on it.
What the layer's inner rectangle does not hold, 1.2 % of the numbers, is finished with words of a
generator kept for that, in the order of the numbers: how rows are cut to blocks changes nothing.
"""

import math

import numpy as np

from ofslib._jit import kernel
from ofslib.kernels.words import low_zeros

# Generators that take turns, from the first one on in each row; a last one is the spare one.
TURNS = 64
ALL = TURNS + 1
LAYERS = 256
_U = np.uint64
_ZERO, _ONE = _U(0), _U(1)
_LAST = _U(LAYERS - 1)
_MIDDLE = 2.0**52 - 0.5
_NONE = np.empty(0)


def _height(x):
    return math.exp(-0.5 * x * x)


def _layers(r):
    """Right ends of layers of equal area, if the tail begins at r, and how high they reach."""
    area = r * _height(r) + math.sqrt(math.pi / 2) * math.erfc(r / math.sqrt(2))
    found, x = [area / _height(r)], r
    while len(found) < LAYERS:
        found.append(x)
        top = _height(x) + area / x
        if top >= 1.0:
            break
        x = math.sqrt(-2.0 * math.log(top))
    return found, top


def _edges():
    """Right ends of the layers, from the base upwards, and 0, where the last one reaches 1.

    The base is as wide as if its tail, which begins at the second one, were part of a rectangle.
    """
    low, high = 3.0, 4.0
    while low < (r := (low + high) / 2) < high:
        # Above a base that is too short the layers are too large.
        low, high = (r, high) if _layers(r)[1] >= 1.0 else (low, r)
    return np.array([*_layers(high)[0], 0.0])


EDGE = _edges()
HEIGHT = np.exp(-0.5 * EDGE**2)
UNIT = EDGE[:-1] * 2.0**-52


def new_words(rng: np.random.Generator) -> np.ndarray:
    """Generators of words, seeded by `rng`, shape (5, ALL): numpy's four numbers, and a word."""
    state = np.ones((5, ALL), _U)
    state[:3] = rng.integers(2**64, size=(3, ALL), dtype=_U)
    with np.errstate(over="ignore"):  # of kernels that are not compiled
        for _ in range(12):  # which numpy passes over, too
            step(state, 0, ALL)
    return state


def normals(
    state: np.ndarray,
    means: np.ndarray,
    p: int,
    own: np.ndarray = _NONE,
    coef: np.ndarray = _NONE,
) -> tuple[np.ndarray, np.ndarray]:
    """Rows X of p independent normal numbers, of these means and of variance 1; X[:, own] @ coef.

    Row by row: a product of matrices would round by the number of rows.
    """
    X, products = np.empty((len(means), p)), np.empty(len(means))
    with np.errstate(over="ignore"):
        _fill(state, means, X, own.astype(np.int64), coef, products)
    return X, products


def places(state: np.ndarray, rows: int, width: int, p: int) -> np.ndarray:
    """Rows of `width` different numbers below p each, in no order; all sets are equally likely."""
    found, unused = np.empty((rows, width), np.int64), 64 - max(1, (p - 1).bit_length())
    with np.errstate(over="ignore"):
        _choose(state, _U(unused), p, found)
    return found


@kernel(allocates=False)
def step(state, start, stop):
    """Let these generators make a word each: SFC64 (Doty-Humphrey, PractRand), as in numpy."""
    # A view of each, as only then the compiler sees that they are far from each other
    a, b, c, counter, words = state[0], state[1], state[2], state[3], state[4]
    for i in range(start, stop):
        words[i] = a[i] + b[i] + counter[i]
        counter[i] += _ONE
        a[i] = b[i] ^ (b[i] >> _U(11))
        b[i] = c[i] + (c[i] << _U(3))
        c[i] = ((c[i] << _U(24)) | (c[i] >> _U(40))) + words[i]


@kernel(allocates=False)
def _point(word):
    """A point on the layer of a word, between its ends on both sides of 0."""
    return (float(word >> _U(11)) - _MIDDLE) * UNIT[word & _LAST]


@kernel(allocates=False)
def _fill(state, means, X, own, coef, products):
    words = state[4]
    for r in range(len(X)):
        x, mean = X[r], means[r]
        for start in range(0, len(x), TURNS):
            part, late = x[start : start + TURNS], _ZERO
            step(state, 0, len(part))
            # Without a branch for each number, which would cost more than those few do
            for i in range(len(part)):
                point = _point(words[i])
                part[i] = point + mean
                late |= _U(abs(point) >= EDGE[(words[i] & _LAST) + _ONE]) << _U(i)
            while late:
                i = low_zeros(late)
                part[i] = _finished(words[i], state) + mean
                late &= late - _ONE
        # As long as the row is near
        total = 0.0
        for i in range(len(own)):
            total += x[own[i]] * coef[i]
        products[r] = total


@kernel(allocates=False)
def _spare(state):
    """A word of the spare generator."""
    step(state, TURNS, ALL)
    return state[4, TURNS]


@kernel(allocates=False)
def _uniform(state):
    """A number between 0 and 1, which it never is."""
    return (float(_spare(state) >> _U(12)) + 0.5) * 2.0**-52


@kernel(allocates=False)
def _finished(word, state):
    """The number that the ziggurat makes of a word, with further ones where it needs them."""
    while True:
        layer, x = word & _LAST, _point(word)
        if abs(x) < EDGE[layer + _ONE]:
            return x
        if layer == _ZERO:
            return math.copysign(_beyond(EDGE[1], state), x)
        below, above = HEIGHT[layer], HEIGHT[layer + _ONE]
        if below + _uniform(state) * (above - below) < math.exp(-0.5 * x * x):
            return x
        word = _spare(state)


@kernel(allocates=False)
def _beyond(r, state):
    """A number above r of the normal law (Marsaglia 1964)."""
    while True:
        x = -math.log(_uniform(state)) / r
        if -2.0 * math.log(_uniform(state)) > x * x:
            return r + x


@kernel
def _choose(state, unused, p, found):
    taken, words = np.zeros(p, np.bool_), state[4]
    for row in found:
        n, i = 0, TURNS
        while n < len(row):
            if i == TURNS:
                step(state, 0, TURNS)
                i = 0
            place = np.int64(words[i] >> unused)
            if place < p and not taken[place]:
                taken[place], row[n] = True, place
                n += 1
            i += 1
        for place in row:
            taken[place] = False
