"""Hold the parser of texts against a slow reader that is written from what the formats are.

    python tests/fuzz_text.py [SECONDS]       texts changed at random, from those of fuzz_text.txt
    python tests/fuzz_text.py doubles [N]     doubles of all exponents, in the shortest digits

The first one ends with an error that shows the text if one is misread, refused without reason or
taken without one; a hang ends it, too, and a crash leaves the text in the folder that it names.
NUMBA_BOUNDSCHECK=1 (with a NUMBA_CACHE_DIR of its own) lets compiled code check its indices.
"""

import faulthandler
import re
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ofslib.datasets import open_stream
from ofslib.datasets import text as text_module

text_module._SHARED = 1  # pieces as small in several threads as in one
NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
BLANKS = " \t\r\f\v"
CORPUS = [
    line.encode().decode("unicode_escape").encode("latin-1")
    for line in Path(__file__).with_suffix(".txt").read_text(encoding="ascii").splitlines()
    if not line.startswith("#")
]
SNIPPETS = (
    "1 -1 2.5 : . - + e | # \n \r\n \t \v \f 1: :3 0:1 3:+4 2:-0 nan inf 1e400 1e-400 0x1 qid:1"
    " |f |f#x || True 1_0 \0 \x1c \x85 \xa0 \xef\xbb\xbf ' , 99999999999:1 7:12345678 8:0.123456789"
    " 9:123456789.123456789e-5 33333333333333333333 00000000000000000000 .00000000000000000001"
).split(" ")
SNIPPETS = [b" ", b"  ", b"\n", b"", *(word.encode("latin-1") for word in SNIPPETS)]


def slow(text, lowest=1, width=None):
    """Rows as [(label, {index: value})], or None if any line is wrong."""
    lines = text.decode("latin-1").removeprefix("\xef\xbb\xbf").split("\n")
    told = (line.partition("#")[0] for line in lines)
    bars = "|" in next((line for line in told if line.strip(BLANKS)), "")
    highest = min(width or 2**31, 2**31 - 1) + lowest - 1
    rows = []
    for line in lines:
        label, bar, features = line, "", ""
        if bars:
            label, bar, features = line.partition("|")
        if "#" in label:
            label, bar, features = label.partition("#")[0], "", ""
        if bar:
            name = re.match(f"[^{BLANKS}]*", features)[0]
            if ":" in name or "|" in name:
                return None
            features = features[len(name) :]
        words = re.findall(f"[^{BLANKS}]+", label)
        if not words and not bar:
            continue
        if not words or (bars and len(words) > 1):
            return None
        row = {}
        words += re.findall(f"[^{BLANKS}]+", features)
        if not re.fullmatch(NUMBER, words[0]) or not np.isfinite(float(words[0])):
            return None
        for word in words[1:]:
            found = re.fullmatch(f"([0-9]+):({NUMBER})", word)
            if not found or len(found[1]) > 18 or not lowest <= int(found[1]) <= highest:
                return None
            index, value = int(found[1]), float(found[2])
            if index in row or not np.isfinite(value):
                return None
            row[index] = value
        rows.append((float(words[0]), dict(sorted(row.items()))))
    return rows


def stored(rows):
    """Rows without their zeros."""
    return rows and [(label, {j: v for j, v in row.items() if v}) for label, row in rows]


def read(stream, lowest):
    """What the parser makes of it, or None."""
    got = []
    try:
        for X, y in stream:
            for i, label in enumerate(y.tolist()):
                row = slice(X.indptr[i], X.indptr[i + 1])
                entries = zip((X.indices[row] + lowest).tolist(), X.data[row].tolist(), strict=True)
                got.append((label, dict(entries)))
    except ValueError as error:
        assert re.search(r"a\.txt, line \d+: ", str(error)), error
        return None
    return got


def check(path, text, chunk, zero_based=False, width=None, **options):
    """AssertionError unless the parser says of a text what the slow reader says."""
    path.write_bytes(text)
    lowest, before, text_module._CHUNK = int(not zero_based), text_module._CHUNK, chunk
    expected = slow(text, lowest, width)
    try:
        stream = open_stream(path, 3, False, width, zero_based=zero_based, **options)
        got = read(stream, lowest)
        size = (stream.n_rows, stream.n_features)
    finally:
        text_module._CHUNK = before
    assert repr(got) == repr(stored(expected)), (text, chunk, zero_based, width, got, expected)
    if expected is not None:
        largest = max((max(row, default=lowest - 1) for _, row in expected), default=lowest - 1)
        assert size == (len(expected), width or largest + 1 - lowest), (text, size)
    return expected is not None


