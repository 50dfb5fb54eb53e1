"""The parser of texts: every double exact, nothing misread, nothing that hangs; and its cache."""

import bz2
import gzip
import io
import itertools
import json
import lzma
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import fuzz_text
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from backports import zstd
from fuzz_text import assert_exact, random_doubles

from ofslib import _files, datasets
from ofslib.datasets import cache as cache_module
from ofslib.datasets import pieces as pieces_module
from ofslib.datasets import text as text_module
from ofslib.datasets.compressed import open_text
from ofslib.kernels.numbers import RIGHT
from ofslib.kernels.text import PADDING, parse_rows


def read(path, **options):
    """All rows of a file as (X, y)."""
    X, y = zip(*datasets.open_stream(path, **options), strict=True)
    return sp.vstack(X, format="csr"), np.concatenate(y)


# -------------------------------------------------- numbers


@pytest.mark.parametrize("form", ["{!r}", "{:.17g}", "{:.16e}", "{:.9g}", "{:.18e}", "{:.25e}"])
def test_doubles_of_all_exponents_are_exact(tmp_path, form):
    n = 50_000 if form == "{!r}" else 10_000
    assert_exact([form.format(v) for v in random_doubles(n).tolist()], tmp_path)


@pytest.mark.parametrize("form", ["{!r}", "{:.6g}", "{:.20f}", "{:.16g}", "{:.1f}"])
def test_ordinary_numbers_are_exact(tmp_path, form):
    rng = np.random.default_rng(1)
    values = rng.standard_normal(10_000) * 10.0 ** rng.integers(-6, 9, 10_000)
    assert_exact([form.format(v) for v in values.tolist()], tmp_path)


def test_halfway_between_two_doubles_goes_to_the_even_one(tmp_path):
    """All digits of the middle of two neighbours, and a little more or less."""
    words = []
    for value in np.abs(random_doubles(300, seed=2)).tolist():
        mantissa, exponent = int.from_bytes(struct.pack(">d", value)), 0
        fraction, exponent = mantissa & (2**52 - 1), mantissa >> 52
        twice = 2 * (fraction + (2**52 if exponent else 0)) + 1  # in units of the last place / 2
        power = max(exponent, 1) - 1076
        digits = twice << power if power >= 0 else twice * 5**-power
        places = min(power, 0)
        words += [f"{digits + more}e{places}" for more in (-1, 0, 1)]
    assert_exact([word for word in words if np.isfinite(float(word))], tmp_path)


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


def test_awkward_numbers_are_exact(tmp_path):
    """Ties, subnormals, the ends of the range, and numbers that broke other parsers (Gay 1991;
    Lemire 2021; the test suites of Go, of glibc and of fast_float)."""
    assert_exact(AWKWARD, tmp_path)


def test_whole_and_fraction_of_every_length_are_exact(tmp_path):
    """On both sides of each limit of the fast ways: 8, 15, 16 and 19 digits, with and without."""
    rng = np.random.default_rng(5)
    words = []
    for whole, fraction in itertools.product(range(12), range(24)):
        for digits in (rng.integers(0, 10, whole + fraction), [0] * 22 + [9] * 20, [9] * 40):
            text = "".join(map(str, digits[: whole + fraction]))
            words += [sign + text[:whole] + "." + text[whole:] for sign in ("", "-")]
            words += [sign + text[:whole] for sign in ("", "-")]
    assert_exact([word for word in words if word.strip("-.")], tmp_path)


# -------------------------------------------------- a slow reference


def test_no_text_is_misread(tmp_path):
    """Of any text the parser says what a slow reference says, or both refuse it."""
    for text, chunk, zero_based in itertools.product(fuzz_text.CORPUS, (3, 64, 5000), (0, 1)):
        fuzz_text.check(tmp_path / "a.txt", text, chunk, bool(zero_based))
    done, right = fuzz_text.run(tmp_path, seed=0, cases=1000)
    assert done == 1000 and 250 < right < 500


# -------------------------------------------------- what is refused, and how


