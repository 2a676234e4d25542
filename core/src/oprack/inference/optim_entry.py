"""The file of one rewritten model: how its parameters are laid out, and how it is read and checked."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from oprack.desc.plain import from_plain
from oprack.inference.background import Later
from oprack.inference.mapped_parameter import ALIGN, mapped_parameter
from oprack.io.inference_model import InferenceModel
from oprack.packs.contributions import file_state
from oprack.program import Program
from oprack.tensor import LoDTensor

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
    # the flag: a named pipe would block for ever
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode) or status.st_size < HEAD.size:
            raise ValueError("it is no file of this kind")
        if hasattr(os, "getuid") and (status.st_uid != os.getuid() or status.st_mode & 0o022):
            raise ValueError("it is another user's, or others may write to it")
        if status.st_size > _COPIED:
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
