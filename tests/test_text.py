"""Texts: every double exact, nothing misread, blocks of any size are the file; and its cache."""

import bz2
import gzip
import io
import itertools
import lzma
import os
import re
import struct
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor

import fuzz_text
import numpy as np
import pandas as pd
import pytest
from backports import zstd
from fuzz_text import assert_exact, random_doubles
from test_datasets import assert_same, exact_text, files_in, random_rows, whole

from ofslib import datasets
from ofslib.datasets import cache as cache_module
from ofslib.datasets import pieces as pieces_module
from ofslib.datasets import text as text_module
from ofslib.kernels.text import parse_rows

both_ways = pytest.mark.parametrize("cache", [True, False])


def read(path, **options):
    """All rows of a file as (X, y)."""
    return whole(datasets.open_stream(path, **options))


# -------------------------------------------------- numbers


def spread(form, count=5_000):
    """Of all exponents, and ordinary ones."""
    rng = np.random.default_rng(1)
    values = rng.standard_normal(5_000) * 10.0 ** rng.integers(-6, 9, 5_000)
    if not form.endswith("f}"):
        values = np.append(values, random_doubles(count))
    return [form.format(v) for v in values.tolist()]


def halfway():
    """All digits of the middle of two neighbours, and a little more or less."""
    for value in np.abs(random_doubles(300, seed=2)).tolist():
        bits = int.from_bytes(struct.pack(">d", value))
        fraction, exponent = bits & (2**52 - 1), bits >> 52
        twice = 2 * (fraction + (2**52 if exponent else 0)) + 1  # in units of the last place / 2
        power = max(exponent, 1) - 1076
        digits = twice << power if power >= 0 else twice * 5**-power
        yield from (f"{digits + more}e{min(power, 0)}" for more in (-1, 0, 1))


def of_every_length():
    """On both sides of each limit of the fast ways: 8, 15, 16 and 19 digits, with and without."""
    rng = np.random.default_rng(5)
    for before, after in itertools.product(range(12), range(24)):
        for digits in (rng.integers(0, 10, before + after), [0] * 22 + [9] * 20, [9] * 40):
            text = "".join(map(str, digits[: before + after]))
            for sign in ("", "-"):
                yield from (sign + text[:before] + "." + text[before:], sign + text[:before])


# Ties, subnormals, the ends of the range, and numbers that broke other parsers (Gay 1991; Lemire
# 2021; the test suites of Go, of glibc and of fast_float).
AWKWARD = """0 -0 0.0 -0.0 00 000.000 1 +1 -1 1. .5 +.5 -.5 1.e3 .5e-3 1E5 1e+5 1e00005 0e999 0e-999
9007199254740991 9007199254740992 9007199254740993 9007199254740994 9007199254740995
9007199254740993.0000000000000000000000000000000001 9223372036854775807 9223372036854775808
18446744073709551615 18446744073709551616 9999999999999999999 99999999999999999999 1e22 1e23
1e-22 1e-23 9007199254740992e22 8.988465674311580e307 1.7976931348623157e308
1.7976931348623158e308 2.2250738585072014e-308 2.2250738585072011e-308 2.2250738585072012e-308
4.9e-324 5e-324 2.4703282292062327e-324 2.4703282292062328e-324 2e-324 1e-400 1e-9999999999
6.9294956446009195e15 3.5844466002796428e298
2.225073858507201136057409796709131975934819546351645e-308 8.5e-323 123456789012345678
1234567890123456789012345678901234567890 7.3177701707893310e15
3.2378839133029012895883524125015321748630094314140e-29 5.0052077379577523714e-147 6.461e-65
5e-20 67e14 985e15 693e-19 3518437208883201171875e-13
0.500000000000000166533453693773481063544750213623046875 62.5364939768271845828
8.10109172351e-10 1.50000000000000011102230246251565 0.000000000000000000000000000000001""".split()
AWKWARD += ["9355950000000000000." + "0" * 31 + "18446744073709551616" * 12]
# The longest double in full, the largest, and each power of ten.
AWKWARD += [f"{5e-324:.1074f}", f"{1.7976931348623157e308:.0f}", "0." + "0" * 1500 + "1"]
AWKWARD += [f"1e{q}" for q in range(-330, 309)] + [f"7.{'0' * 17}3e{q}" for q in range(-300, 300)]