WRONG = {
    b"1 1:2\n\xef\xbb\xbf2 1:1\n": (2, "the label '\\ufeff2' is not a number"),
    b"True\nFalse\n": (1, "the label 'True' is not a number"),
    b"1\nTrue\n": (2, "the label 'True' is not a number"),
    b"nan 1:2\n": (1, "the label 'nan' is not a number"),
    b"1e999 1:2\n": (1, "not a finite number of float64 (at most 1.8e+308)"),
    b"1 1:2\n1 1:" + b"3" * 3000 + b"\n": (2, "is longer than 2000 characters"),
    b"1 qid:3 1:2\n": (1, "names a query of a ranking, which is not read"),
    b"1 1:2\n\n# c\n1 2:3 2:4\n": (4, "a feature index occurs twice"),
    b"1 9:1 2:3 9:4\n": (1, "a feature index occurs twice"),
    b"1 9223372036854775809:1\n": (1, "is not a whole number from 1 to 2147483647. The line"),
    b"1 1:2\n2 |f 1:2\n": (2, "'|f' is not `index:value`"),
    b"17:1.5 2:1\n": (1, "the row has no label: write one in front, 0 if"),
    b"|f 1:2\n": (1, "the row has no label: write one in front"),
    b"1 0:1\n2 5:1\n": (1, "from 1 to 2147483647; see zero_based (--zero-based). The"),
    b"1 |a:2 3:4\n": (1, "'|a:2' is a namespace with a weight, which is not read"),
    b"1 2 |f 3:4\n": (1, "'2' is not `index:value` with finite numbers; see weight (--weight). T"),
    b"1 |f 3:4 |g 3:4\n": (1, "'|g' is a further namespace; see hashed (--hashed)"),
    b"1 'a |f 3:4\n": (1, "is a tag, which is left out only with weight (--weight). The line"),
    b"1 3:nan\n": (1, "'3:nan' is not `index:value` with finite numbers. The line"),
    b"1 anna:3\n": (1, "'anna:3' is not `index:value` with finite numbers; see hashed (--hash"),
    b"1 | 1:2\n2 1:2\n": (2, "'1:2' is not `index:value`"),
    b"1 | 1:2\n2 |f 1:2 #\n": (2, "'#' is not `index:value`"),
}


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("cache", [True, False])
def test_what_is_wrong_is_named_with_file_and_line(tmp_path, text, cache):
    path = tmp_path / "a.svm"
    path.write_bytes(text)
    line, said = WRONG[text]
    with pytest.raises(ValueError) as error:
        list(datasets.open_stream(path, cache=cache))
    assert f"{path}, line {line}: " in str(error.value) and said in str(error.value)


def test_a_byte_order_mark_at_the_begin_and_names_with_a_hash_are_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf1 1:2\n-1 2:3")
    X, y = read(path)
    np.testing.assert_array_equal(X.toarray(), [[2, 0], [0, 3]])
    path.write_bytes(b"1 |f#x 1:2 2:4\n-1 |#\t2:3\n# none\n")
    X, y = read(path)
    np.testing.assert_array_equal(X.toarray(), [[2, 4], [0, 3]])
    np.testing.assert_array_equal(y, [1, -1])


def test_what_single_precision_cannot_hold_is_an_error(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:2\n1 1:2 2:1e39\n")
    with pytest.raises(ValueError, match=r"line 2: .*finite number of float32 \(at most 3\.4e\+38"):
        list(datasets.open_stream(path, dtype=np.float32))
    assert read(path)[0].max() == 1e39


def test_a_block_of_too_many_entries_says_how_to_read_fewer():
    empty = np.empty(0)
    piece = pieces_module.Piece(empty, empty, np.array([0, 2**31 - 1], np.int32), np.ones(1))
    with pytest.raises(ValueError, match=r"fewer rows at once by block_rows \(--block-rows\)"):
        pieces_module.joined([piece, piece])


def test_a_line_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "_CHUNK", 100)
    monkeypatch.setattr(text_module, "_LONGEST_LINE", 1000)
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:2\n" * 50 + b"1 " + b"1" * 3000)
    with pytest.raises(ValueError, match=r"a\.svm, line 51: expected at most 1000 bytes in a line"):
        list(datasets.open_stream(path))


