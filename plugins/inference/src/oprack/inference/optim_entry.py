"""The file of one rewritten model: how its parameters are laid out, and how it is read and checked."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from oprack.desc.plain import from_plain
from oprack.io.inference_model import InferenceModel
from oprack.packs.pack import file_state, open_own
from oprack.program import Program
from oprack.tensor import LoDTensor, check_lod, numpy_dtype

T = TypeVar("T")


# Not a Future of concurrent.futures: importing that takes 1.6 ms of a process's start, which this is here to shorten.
class Later(Generic[T]):
    """The result of a function that a thread of its own calls; a start of a process takes time that cores have.

    Args:
        function: Called once, at once.
    """

    def __init__(self, function: Callable[[], T]) -> None:
        self._results: list[T] = []
        self._errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._work, args=(function,), name="oprack-later", daemon=True)
        self._thread.start()

    def _work(self, function: Callable[[], T]) -> None:
        try:
            self._results.append(function())
        except BaseException as error:  # raised where the result is asked for
            self._errors.append(error)

    def result(self) -> T:
        """Wait for the function, and return its result; raises what it raised."""
        self._thread.join()
        if self._errors:
            raise self._errors[0]
        return self._results[0]


ALIGN = 64
"""Where parameters begin: at multiples of this, as kernels of libraries read them fastest."""
_MAX_RANK = 32  # as many dims as any version of NumPy has


def mapped_parameter(
    data: mmap.mmap | bytes, start: int, name: Any, dtype: Any, dims: Any, order: Any, lod: Any, offset: Any
) -> LoDTensor:
    """A parameter over the bytes of a file, which nobody can write to.

    Args:
        data: What is in the file.
        start: Where its parameters begin.
        name: Name of the parameter.
        dtype: Its dtype.
        dims: Its dims as the file has them, the ones that lie farthest apart in memory first.
        order: Which dim of the parameter each of these is; None where they are in order.
        lod: Its LoD.
        offset: Where it begins, from `start` on.

    Raises:
        ValueError: The file contradicts itself, as one that was cut off or damaged does.
    """
    kind = numpy_dtype(dtype)
    numbers = [*dims, offset]
    if not isinstance(name, str) or not all(type(n) is int and n >= 0 for n in numbers) or len(dims) > _MAX_RANK:
        raise ValueError(f"parameter {name!r} is {dtype!r} {dims!r} at {offset!r}")
    nbytes = _bytes_within(data, start, name, kind, dims, offset)
    array: np.ndarray[Any, Any] = np.ndarray(dims, kind, data, start + offset) if nbytes else np.empty(dims, kind)
    if kind.kind == "b":
        array = array.view(np.uint8) != 0  # a byte other than 0 and 1 is no bool to NumPy
    if order is not None:
        if sorted(order) != list(range(len(dims))):
            raise ValueError(f"parameter {name!r}: {order!r} is no order of {len(dims)} dims")
        array = array.transpose([order.index(d) for d in range(len(dims))])
    array.flags.writeable = False
    lod = check_lod(lod, array.shape[0] if array.ndim else 0, f"LoD of {name!r}") if lod else []
    return LoDTensor(array, lod, check=False, shared=True)


def _bytes_within(
    data: mmap.mmap | bytes, start: int, name: str, dtype: np.dtype[Any], dims: Sequence[int], offset: int
) -> int:
    """How many bytes a parameter takes; ValueError when they are not all in the file."""
    # NumPy multiplies the other dims of an empty array as well
    nbytes, most = (math.prod(sizes) * dtype.itemsize for sizes in (dims, [d for d in dims if d]))
    if most > len(data) or start + offset + nbytes > len(data) or offset % ALIGN:
        raise ValueError(f"parameter {name!r}, {dtype} {dims} at {offset}, is not in the {len(data)} bytes of the file")
    return nbytes


Prepared = TypeVar("Prepared")
MAGIC = b"oprackOM"
HEAD = struct.Struct("<8s32sQ")
_HASHED = 40  # where what the digest covers begins
# Bytes up to which an entry is read and not mapped: whoever cuts a mapped file short ends all processes that use it. Of
# larger ones processes share the memory.
_COPIED = 64 << 20


class StaleError(Exception):
    """An entry was made by code that changed."""


# Writing --------------------------------------------------------------------------------------------------------------
def in_memory_order(array: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], list[int] | None]:
    """An array whose memory goes row by row, and the order of its dims in the one given (None: as they are).

    Kernels may add up in another order when strides are others, and numbers must be those without a cache.
    """
    if array.flags.c_contiguous:
        return array, None
    order = sorted(range(array.ndim), key=lambda d: (-array.strides[d], d))
    return np.ascontiguousarray(array.transpose(order)), order


def padded(array: np.ndarray[Any, Any]) -> list[Any]:
    """Pieces of bytes: those of an array, and zeros up to where the next one may begin."""
    return [array.reshape(-1).view(np.uint8).data, bytes(-array.nbytes % ALIGN)]


# Reading --------------------------------------------------------------------------------------------------------------
def _open(path: Path) -> mmap.mmap | bytes:
    """What is in a file that this user alone can have written; a large file is mapped."""
    fd = open_own(path)
    try:
        size = os.fstat(fd).st_size
        if size < HEAD.size:
            raise ValueError("it is no file of this kind")
        if size > _COPIED:
            return mmap.mmap(fd, 0, access=mmap.ACCESS_READ)
        with open(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def read_entry(
    path: Path, key: str, prepare: Callable[[InferenceModel], Prepared]
) -> tuple[InferenceModel, dict[str, LoDTensor], Callable[[], Prepared]]:
    """The model, its parameters, and what returns or raises what `prepare` did.

    Raises what malformed data makes it raise, and StaleError.
    """
    data = _open(path)
    magic, digest, size = HEAD.unpack_from(data)
    start = HEAD.size + size
    if magic != MAGIC or start > len(data) or start % ALIGN:
        raise ValueError("it is no file of this kind")
    with memoryview(data) as view:
        # of megabytes, while the text is read and prepared; whatever that says, bytes that are not those that were
        # written end it
        made = Later(lambda: hashlib.sha256(view[_HASHED:]).digest())
        try:
            model, values = _parsed(data, bytes(view[HEAD.size : start]), start, key)
            prepared = _outcome(prepare, model)
        finally:
            if made.result() != digest:
                raise ValueError("its bytes are not those that were written")
    return model, values, prepared


def _outcome(prepare: Callable[[InferenceModel], Prepared], model: InferenceModel) -> Callable[[], Prepared]:
    """What returns or raises what `prepare(model)` did."""
    try:
        prepared = prepare(model)
    except Exception as error:
        failed = error
    else:
        return lambda: prepared

    def fail() -> Prepared:
        raise failed

    return fail


def _parsed(data: mmap.mmap | bytes, text: bytes, start: int, key: str) -> tuple[InferenceModel, dict[str, LoDTensor]]:
    """The model that a file's header describes, its parameters in `data` from `start` on."""
    header = json.loads(text)
    if header["key"] != key:
        raise ValueError("it is of another model, or of other settings")
    for name, mtime, length in header["files"]:
        if file_state(name) != (mtime, length):
            raise StaleError(f"{name} changed since then")
    names = [header["feeds"], header["fetches"]]
    if not all(isinstance(n, list) and all(isinstance(name, str) for name in n) for n in names):
        raise TypeError("names of inputs and outputs are malformed")
    values = {row[0]: mapped_parameter(data, start, *row) for row in header["parameters"]}
    return InferenceModel(Program(from_plain(header["program"])), *names), values
