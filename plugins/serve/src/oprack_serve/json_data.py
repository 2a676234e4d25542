"""JSON from outside: parsed, and its numbers as arrays; and arrays as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import numpy as np
import orjson

from oprack_serve.errors import RequestError
from oprack_serve.extensions.bytes_tensors import of_strings, to_strings

SLICE = 1 << 15

_KINDS: dict[str, set[type]] = {"b": {bool}, "i": {int}, "u": {int}, "O": {str}}


def to_json(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """The value as JSON without spaces. default: as json.dumps has it."""
    try:
        return orjson.dumps(value, default)
    except orjson.JSONEncodeError:  # half of a pair of surrogates, and numbers beyond 64 bits
        return json.dumps(value, separators=(",", ":"), default=default).encode()


def array_to_json(array: np.ndarray) -> Iterator[bytes]:
    """The elements as a flat list, in pieces that take a millisecond each: other threads go on between them."""
    flat = np.ascontiguousarray(array).reshape(-1)
    if flat.dtype == object:
        yield orjson.dumps(to_strings(flat))
        return
    yield b"["
    for start in range(0, flat.size, SLICE):
        piece = flat[start : start + SLICE]
        if piece.dtype.kind == "f" and not np.isfinite(piece).all():
            text = json.dumps(piece.tolist()).encode()  # orjson writes null for NaN
        else:
            text = orjson.dumps(piece, option=orjson.OPT_SERIALIZE_NUMPY)
        yield b"," + text[1:-1] if start else text[1:-1]
    yield b"]"


def parse_json(text: memoryview) -> Any:
    """The value. Raises RequestError for what is no JSON in UTF-8, and for lists nested deeper than Python follows."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        pass
    try:  # NaN and infinity, which Python and Triton write, numbers beyond 64 bits, deep lists; and else the reason
        return json.loads(str(text, "utf-8"))
    except RecursionError:
        raise RequestError(400, "the JSON of the request is nested too deep") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise RequestError(400, f"the request is no JSON in UTF-8: {str(error)[:200]}") from None


def array_from_json(name: str, data: Any, dtype: np.dtype, shape: tuple[int, ...], count: int) -> np.ndarray:
    """Numbers of a list, flat or nested as the shape is. Raises RequestError for what dtype and shape do not allow."""
    if not isinstance(data, list):
        raise RequestError(400, f"input {name!r} has no data; expected a JSON list, or parameter binary_data_size")
    flat = data
    for _ in range(max(len(shape) - 1, 0)):
        if not flat or type(flat[0]) is not list:
            break
        if set(map(type, flat)) != {list}:
            raise RequestError(400, f"input {name!r}: lists and numbers are mixed in its data")
        flat = list(chain.from_iterable(flat))
    if len(flat) != count:
        raise RequestError(400, f"input {name!r}: {len(flat)} elements; shape {list(shape)} has {count}")
    kinds = set(map(type, flat))
    allowed = _KINDS.get(dtype.kind, {int, float})
    if not kinds <= allowed:
        strange = ", ".join(sorted(kind.__name__ for kind in kinds - allowed))
        raise RequestError(400, f"input {name!r}: its data holds {strange}; expected {dtype.name}")
    if dtype.kind == "O":
        return of_strings(flat, shape)
    return _of_numbers(name, flat, dtype).reshape(shape)


def _of_numbers(name: str, flat: list[Any], dtype: np.dtype) -> np.ndarray:
    try:
        if dtype.kind not in "iu":
            with np.errstate(over="ignore"):
                return np.array(flat, np.float64 if dtype.kind != "b" else dtype).astype(dtype)
        whole = np.array(flat, np.int64)
        limits = np.iinfo(dtype)
        if flat and not limits.min <= int(whole.min()) <= int(whole.max()) <= limits.max:
            raise OverflowError
        return whole.astype(dtype)
    except OverflowError:
        raise RequestError(400, f"input {name!r}: a number of its data is out of the range of {dtype.name}") from None