@pytest.mark.parametrize("line", [b"1 | 1:2\n", b"1| 1:2\n", b"1 2.5 |f 1:2\n"])
def test_a_bar_that_comes_late_hints_at_the_format(tmp_path, line):
    path = tmp_path / "a.txt"
    path.write_bytes(b"# a comment\n" * 6000 + line)
    with pytest.raises(ValueError, match=r"line 6001: .* is not .*see format \(--format vw\)"):
        list(datasets.open_stream(path))
    weight = True if b"2.5" in line else None
    ((X, *_),) = datasets.open_stream(path, format="vw", weight=weight)
    assert X.toarray().tolist() == [[2]]


def test_rows_that_are_left_out_are_counted_from_0(rows):
    stream = datasets.open_stream(rows, start_row=3)
    for wrong in (-1, 1.5, "2"):
        with pytest.raises(ValueError, match="rows: expected a whole number from 0, got"):
            stream.skip(wrong)
    assert stream.skip(0).start_row == 3 and list(stream.skip(500)) == []


def test_impossible_options_are_named(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:2\n")
    options = [("cache", None), ("cache", 3), ("dtype", "x"), ("zero_based", "no")]
    for wrong in [
        {name: value} for name, value in options + [("n_jobs", n) for n in (0, 1.5, "2")]
    ]:
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}: expected .* got"):
            datasets.open_stream(path, **wrong)


@pytest.mark.parametrize("end, pack", [(".gz", gzip), (".bz2", bz2), (".xz", lzma), (".zst", zstd)])
def test_texts_that_are_packed(tmp_path, end, pack):
    path = tmp_path / f"a.svm{end}"
    path.write_bytes(pack.compress(b"1 1:2\n" * 1000))
    assert read(path, cache=False)[0].sum() == 2000
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(datasets.CorruptFile, match=r"a\.svm\..*expected a whole file"):
        list(datasets.open_stream(path, cache=False))


def zipped(text):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("rows.svm", text)
    return file.getvalue()


def in_parquet(_text):
    pytest.importorskip("pyarrow")
    return pd.DataFrame({"a": [1.0, 2.0]}).to_parquet()


@pytest.mark.parametrize(
    "pack, said",
    [
        (gzip.compress, "gzip: give it the ending .gz"),
        (bz2.compress, "bzip2: give it the ending .bz2"),
        (lzma.compress, "xz: give it the ending .xz"),
        (zstd.compress, "zstd: give it the ending .zst"),
        (lambda text: text.decode().encode("utf-16"), "UTF-16: save it in UTF-8"),
        (lambda text: b"\xfe\xff" + text.decode().encode("utf-16-be"), "UTF-16: save it"),
        (zipped, "a zip archive or a spreadsheet: unpack it, or save it as a"),
        (in_parquet, "a table in Parquet: give it the ending .parquet"),
    ],
)
@pytest.mark.parametrize("name", ["rows.svm", "rows.csv"])
def test_what_is_no_text_by_its_first_bytes_is_named(tmp_path, name, pack, said):
    """A word that begins as one of them is a word."""
    content, own = b"1 1:2\n-1 2:3\n", {}
    if name == "rows.csv":
        content, own = b"PAR1,BZhou\n1,2\n0,3\n", {"label": "PAR1"}
    (tmp_path / name).write_bytes(pack(content))
    with pytest.raises(ValueError, match=rf"{name}: by its first bytes it is .*{said}"):
        datasets.open_stream(tmp_path / name, **own)
    (tmp_path / name).write_bytes(content)
    assert sum(len(y) for _, y in datasets.open_stream(tmp_path / name, **own)) == 2


