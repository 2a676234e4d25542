"""The files of paddle.save, `.pdparams` and `.pdopt`: written as Paddle writes them, and read as data.

They are pickles, and a pickle is a program: whoever unpickles one calls what it names. Here nothing of it is called.
`read` goes through the instructions by `pickletools`, keeps dicts, lists, tuples, text, numbers and arrays, and refuses
every other name. Arrays are made of the bytes that the file has, so a size that it only claims is an error.
"""

from __future__ import annotations

import math
import os
import pickletools
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO, cast

import ml_dtypes
import numpy as np
from oprack.errors import CorruptParameterError, InvalidArgumentError, OversizedTensorError

_DEEPEST = 100
_ARRAY, _DTYPE, _ENCODE, _DICT, _TUPLE, _CLASS, _SCALAR = "array", "dtype", "encode", "dict", "tuple", "class", "scalar"
_BYTES = "bytes"
_NAMES = {
    "numpy.core.multiarray _reconstruct": _ARRAY, "numpy._core.multiarray _reconstruct": _ARRAY,
    "numpy.core.multiarray scalar": _SCALAR, "numpy._core.multiarray scalar": _SCALAR,
    "numpy ndarray": _CLASS, "numpy dtype": _DTYPE, "_codecs encode": _ENCODE, "collections OrderedDict": _DICT,
    "builtins tuple": _TUPLE, "__builtin__ tuple": _TUPLE, "__builtin__ bytes": _BYTES,
}  # fmt: skip
_CODES = frozenset(["b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"])


@dataclass
class _Named:
    """A name that the file asks for; it stands for what is known of it, and is never looked up."""

    kind: str


@dataclass
class _Parts:
    """What the file builds in steps: an array or a dtype."""

    kind: str
    given: tuple[Any, ...]
    state: tuple[Any, ...] = field(default=())


class _Mark:
    """Where the items of a list, a dict or a tuple begin."""


