"""Bytes of programs and parameter files, put together by hand from the description of the formats."""

from __future__ import annotations

import struct


def varint(n: int) -> bytes:
    n &= 2**64 - 1
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    return bytes([*out, n])


def number(field: int, value: int) -> bytes:
    """A varint field."""
    return varint(field << 3) + varint(value)


def chunk(field: int, data: bytes | str) -> bytes:
    """A length-delimited field: a message, bytes or text."""
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def single(field: int, value: float) -> bytes:
    """A float32 field."""
    return varint(field << 3 | 5) + struct.pack("<f", value)


def double(field: int, value: float) -> bytes:
    """A float64 field."""
    return varint(field << 3 | 1) + struct.pack("<d", value)


def attr(name: str, kind: int, value: bytes = b"") -> bytes:
    """An attribute of an op, as its field 4."""
    return chunk(4, chunk(1, name) + number(2, kind) + value)


def op(kind: str, *rest: bytes) -> bytes:
    """An op of a block, as its field 4; type is field 3 of it."""
    return chunk(4, chunk(3, kind) + b"".join(rest))


def slot(field: int, name: str, *arguments: str) -> bytes:
    """Inputs (field 1) or outputs (field 2) of an op."""
    return chunk(field, chunk(1, name) + b"".join(chunk(2, a) for a in arguments))


def tensor_var(name: str, dtype: int, dims: tuple[int, ...], *rest: bytes) -> bytes:
    """A LOD_TENSOR variable of a block, as its field 3."""
    desc = number(1, dtype) + b"".join(number(2, d) for d in dims)
    return chunk(3, chunk(1, name) + chunk(2, number(1, 7) + chunk(3, chunk(1, desc))) + b"".join(rest))


def block(idx: int, parent: int, *rest: bytes) -> bytes:
    """A block of a program, as its field 1."""
    return chunk(1, number(1, idx) + number(2, parent) + b"".join(rest))


def tensor_stream(dtype: int, dims: tuple[int, ...], data: bytes) -> bytes:
    """The tensor part of a parameter stream: version, size of the TensorDesc, the TensorDesc, data."""
    desc = number(1, dtype) + b"".join(number(2, d) for d in dims)
    return struct.pack("<Ii", 0, len(desc)) + desc + data


def lod_stream(dtype: int, dims: tuple[int, ...], data: bytes, *levels: list[int]) -> bytes:
    """A LoDTensor stream; levels hold offsets."""
    lod = b"".join(struct.pack(f"<Q{len(level)}Q", 8 * len(level), *level) for level in levels)
    return struct.pack("<IQ", 0, len(levels)) + lod + tensor_stream(dtype, dims, data)


def rows_stream(rows: list[int], height: int, dtype: int, dims: tuple[int, ...], data: bytes) -> bytes:
    """A SelectedRows stream."""
    head = struct.pack(f"<IQ{len(rows)}qq", 0, len(rows), *rows, height)
    return head + tensor_stream(dtype, dims, data)