NUMBERS = {form: spread(form) for form in ("{:.17g}", "{:.9g}", "{:.25e}", "{:.20f}", "{:.1f}")}
NUMBERS |= {"shortest": spread("{!r}", 20_000), "awkward": AWKWARD}
NUMBERS |= {"halfway": list(halfway()), "of every length": list(of_every_length())}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_exact(tmp_path, name):
    """Halfway between two doubles it is the even one."""
    words = [word for word in NUMBERS[name] if word.strip("-.")]
    assert_exact([word for word in words if np.isfinite(float(word))], tmp_path)


@pytest.mark.parametrize("cases", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_no_text_is_misread(tmp_path, cases):
    """Of any text the parser says what a slow reference says, or both refuse it."""
    for text, chunk, zero_based in itertools.product(fuzz_text.CORPUS, (3, 64, 5000), (0, 1)):
        fuzz_text.check(tmp_path / "a.txt", text, chunk, bool(zero_based))
    done, right = fuzz_text.run(tmp_path, seed=cases, cases=cases)
    assert done == cases and 0.25 < right / done < 0.5


# -------------------------------------------------- what is read, and what is refused

WORDED = {"word_labels": True}
TWO = [[2, 0, 4], [0, 5, 0]], [1, -1]
TEXTS = [  # a text, its rows and labels, and how it is read
    (b"\n1 1:2 3:4 # first\n\n# nothing\n-1 2:5e0", TWO, {}),
    (b"1 |f#x 1:2 3:4\n\n-1 |#\t 2:5 \n# none\n", TWO, {}),
    (b"\xef\xbb\xbf1 3:4 1:2 # " + b":" * 99 + b"\n-1 2:5", TWO, {}),
    (b"1\n-1 2:1\n1\n", ([[0, 0], [0, 1], [0, 0]], [1, -1, 1]), {}),
    (b"1 0:7 2:8\n", ([[7, 0, 8]], [1]), {"zero_based": True}),
    (b"1 1:2 2:1e39\n", ([[2, 1e39]], [1]), {}),
    # Zeros are not kept, nor what is one in single precision; the index of a zero counts.
    (b"1 2:3 4:-0.0\n2 3:1e-400 1:4\n", ([[0, 3, 0, 0], [4, 0, 0, 0]], [1, 2]), {}),
    (b"1 |f 2:3 4:0\n", ([[0, 3, 0, 0]], [1]), {"n_jobs": 2}),
    (b"1 1:1e-60 2:3 4:0\n", ([[0, 3, 0, 0]], [1]), {"dtype": np.float32}),
    (b"a 2:3 4:0\nb 1:0." + b"0" * 30 + b"\n", ([[0, 3, 0, 0], [0] * 4], ["a", "b"]), WORDED),
]


@pytest.mark.parametrize(("text", "rows", "options"), TEXTS)
@both_ways
def test_texts_are_the_rows_that_they_say(tmp_path, text, rows, options, cache):
    path = tmp_path / "a.txt"
    path.write_bytes(text)
    X, y = read(path, cache=cache, **options)
    assert (X.toarray().tolist(), y.tolist()) == rows and X.data.all()
    path.write_bytes(b"# nothing\n\n")
    stream = datasets.open_stream(path, cache=cache)
    assert list(stream) == [] and stream.n_rows == 0


WRONG = [  # a text, its wrong line, what is said of it
    (b"1 1:2\n\xef\xbb\xbf2 1:1\n", 2, "the label '\\ufeff2' is not a number"),
    (b"\0\0\0", 1, "is not a number"),
    (b"1e999 1:2\n", 1, "not a finite number of float64"),
    (b"1 3:1e999\n", 1, "not a finite number"),
    (b"1 1:2\n1 1:" + b"3" * 3000 + b"\n", 2, "is longer than 2000 characters"),
    (b"1 1:2\n2 qid:3 1:2\n", 2, "names a query of a ranking"),
    (b"1 1:2\n\n# c\n1 9:1 2:3 9:4\n", 4, "a feature index occurs twice"),
    (b"1 2147483648:4", 1, "is not a whole number from 1 to 2147483647"),
    (b"1 9999999999:4", 1, "feature index 9999999999 is not a whole number"),
    (b"1 0:1\n2 5:1\n", 1, "zero_based (--zero-based)"),
    (b"17:1.5 2:1\n", 1, "the row has no label"),
    (b"1 1:2\n2 |f 1:2\n", 2, "'|f' is not `index:value`"),
    (b"1 |a:2 3:4\n", 1, "'|a:2' is a namespace with a weight"),
    (b"1 2 |f 3:4\n", 1, "'2' is not `index:value` with finite numbers; see weight (--weight)"),
    (b"1 |f 3:4 |g 3:4\n", 1, "'|g' is a further namespace; see hashed (--hashed)"),
    (b"1 'a |f 3:4\n", 1, "is a tag"),
    (b"1 anna:3\n", 1, "'anna:3' is not `index:value` with finite numbers; see hashed (--hashed)"),
    (b"# a comment\n" * 6000 + b"1 | 1:2\n", 6001, "see format (--format vw)"),
    (b"1 3:4 5\n", 1, "'5' is not `index:value`"),
]


@pytest.mark.parametrize(("text", "line", "said"), WRONG, ids=range(len(WRONG)))
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, text, line, said, monkeypatch):
    """In a short text, and in the middle of many pieces; no cache is left."""
    path = tmp_path / "a.svm"
    monkeypatch.setattr(text_module, "_CHUNK", 3000)
    for before, cache in ((0, True), (0, False), (300, True), (300, False)):
        if before and (b"|" in text or b"\xef" in text):
            continue  # the first line decides what the text is
        path.write_bytes(b"1 7:1\n" * before + text)
        with pytest.raises(ValueError, match=re.escape(f"{path}, line {before + line}: ")) as error:
            list(datasets.open_stream(path, cache=cache))
        assert said in str(error.value) and files_in(tmp_path) == ["a.svm"]


