"""Calls from compiled functions by XLA's foreign function interface, which jax.ffi registers.

XLA hands addresses of buffers to one handler, so that oprack's kernels read them where they lie; results are copied to
where XLA wants them. `jax.pure_callback`, which makes arrays of jax of both, takes several times as long for few
elements.
The structures are those of xla/ffi/api/c_api.h, which every jaxlib brings and whose interface has a version.
"""

from __future__ import annotations

import ctypes
import math
import uuid
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np

TARGET = "oprack_call"
Host = Callable[..., Sequence[np.ndarray]]


class _Head(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("extension", ctypes.c_void_p)]


class _Version(_Head):
    _fields_ = [("major", ctypes.c_int), ("minor", ctypes.c_int)]


class _Metadata(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("version", _Version)]


class _Extension(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("metadata", ctypes.POINTER(_Metadata)),
    ]


class _Values(_Head):
    _fields_ = [("size", ctypes.c_int64), ("types", ctypes.c_void_p), ("at", ctypes.POINTER(ctypes.c_void_p))]


class _Attrs(_Head):
    _fields_ = [
        ("size", ctypes.c_int64),
        ("types", ctypes.c_void_p),
        ("names", ctypes.c_void_p),
        ("at", ctypes.POINTER(ctypes.c_void_p)),
    ]


class _Api(_Head):
    _fields_ = [("version", _Version), ("internal", ctypes.c_void_p), ("create_error", ctypes.c_void_p)]


class _Frame(_Head):
    _fields_ = [
        ("api", ctypes.POINTER(_Api)),
        ("context", ctypes.c_void_p),
        ("stage", ctypes.c_int),
        ("args", _Values),
        ("results", _Values),
        ("attrs", _Attrs),
    ]


class _Buffer(_Head):
    _fields_ = [
        ("dtype", ctypes.c_int),
        ("data", ctypes.c_void_p),
        ("rank", ctypes.c_int64),
        ("dims", ctypes.POINTER(ctypes.c_int64)),
    ]


class _Span(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]


class _Error(_Head):
    _fields_ = [("message", ctypes.c_char_p), ("code", ctypes.c_int)]


_MAJOR, _MINOR = 0, 1
_METADATA, _INTERNAL = 1, 13
_CREATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(_Error))


class _Call(NamedTuple):
    """What the handler runs for one custom call."""

    host: Host
    dtypes: list[np.dtype]
    result_dtypes: list[np.dtype]


_here = uuid.uuid4().hex  # a compiled function of another process finds no call by accident
_names: dict[Hashable, str] = {}
_calls: dict[bytes, _Call] = {}  # as long as the process: nobody says when a compiled function is gone


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def _handler(address: int) -> int | None:
    frame = _Frame.from_address(address)
    if frame.extension:
        extension = _Extension.from_address(frame.extension)
        if extension.type == _METADATA:  # XLA asks for the version when the handler is registered
            version = extension.metadata.contents.version
            version.major, version.minor = _MAJOR, _MINOR
            return None
    try:
        span = _Span.from_address(frame.attrs.at[0])
        call = _calls[ctypes.string_at(span.start, span.length)]
        args = [_array(frame.args.at[i], dtype) for i, dtype in enumerate(call.dtypes)]
        for x in args:
            x.flags.writeable = False
        for i, (y, dtype) in enumerate(zip(call.host(*args), call.result_dtypes, strict=True)):
            np.copyto(_array(frame.results.at[i], dtype), y)
    except BaseException as error:  # nothing may be raised into XLA
        return _error(frame, error)
    return None


def _array(address: int, dtype: np.dtype) -> np.ndarray:
    """A buffer as an array."""
    buffer = _Buffer.from_address(address)
    dims = buffer.dims[: buffer.rank] if buffer.rank else []
    size = math.prod(dims) * dtype.itemsize
    memory = (ctypes.c_char * size).from_address(buffer.data) if size else None
    return np.ndarray(dims, dtype, memory)


def _error(frame: _Frame, error: BaseException) -> int | None:
    api = frame.api.contents
    message = f"{type(error).__name__}: {error}".encode()
    made: int | None = _CREATE(api.create_error)(_Error(ctypes.sizeof(_Error), None, message, _INTERNAL))
    return made


@cache
def usable() -> bool:
    """Whether compiled functions run on the CPU, and this jax takes the handler."""
    if jax.default_backend() != "cpu" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        jax.ffi.register_ffi_target(TARGET, jax.ffi.pycapsule(_handler), platform="cpu")
    except Exception:  # another version of the interface
        return False
    return True


def call(key: Hashable, host: Host, structs: Sequence[jax.ShapeDtypeStruct], arrays: Sequence[Any], method: str) -> Any:
    """A call of a function of arrays, in what jax traces.

    Args:
        key: Equal for calls of which one can stand for the other.
        host: Gets arrays of NumPy, which it may not write to, and returns some.
        structs: Its results, without values.
        arrays: Its arguments, traced.
        method: How a batch is computed, as jax.ffi.ffi_call takes it.

    Returns:
        The results, traced.
    """
    if not usable():
        return jax.pure_callback(host, list(structs), *arrays, vmap_method=method)
    name = _names.setdefault(key, f"{_here}:{len(_names)}")
    dtypes = [np.dtype(a.dtype) for a in arrays]
    _calls.setdefault(name.encode(), _Call(host, dtypes, [np.dtype(s.dtype) for s in structs]))
    return jax.ffi.ffi_call(TARGET, list(structs), vmap_method=method)(*arrays, call=name)