class _Bounded:
    """A file that is asked for no more bytes than it has left: instructions claim sizes, for which memory is taken."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, here = file, file.tell()
        self._end = file.seek(0, os.SEEK_END)
        file.seek(here)

    def read(self, size: int) -> bytes:
        return self._file.read(min(size, self._end - self._file.tell()))

    def readline(self) -> bytes:
        return self._file.readline()


def read(file: BinaryIO, name: str) -> Any:
    """What a file of paddle.save holds.

    Args:
        file: The file, at its beginning.
        name: Its name, for messages.

    Returns:
        Dicts, lists, tuples, text, numbers and NumPy arrays.

    Raises:
        CorruptParameterError: It is no pickle, or asks for something else; OversizedTensorError when an array claims
            another size than its bytes have.
    """
    machine = _Machine(name)
    try:
        for opcode, argument, _ in pickletools.genops(cast("BinaryIO", _Bounded(file))):
            machine.step(opcode.name, argument)
        return machine.result()
    except (ValueError, TypeError, IndexError, KeyError, struct.error, RecursionError) as error:
        if isinstance(error, CorruptParameterError):
            raise
        raise CorruptParameterError(f"{name!r} is no file of paddle.save, or it was altered: {error}") from error


class _Machine:
    """A pickle's stack, on which nothing but data is put."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def step(self, code: str, argument: Any) -> None:
        if code in _VALUES:
            self._stack.append(_VALUES[code](argument))
        elif code in _STEPS:
            _STEPS[code](self, argument)
        elif code not in ("PROTO", "FRAME", "STOP"):
            raise CorruptParameterError(f"{self._name!r} has the instruction {code}, which no file of paddle.save has")

    def result(self) -> Any:
        if len(self._stack) != 1:
            raise CorruptParameterError(f"{self._name!r} ends with {len(self._stack)} values; expected one")
        return self._finished(self._stack[0], {}, 0)

    def _items(self) -> list[Any]:
        at = max(i for i, value in enumerate(self._stack) if isinstance(value, _Mark))
        found = self._stack[at + 1 :]
        del self._stack[at:]
        return found

    def put(self, argument: Any) -> None:
        self._memo[len(self._memo) if argument is None else argument] = self._stack[-1]

    def get(self, argument: Any) -> None:
        self._stack.append(self._memo[argument])

    def tuple_of(self, count: int | None) -> None:
        items = self._items() if count is None else self._stack[len(self._stack) - count :]
        if count is not None:
            del self._stack[len(self._stack) - count :]
        self._stack.append(tuple(items))

    def append(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, list):
            raise CorruptParameterError(f"{self._name!r} appends to what is no list")
        target.extend(items)

    def set_items(self, items: list[Any]) -> None:
        target = self._stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise CorruptParameterError(f"{self._name!r} sets items of what is no dict")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, str | int | float | bool | None):
                raise CorruptParameterError(f"{self._name!r} has a key that is no text and no number")
            target[key] = value

    def pop(self, count: int) -> list[Any]:
        found = self._stack[len(self._stack) - count :]
        del self._stack[len(self._stack) - count :]
        return found

    def name(self, asked: str) -> None:
        if asked not in _NAMES:
            raise CorruptParameterError(
                f"{self._name!r} asks for {asked.replace(' ', '.')}, which is not called: files of parameters are read "
                "as data. In Paddle, save arrays, numbers, text, and dicts and lists of them"
            )
        self._stack.append(_Named(_NAMES[asked]))

    def reduce(self) -> None:
        named, given = self.pop(2)
        if not isinstance(named, _Named) or not isinstance(given, tuple):
            raise CorruptParameterError(f"{self._name!r} calls what is no name")
        if named.kind == _ENCODE and len(given) == 2 and given[1] == "latin1" and isinstance(given[0], str):
            self._stack.append(given[0].encode("latin1"))
        elif named.kind in (_DICT, _BYTES) and not given:
            self._stack.append({} if named.kind == _DICT else b"")
        elif named.kind == _TUPLE and len(given) == 1 and isinstance(given[0], tuple | list):
            self._stack.append(tuple(given[0]))
        elif named.kind in (_ARRAY, _DTYPE, _SCALAR):
            self._stack.append(_Parts(named.kind, given))
        else:
            raise CorruptParameterError(f"{self._name!r} calls {named.kind} with something else than its parts")

    def build(self) -> None:
        parts, state = self.pop(2)
        if not isinstance(parts, _Parts) or not isinstance(state, tuple):
            raise CorruptParameterError(f"{self._name!r} sets the state of what is neither an array nor a dtype")
        parts.state = state
        self._stack.append(parts)

    def _finished(self, value: Any, done: dict[int, Any], depth: int) -> Any:
        """The value with its arrays; what is in it twice is made once."""
        if depth > _DEEPEST:
            raise CorruptParameterError(f"{self._name!r} is nested deeper than {_DEEPEST} levels, or contains itself")
        if not isinstance(value, dict | list | tuple | _Parts | _Named | _Mark):
            return value
        if id(value) not in done:
            if isinstance(value, dict):
                done[id(value)] = {k: self._finished(v, done, depth + 1) for k, v in value.items()}
            elif isinstance(value, list | tuple):
                done[id(value)] = type(value)([self._finished(v, done, depth + 1) for v in value])
            elif isinstance(value, _Parts) and value.kind == _ARRAY:
                done[id(value)] = self._array(value.state)
            elif isinstance(value, _Parts) and value.kind == _SCALAR:
                kind, data = value.given
                done[id(value)] = self._array((1, (), kind, False, data))[()]
            else:
                raise CorruptParameterError(
                    f"{self._name!r} holds a name or a dtype; expected arrays, numbers and text"
                )
        return done[id(value)]

    def _array(self, state: tuple[Any, ...]) -> np.ndarray:
        _, shape, kind, fortran, data = state
        if not isinstance(kind, _Parts) or kind.kind != _DTYPE or kind.given[0] not in _CODES:
            raise CorruptParameterError(f"{self._name!r} has an array of another dtype than numbers and bools")
        order = kind.state[1] if len(kind.state) > 1 and kind.state[1] in ("<", ">") else "="
        dtype = np.dtype(kind.given[0]).newbyteorder(order)
        if not all(isinstance(n, int) and n >= 0 for n in shape) or not isinstance(data, bytes):
            raise CorruptParameterError(f"{self._name!r} has an array of the shape {shape!r}")
        if math.prod(shape) * dtype.itemsize != len(data):
            raise OversizedTensorError(
                f"{self._name!r}: an array of the shape {list(shape)} needs {math.prod(shape) * dtype.itemsize} bytes, "
                f"the file has {len(data)}"
            )
        flat = np.frombuffer(data, dtype).astype(dtype.newbyteorder("="))
        return flat.reshape(shape, order="F" if fortran else "C")