def test_limits_of_what_is_read_are_said(tmp_path, monkeypatch, rows):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:2\n1 1:2 2:1e39\n")
    with pytest.raises(ValueError, match=r"line 2: .*finite number of float32"):
        list(datasets.open_stream(path, dtype=np.float32))
    empty = np.empty(0)
    piece = pieces_module.Piece(empty, empty, np.array([0, 2**31 - 1], np.int32), np.ones(1))
    with pytest.raises(ValueError, match=r"4294967294 entries.*block_rows \(--block-rows\)"):
        pieces_module.joined([piece, piece])
    monkeypatch.setattr(text_module, "_LONGEST_LINE", 1000)
    path.write_bytes(b"1 1:2\n" * 50 + b"1 " + b"1" * 3000)
    with pytest.raises(ValueError, match=r"a\.svm, line 51: expected at most 1000 bytes"):
        list(datasets.open_stream(path))
    for cache, said in ((True, r"at least 900, got 3"), (False, r"line \d+: .*from 1 to 3")):
        assert read(rows[0], cache=cache, n_features=1000)[0].shape[1] == 1000
        with pytest.raises(ValueError, match=rf"rows\.svm.*{said}"):
            list(datasets.open_stream(rows[0], cache=cache, n_features=3))


# -------------------------------------------------- packed texts


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rows.svm", text)
    return file.getvalue()


@pytest.mark.parametrize(
    "pack, said",
    [
        (gzip.compress, "gzip: give it the ending .gz"),
        (bz2.compress, "bzip2"),
        (lzma.compress, "xz"),
        (zstd.compress, "zstd"),
        (zipped, "a zip archive or a spreadsheet"),
        (lambda text: pd.DataFrame({"a": [1.0, 2.0]}).to_parquet(), "a table in Parquet"),
    ],
)
def test_what_is_no_text_by_its_first_bytes_is_named(tmp_path, pack, said):
    """A word that begins as one of them is a word."""
    content = b"PAR1,BZhou\n1,2\n0,3\n"
    for name, own in (("rows.svm", {}), ("rows.csv", {"label": "PAR1"})):
        path = tmp_path / name
        path.write_bytes(pack(content))
        with pytest.raises(ValueError, match=rf"{name}: by its first bytes it is .*{said}"):
            datasets.open_stream(path, **own)
    path.write_bytes(content)
    assert sum(len(y) for _, y in datasets.open_stream(path, label="PAR1")) == 2