STREAMS = [("bz2", bz2.compress), ("xz", lzma.compress), ("gz", gzip.compress)]
DAMAGED = {  # what follows the first stream -> that, damaged
    "its first bit": lambda more: bytes([more[0] ^ 1]) + more[1:],
    "a bit in its middle": lambda more: (
        more[: len(more) // 2] + bytes([more[len(more) // 2] ^ 1]) + more[len(more) // 2 + 1 :]
    ),
    "its first bytes only": lambda more: more[:2],
    "its last byte": lambda more: more[:-1],
    "garbage behind": lambda more: more + b"garbage",
    "a text that is not packed": lambda more: b"1 1:2\n" * 1000,
}


@pytest.mark.parametrize("damage", DAMAGED)
@pytest.mark.parametrize("end, pack", STREAMS)
def test_a_damaged_later_stream_is_no_end_of_the_file(tmp_path, end, pack, damage):
    path = tmp_path / f"a.svm.{end}"
    first, more = pack(b"1 1:2\n" * 1000), pack(b"2 1:3\n" * 1000)
    path.write_bytes(first + more)
    assert read(path)[0].sum() == 5000
    path.write_bytes(first + DAMAGED[damage](more))
    for cache in (False, True):
        with pytest.raises(datasets.CorruptFile, match=r"a\.svm\..*expected a whole file"):
            list(datasets.open_stream(path, cache=cache))


def test_zeros_may_fill_up_what_is_packed(tmp_path):
    for end, pack in STREAMS[1:]:
        path, one = tmp_path / f"a.svm.{end}", pack(b"1 1:2\n" * 10)
        for zeros in (4, 12, 1 << 18):  # also more than are read at once
            path.write_bytes(one + bytes(zeros) + one + bytes(zeros))
            assert read(path, cache=False)[0].sum() == 40


def test_a_stream_of_bz2_may_be_read_in_any_parts(tmp_path):
    """Also in smaller ones than it unpacks to; the file that was given stays open."""
    raw = np.random.default_rng(0).bytes(300_000)
    for name, pack in (("a.bz2", bz2.compress), ("a.XZ", lzma.compress)):
        (tmp_path / name).write_bytes(pack(raw[:200_000]) + pack(b"") + pack(raw[200_000:]))
        with open_text(tmp_path / name) as file:
            assert file.read() == raw
        with open(tmp_path / name, "rb") as packed:
            with open_text(tmp_path / name, packed) as file:
                assert b"".join(iter(lambda: file.read1(999), b"")) == raw
            assert packed.read() == b""


def test_endings_in_capitals_are_unpacked_too(tmp_path):
    for name, options in (("a.svm.GZ", {}), ("a.CSV.Gz", {"label": "y"})):
        text = b"y,a\n1,2\n" if options else b"1 1:2\n"
        (tmp_path / name).write_bytes(gzip.compress(text))
        assert read(tmp_path / name, cache=False, **options)[0].sum() == 2


def test_without_its_package_zst_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "backports.zstd", None)
    (tmp_path / "a.svm.zst").write_bytes(b"")
    with pytest.raises(ImportError, match=r"a\.svm\.zst: .*install the package backports\.zstd"):
        datasets.open_stream(tmp_path / "a.svm.zst")


# -------------------------------------------------- threads, width


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "_CHUNK", 2000)
    monkeypatch.setattr(text_module, "_SHARED", 1)
    monkeypatch.setattr(cache_module, "_PIECE", 9000)
    X = sp.random_array((500, 300), density=0.05, rng=np.random.default_rng(3), format="csr")
    path = tmp_path / "rows.svm"
    lines = []
    for i in range(500):
        own = slice(X.indptr[i], X.indptr[i + 1])
        words = zip(X.indices[own] + 1, X.data[own].tolist(), strict=True)
        lines.append(" ".join([str(i), *(f"{j}:{v!r}" for j, v in words)]) + "\n")
    path.write_text("".join(lines))
    return path


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_threads_give_the_same_rows_and_the_same_errors(rows, n_jobs):
    one, several = read(rows, cache=False), read(rows, cache=False, n_jobs=n_jobs)
    for a, b in (
        (one[0].data, several[0].data),
        (one[0].indices, several[0].indices),
        (one[1], several[1]),
    ):
        np.testing.assert_array_equal(a, b)
    assert one[0].shape == several[0].shape
    with open(rows, "ab") as file:
        file.write(b"1 1:x\n" + b"1 1:y\n" * 5000)
    with pytest.raises(ValueError, match=r"line 501: '1:x' is not"):
        list(datasets.open_stream(rows, cache=False, n_jobs=n_jobs))


