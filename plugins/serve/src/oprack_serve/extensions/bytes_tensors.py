"""Tensors of datatype BYTES: NumPy arrays of `bytes` objects. Each goes as its length, in four bytes, and itself."""

from __future__ import annotations

import struct
from itertools import chain
from typing import Any

import numpy as np

from oprack_serve.errors import RequestError

_LENGTH = struct.Struct("<I")


def to_binary(array: np.ndarray) -> bytes:
    """The elements one after the other, each behind its length."""
    return b"".join(chain.from_iterable((_LENGTH.pack(len(e)), e) for e in array.reshape(-1)))


def from_binary(name: str, data: memoryview, shape: tuple[int, ...], count: int) -> np.ndarray:
    """The array of such bytes. Raises RequestError where they do not hold `count` elements."""
    if 4 * count > len(data):  # before memory is taken for what the shape announces
        raise RequestError(400, f"input {name!r}: {len(data)} bytes are too few for {count} elements of BYTES")
    found = np.empty(count, object)
    at = 0
    for i in range(count):
        end = at + 4
        if end <= len(data):
            at, end = end, end + _LENGTH.unpack_from(data, at)[0]
        if end > len(data):
            raise RequestError(400, f"input {name!r}: its bytes end within element {i} of {count}")
        found[i] = bytes(data[at:end])
        at = end
    if at != len(data):
        raise RequestError(400, f"input {name!r}: {len(data) - at} bytes are left behind {count} elements of BYTES")
    return found.reshape(shape)


def of_strings(elements: list[Any], shape: tuple[int, ...]) -> np.ndarray:
    """The array of strings, in UTF-8, or of bytes."""
    found = np.empty(len(elements), object)
    found[:] = [e if isinstance(e, bytes) else e.encode("utf-8", "surrogatepass") for e in elements]
    return found.reshape(shape)


def to_strings(array: np.ndarray) -> list[str]:
    """The elements as text. Raises RequestError where one is no UTF-8."""
    try:
        return [element.decode() for element in array.reshape(-1)]
    except UnicodeDecodeError:
        raise RequestError(400, "an element of the answer is no text in UTF-8; ask for binary data") from None