def _same(value: Any) -> Any:
    return value


_VALUES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(
        ("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8",
         "SHORT_BINBYTES", "BINBYTES", "BINBYTES8"), _same),
    "NONE": lambda _: None, "NEWTRUE": lambda _: True, "NEWFALSE": lambda _: False, "MARK": lambda _: _Mark(),
    "EMPTY_DICT": lambda _: {}, "EMPTY_LIST": lambda _: [], "EMPTY_TUPLE": lambda _: (),
}  # fmt: skip

_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
    **dict.fromkeys(("MEMOIZE", "BINPUT", "LONG_BINPUT"), _Machine.put),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _Machine.get),
    "TUPLE": lambda m, _: m.tuple_of(None), "TUPLE1": lambda m, _: m.tuple_of(1),
    "TUPLE2": lambda m, _: m.tuple_of(2), "TUPLE3": lambda m, _: m.tuple_of(3),
    "APPEND": lambda m, _: m.append(m.pop(1)), "APPENDS": lambda m, _: m.append(m._items()),
    "SETITEM": lambda m, _: m.set_items(m.pop(2)), "SETITEMS": lambda m, _: m.set_items(m._items()),
    "STACK_GLOBAL": lambda m, _: m.name(" ".join(map(str, m.pop(2)))), "GLOBAL": lambda m, asked: m.name(asked),
    "REDUCE": lambda m, _: m.reduce(), "BUILD": lambda m, _: m.build(),
}  # fmt: skip


def write(value: Any, file: BinaryIO) -> None:
    """Write data as a pickle that Paddle's own load reads.

    Args:
        value: Dicts, lists, tuples, text, numbers, None and NumPy arrays.
        file: Where it goes.

    Raises:
        InvalidArgumentError: There is something else in it, or it is nested deeper than 100 levels.
    """
    file.write(b"\x80\x04")
    _write(value, file, 0)
    file.write(b".")


def _write(value: Any, file: BinaryIO, depth: int) -> None:
    if depth > _DEEPEST:
        raise InvalidArgumentError(f"save: nested deeper than {_DEEPEST} levels, or contains itself; expected fewer")
    if isinstance(value, dict):
        file.write(b"}(")
        for key, item in value.items():
            _write(key, file, depth + 1)
            _write(item, file, depth + 1)
        file.write(b"u")
    elif isinstance(value, list | tuple):
        file.write(b"](" if isinstance(value, list) else b"(")
        for item in value:
            _write(item, file, depth + 1)
        file.write(b"e" if isinstance(value, list) else b"t")
    elif isinstance(value, np.ndarray | np.generic):
        _write_array(np.asarray(value), file)
    else:
        file.write(_atom(value))


def _atom(value: Any) -> bytes:
    """The instruction of a number, a text or None."""
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        if len(data) < 256:
            return b"\x8a" + bytes([len(data)]) + data
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogatepass")
        return b"X" + struct.pack("<I", len(data)) + data
    if isinstance(value, bytes):
        return b"\x8e" + struct.pack("<Q", len(value)) + value
    raise InvalidArgumentError(
        f"save: got a value of {type(value).__name__}; expected tensors, arrays, numbers, text, and dicts and lists "
        "of them"
    )


def _write_array(array: np.ndarray, file: BinaryIO) -> None:
    """An array in the words of NumPy 1, which Paddle 2.6 is built for; bfloat16 goes as the uint16 of its bits."""
    if array.dtype == ml_dtypes.bfloat16:
        array = array.view(np.uint16)
    code = array.dtype.str[1:]
    if code not in _CODES:
        raise InvalidArgumentError(f"save: got an array of {array.dtype}; expected numbers or bools")
    array = np.asarray(array, array.dtype.newbyteorder("<"), order="C")
    file.write(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R(K\x01")
    _write(tuple(int(n) for n in array.shape), file, 0)
    file.write(b"cnumpy\ndtype\n" + _atom(code) + b"\x89\x88\x87R(K\x03" + _atom("<"))
    file.write(b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89")
    file.write(b"\x8e" + struct.pack("<Q", array.nbytes))
    file.write(array.tobytes())
    file.write(b"tb")


def is_zip(path: str | os.PathLike[str]) -> bool:
    """Whether a file is one of oprack.save."""
    with open(path, "rb") as file:
        return file.read(2) == b"PK"