@pytest.mark.parametrize("cache", [True, False])
def test_a_text_of_unknown_width_is_parsed_once(rows, monkeypatch, cache):
    chunks = []
    monkeypatch.setattr(text_module, "parse_rows", lambda *a: chunks.append(a[1]) or parse_rows(*a))
    stream = datasets.open_stream(rows, cache=cache)
    assert (stream.n_rows, stream.n_features) == (500, 300)
    assert sum(len(y) for _, y in stream) == 500
    assert len(chunks) > 5 and sum(chunks) == rows.stat().st_size


def test_without_a_cache_size_is_found_without_parsing(tmp_path, monkeypatch):
    monkeypatch.setattr(text_module, "parse_rows", None)
    path = tmp_path / "a.svm"
    for text, size in (
        (b"", (0, 0)),
        (b"# 9:9\n\n \n", (0, 0)),
        (b"1\n", (1, 0)),
        (b"1 9:1 3:2 # 12:1\n\t2 0000000000000007:1", (2, 9)),
        (b"1 | 1:1 # 8:1\n2 # | 9:9\n", (2, 8)),
        (b"1 2147483647:1\n", (1, 2**31 - 1)),
    ):
        path.write_bytes(text)
        stream = datasets.open_stream(path, cache=False)
        assert (stream.n_rows, stream.n_features) == size, text
    path.write_bytes(b"1 0:1 4:2\n")
    assert datasets.open_stream(path, cache=False, zero_based=True).n_features == 5


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_lines_longer_than_a_piece_are_the_same_in_threads(tmp_path, monkeypatch, n_jobs):
    """Where a line is not whole yet, its buffer is not one that a thread still reads."""
    monkeypatch.setattr(text_module, "_CHUNK", 50)
    monkeypatch.setattr(text_module, "_SHARED", 1)
    words = [f"{i} {' '.join(f'{j}:{i}.{j}' for j in range(1, 2 + i % 97))}" for i in range(400)]
    path = tmp_path / "a.svm"
    path.write_text("\n".join(words))
    one, several = (read(path, cache=False, n_jobs=n) for n in (1, n_jobs))
    np.testing.assert_array_equal(one[0].toarray(), several[0].toarray())
    np.testing.assert_array_equal(one[1], np.arange(400))


# -------------------------------------------------- the cache