def number(rng):
    """A number as programs write it."""
    value = rng.standard_normal() * 10.0 ** rng.integers(-4, 9)
    forms = ["{!r}", "{:.6g}", "{:.3f}", "{:.0f}", "{:.20f}", "{:.16e}", "{:.8f}"]
    return forms[rng.integers(len(forms))].format(float(value))


def rows(rng):
    """Some right rows."""
    lines, bar = [], rng.choice(["", "| ", "|f "])
    for _ in range(rng.integers(1, 7)):
        indices = np.unique(rng.integers(1, 10 ** rng.integers(1, 10), rng.integers(0, 6)))
        words = [f"{j}:{number(rng)}" for j in indices.tolist()]
        if rng.integers(4) == 0:
            rng.shuffle(words)
        lines.append(f"{rng.integers(-1, 2)} {bar}{' '.join(words)}\n")
    return "".join(lines).encode()


def changed(text, rng):
    """The text after a few changes."""
    for _ in range(rng.choice([0, 1, 1, 3])):
        i, j = sorted(rng.integers(0, len(text) + 1, 2).tolist())
        snippet = SNIPPETS[rng.integers(len(SNIPPETS))]
        text = [
            text[:i] + snippet + text[i:],
            text[:i] + snippet + text[i + 1 :],
            text[:i] + bytes([rng.integers(256)]) + text[i + 1 :],
            text[:i] + text[i + 1 :],
            text[:i] + text[min(j, i + 8) :],
            text + text[i:j],
        ][rng.integers(6)]
    return text


def run(folder, seed, seconds=np.inf, cases=np.inf):
    """Check so many texts, or for so many seconds; returns how many, and how many were right."""
    rng, done, right, begin = np.random.default_rng(seed), 0, 0, time.process_time()
    path = Path(folder) / "a.txt"
    while done < cases and time.process_time() - begin < seconds:
        if done % 500 == 1:  # the first one compiles
            faulthandler.dump_traceback_later(300, exit=True)
        text = CORPUS[rng.integers(len(CORPUS))] if rng.integers(3) == 0 else rows(rng)
        text = changed(text, rng)
        chunk = int(rng.choice([3, 7, 30, 64, 200, 5000]))
        width = int(rng.integers(1, 2000)) if rng.integers(9) == 0 else None
        jobs = 1 + int(rng.integers(20) == 0)
        right += check(path, text, chunk, bool(rng.integers(2)), width, n_jobs=jobs)
        done += 1
    faulthandler.cancel_dump_traceback_later()
    return done, right


def random_doubles(n, seed=0):
    """Doubles of all exponents: any bits that are a finite number."""
    bits = np.random.default_rng(seed).integers(-(2**63), 2**63, n)
    values = bits.view(np.float64)
    return values[np.isfinite(values)]


def assert_exact(words, folder):
    """The reader makes of these numbers what Python makes of them, to the last bit."""
    path = Path(folder) / "numbers.svm"
    # What stands before the first number is long: the fast way begins later in a text.
    path.write_text(f"0 {'0' * 15}1:1\n" + "".join(f"0 1:{word}\n" for word in words))
    X, y = zip(*open_stream(path, cache=False), strict=True)
    assert all(block.data.all() for block in X)
    got = np.concatenate([block.toarray()[:, 0] for block in X])[1:]
    expected = np.array([float(word) for word in words]) + 0.0  # no zero is stored, nor its sign
    assert len(expected) == len(got) == sum(map(len, y)) - 1
    np.testing.assert_array_equal(got.view(np.int64), expected.view(np.int64))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        if sys.argv[1:2] == ["doubles"]:
            total, done = int(float((sys.argv[2:] or ["1e7"])[0])), 0
            while done < total:
                values = random_doubles(min(10**6, total - done), seed=done)
                assert_exact([repr(value) for value in values.tolist()], folder)
                done += min(10**6, total - done)
            sys.stdout.write(f"{total:,} doubles: all exact, but those that are not finite\n")
        else:
            seconds, seed = float((sys.argv[1:] or ["60"])[0]), time.time_ns()
            sys.stdout.write(f"seed {seed}, texts in {folder}\n")
            sys.stdout.flush()
            done, right = run(folder, seed, seconds)
            sys.stdout.write(f"{done:,} texts, {right:,} of them right: none misread\n")