PACKERS = {"bz2": bz2.compress, "XZ": lzma.compress, "gz": gzip.compress, "zst": zstd.compress}
DAMAGED = {  # what follows the first stream -> that, damaged
    "its first bit": lambda more: bytes([more[0] ^ 1]) + more[1:],
    "a bit in its middle": lambda more: flip(more, len(more) // 2),
    "its first bytes only": lambda more: more[:2],
    "its last byte": lambda more: more[:-1],
    "garbage behind": lambda more: more + b"garbage",
    "a text that is not packed": lambda more: b"1 1:2\n" * 1000,
}


def flip(content, at):
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


@pytest.mark.parametrize("end", PACKERS)
def test_packed_texts_in_several_streams_and_their_damages(tmp_path, end, monkeypatch):
    path, pack = tmp_path / f"a.svm.{end}", PACKERS[end]
    first, more = pack(b"1 1:2\n" * 1000), pack(b"2 1:3\n" * 1000)
    path.write_bytes(first + more)
    assert read(path)[0].sum() == 5000
    for damage in DAMAGED:
        if end == "zst" and damage != "its last byte":
            continue
        path.write_bytes(first + DAMAGED[damage](more))
        for cache in (False, True):
            with pytest.raises(datasets.CorruptFile, match=r"a\.svm\..*expected a whole file"):
                list(datasets.open_stream(path, cache=cache))
    assert not list(tmp_path.glob(".*"))
    if end in ("XZ", "gz"):  # zeros may fill up, also more than are read at once
        for zeros in (4, 12, 1 << 18):
            path.write_bytes(first + bytes(zeros) + more + bytes(zeros))
            assert read(path, cache=False)[0].sum() == 5000
    elif end == "zst":
        monkeypatch.setitem(sys.modules, "backports.zstd", None)
        with pytest.raises(ImportError, match=r"a\.svm\.zst: .*backports\.zstd"):
            datasets.open_stream(path)


# -------------------------------------------------- blocks, threads, width


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """A file of many pieces, and its rows."""
    monkeypatch.setattr(text_module, "_CHUNK", 3000)
    monkeypatch.setattr(text_module, "_SHARED", 1)
    monkeypatch.setattr(cache_module, "_PIECE", 3000)
    X, y = random_rows()
    path = tmp_path / "rows.svm"
    path.write_bytes(exact_text(X, y))
    return path, X, y


def end_of_bases(array):
    """What the memory of an array belongs to."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


@both_ways
@pytest.mark.parametrize("block_rows", [1, 7, 100, 403, 10_000])
def test_blocks_of_any_size_are_the_file_from_any_row_on(rows, block_rows, cache):
    path, X, y = rows
    stream = datasets.open_stream(path, block_rows, cache=cache)
    for _ in range(2):
        blocks = list(stream)
        assert [len(b) for _, b in blocks[:-1]] == [block_rows] * (len(blocks) - 1)
        for block, labels in blocks:
            assert block.format == "csr" and block.dtype == labels.dtype == np.float64
            assert block.indices.dtype == block.indptr.dtype == np.int32
            assert block.shape == (len(labels), X.shape[1])
            for array in (block.data, block.indices, labels):  # nothing larger is kept in memory
                assert array.flags.writeable and end_of_bases(array).nbytes == array.nbytes
        assert_same(whole(blocks), (X, y))
        block.data[:], labels[:] = 7, 7  # and is the caller's
    assert (stream.n_rows, stream.n_features) == X.shape
    got, _ = read(path, dtype=np.float32, cache=cache)
    np.testing.assert_array_equal(got.data, X.data.astype(np.float32))
    for start in (1, 100, 250, 402):
        rest = datasets.open_stream(path, block_rows, cache, start_row=start)
        assert_same(whole(rest), (X[start:], y[start:]))
        later = stream.skip(start // 2).skip(start - start // 2)
        assert later.start_row == start
        assert_same(whole(later), (X[start:], y[start:]))
    assert list(stream.skip(403)) == list(stream.skip(1000)) == []
    for wrong in (-1, 1.5):
        with pytest.raises(ValueError, match="rows: expected a whole number from 0, got"):
            stream.skip(wrong)


@pytest.mark.parametrize("n_jobs", [2, 5])
@pytest.mark.parametrize("chunk", [50, 2000])  # shorter and longer than a line
def test_threads_give_the_same_rows_and_the_same_errors(rows, n_jobs, chunk, monkeypatch):
    path, X, y = rows
    monkeypatch.setattr(text_module, "_CHUNK", chunk)
    assert_same(read(path, cache=False, n_jobs=n_jobs), (X, y))
    with open(path, "ab") as file:
        file.write(b"1 1:x\n" + b"1 1:y\n" * 5000)
    with pytest.raises(ValueError, match=r"line 404: '1:x' is not"):
        list(datasets.open_stream(path, cache=False, n_jobs=n_jobs))


# -------------------------------------------------- the cache


def cache_of(path):
    return path.with_name(path.name + ".ofscache")


@pytest.fixture
def parses(monkeypatch):
    """The numbers of bytes that were parsed."""
    calls = []
    monkeypatch.setattr(text_module, "parse_rows", lambda *a: calls.append(a[1]) or parse_rows(*a))
    return calls


def test_text_is_parsed_once_also_to_find_its_width(rows, parses, tmp_path):
    path, X, y = rows
    stream = datasets.open_stream(path)
    assert (stream.cache_path, stream.cache_bytes) == (cache_of(path), 0)
    assert (stream.n_rows, stream.n_features) == X.shape
    for _ in range(3):
        assert_same(read(path), (X, y))
    os.utime(path)  # what is only touched is read once more, not parsed
    assert_same(read(path), (X, y))
    assert len(parses) > 2 and sum(parses) == path.stat().st_size
    assert stream.cache_bytes == cache_of(path).stat().st_size
    for folder, value in (("x", 2), ("y", 3)):  # texts of one name have caches of their own
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.svm").write_text(f"1 1:{value}\n")
        assert read(tmp_path / folder / "t.svm", cache=tmp_path / "c")[0].sum() == value
    found = [re.sub(r"\.[0-9a-f]{12}\.", ".", name) for name in files_in(tmp_path / "c")]
    assert found == ["t.svm.ofscache"] * 2
    assert datasets.open_stream(path, cache=False).cache_path is None


def test_the_cache_of_another_text_or_of_other_options_is_not_used(rows, parses):
    path, X, y = rows
    list(datasets.open_stream(path))
    before = path.stat()
    path.write_bytes(exact_text(X, -y).replace(b"--", b"-"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert_same(read(path), (X, -y))
    count = len(parses)
    list(datasets.open_stream(path, dtype=np.float32))
    assert len(parses) > count
    assert_same(read(path), (X, -y))


DAMAGES = {
    "first byte": lambda c: flip(c, 0),
    "in the middle": lambda c: flip(c, len(c) // 2),
    "in the list of pieces": lambda c: flip(c, len(c) - 30),
    "last byte": lambda c: flip(c, len(c) - 1),
    "cut short": lambda c: c[:-1000],
    "empty": lambda c: b"",
    "foreign": lambda c: b"SQLite format 3\0" * 100,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(rows, damage, parses):
    path, X, y = rows
    stream = datasets.open_stream(path, 50)
    list(stream)
    right, pieces = cache_of(path).read_bytes(), len(parses)
    for _ in range(2):  # as all that writes it does: by another file
        other = path.with_name("other")
        other.write_bytes(DAMAGES[damage](right))
        os.replace(other, cache_of(path))
        assert_same(whole(stream.skip(111)), (X[111:], y[111:]))
        assert_same(whole(stream), (X, y))
    assert len(parses) == 3 * pieces and cache_of(path).read_bytes() == right


def test_many_readers_at_once_make_one_right_cache(rows):
    path, X, y = rows
    with ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda _: whole(datasets.open_stream(path, 50)), range(6)))
    for result in results:
        assert_same(result, (X, y))
    assert files_in(path.parent) == ["rows.svm", "rows.svm.ofscache"]