def test_a_text_replaced_by_one_of_equal_size_and_time_is_read_anew(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:2\n")
    before = path.stat()
    assert read(path)[0].sum() == 2
    path.write_bytes(b"1 1:3\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert read(path)[0].sum() == 3


def test_the_width_that_is_too_small_is_said_with_the_file(rows):
    for cache, said in ((True, r"at least 300, got 3"), (False, r"line \d+: .*from 1 to 3")):
        with pytest.raises(ValueError, match=rf"rows\.svm.*{said}"):
            list(datasets.open_stream(rows, cache=cache, n_features=3))


def test_a_cache_of_a_version_before_is_made_anew(rows):
    """Those up to version 4 hold zeros, and texts that were cut."""
    read(rows)
    path = datasets.open_stream(rows).cache_path
    right = path.read_bytes()
    length, _ = struct.unpack("<II", right[-8:])
    made = json.loads(right[-8 - length : -8])
    assert made["options"][0] == 6
    made["options"][0] = 5
    end = json.dumps(made).encode()
    end += struct.pack("<II", len(end), zlib.crc32(end))
    path.write_bytes(right[: -8 - length] + end)
    assert path.read_bytes() != right
    read(rows)
    assert path.read_bytes() == right


def test_a_text_that_is_only_touched_is_read_once_more_and_not_parsed(rows, monkeypatch):
    read(rows)
    os.utime(rows)
    monkeypatch.setattr(text_module, "parse_rows", None)
    assert len(read(rows)[1]) == 500


@pytest.mark.skipif(os.name != "posix", reason="a limit on descriptors")
def test_blocks_that_are_kept_do_not_use_descriptors_up(rows, monkeypatch):
    import resource

    monkeypatch.setattr(cache_module, "_PIECE", 100)
    stream = datasets.open_stream(rows, 2)
    expected = [(X.toarray(), y.tolist()) for X, y in datasets.open_stream(rows, 2, cache=False)]
    list(stream)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/dev/fd"))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 12, hard))
    try:
        kept = list(stream)
        again = list(stream)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    for got in (kept, again):
        for (X, y), (dense, labels) in zip(got, expected, strict=True):
            np.testing.assert_array_equal(X.toarray(), dense)
            assert y.tolist() == labels


def test_texts_are_read_without_warnings_where_kernels_are_not_compiled(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:12345678.5 2:3\n-1 2:2.2250738585072011e-308\n")
    program = (
        "import sys, numba\nfrom ofslib import datasets\nassert numba.config.DISABLE_JIT\n"
        "for cache in (False, True, True):\n"
        "    [(X, y)] = datasets.open_stream(sys.argv[1], cache=cache)\n"
        "    print(X.data.tolist())\n"
    )
    folder = str(Path(datasets.__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": folder, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-W", "error::RuntimeWarning", "-c", program, str(path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[12345678.5, 3.0, 2.225073858507201e-308]\n" * 3


def test_texts_of_one_name_have_caches_of_their_own(tmp_path, monkeypatch):
    for folder, value in (("x", 2), ("y", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "t.svm").write_text(f"1 1:{value}\n")
        assert read(tmp_path / folder / "t.svm", cache=tmp_path / "c")[0].sum() == value
    assert len(list((tmp_path / "c").iterdir())) == 2
    monkeypatch.setattr(text_module, "parse_rows", None)
    assert read(tmp_path / "x" / "t.svm", cache=tmp_path / "c")[0].sum() == 2


def test_a_stream_says_where_its_cache_lies_and_how_large_it_is(rows, tmp_path):
    stream = datasets.open_stream(rows)
    assert (stream.cache_path, stream.cache_bytes) == (tmp_path / "rows.svm.ofscache", 0)
    list(stream)
    assert stream.cache_bytes == stream.cache_path.stat().st_size > 0
    assert f"rows.svm.ofscache of {stream.cache_bytes:,} bytes" in repr(stream)
    elsewhere = datasets.open_stream(rows, cache=tmp_path / "c")
    assert elsewhere.cache_path.parent == tmp_path / "c" and not (tmp_path / "c").exists()
    stream = datasets.open_stream(rows, cache=False)
    assert (stream.cache_path, stream.cache_bytes) == (None, 0) and "cache" not in repr(stream)


def test_what_is_written_into_a_block_stays_there(rows):
    stream = datasets.open_stream(rows, 500)
    [(X, y)] = stream
    X.data[:], y[:] = 7, 7
    assert read(rows)[1].tolist() == list(range(500))


def test_a_part_of_a_killed_process_is_removed_and_that_of_a_living_one_is_kept(tmp_path):
    path = tmp_path / "a.svm"
    path.write_bytes(b"1 1:2\n")
    program = (
        "import sys\nfrom ofslib._files import whole_file\n"
        "with whole_file(sys.argv[1]) as file:\n"
        "    print('writing', flush=True)\n    sys.stdin.readline()\n    file.write(b'done')\n"
    )
    target = datasets.open_stream(path).cache_path
    root = {**os.environ, "PYTHONPATH": str(Path(datasets.__file__).parents[2])}
    child = subprocess.Popen(
        [sys.executable, "-c", program, str(target)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=root,
    )  # fmt: skip
    with child:
        assert child.stdout.readline() == b"writing\n"
        read(path)
        assert len(list(tmp_path.glob(".*.part"))) == 1, "a living process has it"
        child.kill()
    target.unlink()
    _files._CLEANED.clear()  # as in another process
    read(path)
    assert list(tmp_path.glob(".*.part")) == []


def test_the_kernel_says_nothing_is_wrong_of_what_is_right():
    text = b"1 1:2\n"
    array = np.frombuffer(bytearray(text + bytes(PADDING)), np.uint8)
    limits = np.uint64(1), np.uint64(9), np.uint64(0)
    n, nnz, ascend, _, fault = parse_rows(array, len(text), False, *limits, False, False)
    assert (n, nnz, ascend, fault[0], fault[2]) == (1, 1, True, RIGHT, 1)
