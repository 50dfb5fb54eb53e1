"""Random numbers of the designs: numpy's words, the ziggurat by its definition, and the laws."""

import math
from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

from ofslib.kernels import draws
from ofslib.kernels.draws import ALL, EDGE, HEIGHT, LAYERS, TURNS, new_words, normals

R = EDGE[1]


def drawn(n, seed=0, p=1000):
    return normals(new_words(np.random.default_rng(seed)), np.zeros(n // p), p)[0]


def numpys(seed):
    """numpy's own generators SFC64 with the words that `new_words` takes from the seed."""
    seeds, found = np.random.default_rng(seed).integers(2**64, size=(3, ALL), dtype=np.uint64), []
    for three in seeds.T:
        own = np.random.SFC64()
        words = np.append(three, np.uint64(1))
        own.state = own.state | {"state": {"state": words}}
        own.random_raw(12)  # as it does with words that it makes of a seed
        found.append(own)
    return found


# The tables


def test_the_layers_have_equal_areas():
    """r and v of Marsaglia and Tsang 2000, Table 2 for 256 layers."""
    v = R * math.exp(-0.5 * R * R) + math.sqrt(math.pi / 2) * math.erfc(R / math.sqrt(2))
    assert pytest.approx(3.6541528853610088, rel=1e-15) == R
    assert v == pytest.approx(0.00492867323399, rel=1e-11)
    assert len(EDGE) == LAYERS + 1 and EDGE[-1] == 0.0 and HEIGHT[-1] == 1.0
    assert_allclose(EDGE[1:-1] * np.diff(HEIGHT[1:]), v, rtol=1e-11)
    assert EDGE[0] * HEIGHT[1] == pytest.approx(v, rel=1e-14)


# The words, and what the definition makes of them


def test_the_words_are_those_of_numpys_generators():
    state = new_words(np.random.default_rng(3))
    for i, own in enumerate(numpys(3)):
        with np.errstate(over="ignore"):
            found = [draws.step(state, i, i + 1) or state[4, i] for _ in range(20)]
        assert_array_equal(found, own.random_raw(20))


class Reference:
    """The ziggurat, as it is defined, on words of numpy's generators."""

    def __init__(self, seed):
        self.words = [iter(own.random_raw(4000).tolist()) for own in numpys(seed)]

    def rows(self, n, p):
        return np.array(
            [[self.one(next(self.words[j % TURNS])) for j in range(p)] for _ in range(n)]
        )

    def uniform(self):
        return ((next(self.words[TURNS]) >> 12) + 0.5) / 2**52

    def one(self, word):
        layer = word & 0xFF
        # 53 bits: the middles of as many equal parts of the layer, from its left end to its right
        x = (2 * (word >> 11) + 1 - 2**53) / 2 * (EDGE[layer] * 2.0**-52)
        if abs(x) < EDGE[layer + 1]:
            return x
        if layer == 0:
            while True:
                a, b = (-math.log(self.uniform()) for _ in range(2))
                if 2 * b > (a / R) ** 2:
                    return math.copysign(R + a / R, x)
        if HEIGHT[layer] + self.uniform() * (HEIGHT[layer + 1] - HEIGHT[layer]) < math.exp(
            -x * x / 2
        ):
            return x
        return self.one(next(self.words[TURNS]))


def test_numbers_are_those_of_the_definition_in_every_bit():
    """Whatever the rows of a block."""
    rows = Reference(7).rows(400, 301)
    means = np.linspace(-1, 1, len(rows))
    assert np.abs(rows).max() > R
    words = new_words(np.random.default_rng(7))
    parts = [normals(words, part, 301)[0] for part in np.split(means, [1, 8, 100])]
    assert_array_equal(np.concatenate(parts), rows + means[:, None])


# The law of a million numbers


def test_the_law_is_the_normal_one():
    million = drawn(1_000_000, seed=1).ravel()
    assert stats.kstest(million, "norm").pvalue > 0.01
    cells = np.bincount((stats.norm.cdf(million) * 1000).astype(int), minlength=1000)
    assert stats.chisquare(cells).pvalue > 0.01


# Places


@pytest.mark.parametrize(("p", "width"), [(1, 1), (5, 2), (8, 8), (6, 3)])
def test_all_sets_of_places_are_equally_likely(p, width):
    n = 200 * math.comb(p, width)
    found = draws.places(new_words(np.random.default_rng(p)), n, width, p)
    count = dict.fromkeys(combinations(range(p), width), 0)
    for row in np.sort(found, axis=1).tolist():
        count[tuple(row)] += 1
    assert len(count) == math.comb(p, width)
    if len(count) > 1:
        assert stats.chisquare([*count.values()]).pvalue > 0.01


def test_places_of_a_block_are_those_of_its_rows():
    one, two = (new_words(np.random.default_rng(0)) for _ in range(2))
    whole = draws.places(one, 50, 20, 1000)
    parts = [draws.places(two, rows, 20, 1000) for rows in (1, 30, 19)]
    assert_array_equal(np.concatenate(parts), whole)
    assert all(len(set(row)) == 20 for row in whole.tolist())
