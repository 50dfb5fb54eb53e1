"""Bytes of a text many at a time, and bits of a number: what a processor does at once."""

import numpy as np

from ofslib._jit import instruction, llvm

_U = np.uint64
_BYTE, _WORD, _WIDE = (llvm.IntType(bits) for bits in (8, 64, 128))
_BYTES = llvm.VectorType(_BYTE, 64)
_DEFINED = llvm.Constant(llvm.IntType(1), 0)  # the result for 0 is 64


def _loaded(builder, text, i, kind):
    place = builder.bitcast(builder.gep(text, [i]), kind.as_pointer())
    return builder.load(place, align=1)


def _all(byte):
    return llvm.Constant(_BYTES, [byte] * 64)


def _no_digits(builder, text, i):
    above = builder.sub(_loaded(builder, text, i, _BYTES), _all(48))
    return builder.bitcast(builder.icmp_unsigned(">", above, _all(9)), _WORD)


def _among(*wanted):
    def build(builder, text, i):
        found, read = None, _loaded(builder, text, i, _BYTES)
        for byte in wanted:
            equal = builder.icmp_unsigned("==", read, _all(byte))
            found = builder.or_(found, equal) if found else equal
        return builder.bitcast(found, _WORD)

    return build


def _upper(builder, a, b):
    product = builder.mul(builder.zext(a, _WIDE), builder.zext(b, _WIDE))
    return builder.trunc(builder.lshr(product, llvm.Constant(_WIDE, 64)), _WORD)


def _number(raw):
    return _U(int.from_bytes(raw.tobytes(), "little"))


def _bits(found):
    return _number(np.packbits(found, bitorder="little"))


@instruction(lambda builder, text, i: _loaded(builder, text, i, _WORD))
def word(text, i):
    """The eight bytes from i on, the first one lowest."""
    return _number(text[i : i + _U(8)])


@instruction(_no_digits)
def no_digits(text, i):
    """Which of the 64 bytes from i on are no digits: the lowest bit is of the first one."""
    return _bits(text[i : i + _U(64)] - np.uint8(48) > 9)


@instruction(_among(*b":"))
def colons(text, i):
    """Which of the 64 bytes from i on are colons."""
    return _bits(text[i : i + _U(64)] == 58)


@instruction(_among(*b"\n"))
def newlines(text, i):
    """Which of the 64 bytes from i on end a line."""
    return _bits(text[i : i + _U(64)] == 10)


@instruction(_among(*b":\n#|"))
def marks(text, i):
    """Which of the 64 bytes from i on are colons, ends of lines, hashes or bars."""
    return _bits(np.isin(text[i : i + _U(64)], list(b":\n#|")))


@instruction(lambda builder, a: builder.cttz(a, _DEFINED))
def low_zeros(a):
    """How many zeros the bits of a number end with."""
    a = int(a)
    return _U((a & -a).bit_length() - 1 if a else 64)


@instruction(lambda builder, a: builder.ctlz(a, _DEFINED))
def high_zeros(a):
    """How many zeros the bits of a number begin with."""
    return _U(64 - int(a).bit_length())


@instruction(lambda builder, a: builder.ctpop(a))
def ones(a):
    """How many bits of a number are set."""
    return _U(int(a).bit_count())


@instruction(_upper)
def upper(a, b):
    """The upper half of a * b."""
    return _U(int(a) * int(b) >> 64)
