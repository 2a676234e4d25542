"""The file format of tensors: a stream per LoDTensor or SelectedRows, alone in a file or several in a combined one.

All numbers are little endian. LoDTensor: u32 version 0, u64 number of LoD levels, per level u64 size in bytes and u64
offsets, then the tensor: u32 version 0, i32 size of the TensorDesc message, the message, the elements row by row.
SelectedRows: u32 version 0, u64 number of rows, i64 rows, i64 height, then the tensor.
Files are untrusted: every size is compared with the remaining bytes before memory is allocated for it.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from typing import IO, Any

import numpy as np

from oprack.desc.var_desc import read_tensor_desc, write_tensor_desc
from oprack.errors import CorruptParameterError, InvalidArgumentError, InvalidLoDError, OversizedTensorError
from oprack.tensor import LoDTensor, SelectedRows, check_lod, numpy_dtype
from oprack.types import DTYPE_NAMES, VarType, dtype_enum

_MAX_RANK = 32  # of NumPy 1; Paddle's is 9
_MAX_BYTES = 2**63 - 1


class _Cursor:
    """A read position in a buffer, with the names of variable and file for messages."""

    def __init__(self, buffer: Any, offset: int, name: str, source: str) -> None:
        self.view = memoryview(buffer).cast("B")
        self.start = self.offset = offset
        self.name, self.source = name, source

    def where(self) -> str:
        return f"variable {self.name!r} (at offset {self.start} of {self.source})"

    @property
    def left(self) -> int:
        return len(self.view) - self.offset

    def take(self, size: int, what: str) -> memoryview:
        """The next `size` bytes.

        Raises:
            CorruptParameterError: When there are not as many.
        """
        if size > self.left:
            raise CorruptParameterError(
                f"{self.where()}: {what} takes {size} bytes at offset {self.offset}, but only {self.left} are left; "
                "expected a complete file, so save or copy it again"
            )
        piece = self.view[self.offset : self.offset + size]
        self.offset += size
        return piece

    def number(self, form: str, what: str) -> int:
        return int(struct.unpack("<" + form, self.take(struct.calcsize(form), what))[0])

    def version(self, what: str) -> None:
        version = self.number("I", f"the version of {what}")
        if version != 0:
            raise CorruptParameterError(
                f"{self.where()}: the version of {what} is {version}; expected 0. Is this the file of this variable, "
                "and is it a parameter file at all?"
            )


# Reading ------------------------------------------------------------------------------------------------------------
def read_lod_tensor(
    buffer: Any, offset: int = 0, *, name: str = "", source: str = "the buffer"
) -> tuple[LoDTensor, int]:
    """Read a LoDTensor from a bytes-like object; its memory is a copy.

    Args:
        buffer: The object.
        offset: Where the tensor starts.
        name: Name of the variable, for messages.
        source: Name of the file, for messages.

    Returns:
        (tensor, offset of the first byte after it).

    Raises:
        CorruptParameterError: The stream is truncated or malformed.
        OversizedTensorError: Its dims need more bytes than the file has.
        InvalidLoDError: The offsets are malformed.
    """
    cursor = _Cursor(buffer, offset, name, source)
    cursor.version("the LoDTensor")
    lod = _read_lod(cursor)
    array = _read_tensor(cursor)
    if lod:
        lod = check_lod(lod, array.shape[0] if array.ndim else 0, f"LoD of {cursor.where()}")
    return LoDTensor(array, lod, check=False), cursor.offset


def read_selected_rows(
    buffer: Any, offset: int = 0, *, name: str = "", source: str = "the buffer"
) -> tuple[SelectedRows, int]:
    """Read SelectedRows; arguments, result and errors are those of read_lod_tensor."""
    cursor = _Cursor(buffer, offset, name, source)
    cursor.version("the SelectedRows")
    count = cursor.number("Q", "the number of rows")
    # take() compares the size with the file first, so that a count from the file takes no memory by itself.
    rows = np.frombuffer(cursor.take(8 * count, f"{count} rows"), "<i8").astype(np.int64)
    height = cursor.number("q", "the height")
    value = _read_tensor(cursor)
    try:
        return SelectedRows(rows, value, height), cursor.offset
    except InvalidArgumentError as e:
        raise CorruptParameterError(f"{cursor.where()}: {e}") from None


def read_combined(
    buffer: Any, variables: Iterable[tuple[str, VarType]], *, source: str = "the buffer"
) -> dict[str, LoDTensor | SelectedRows]:
    """Read the variables of a combined file, which has no names: they are concatenated in the caller's order.

    Args:
        buffer: The contents of the file.
        variables: (name, VarType) of each variable.
        source: Name of the file, for messages.

    Raises:
        CorruptParameterError: A stream is malformed, or bytes remain after the last one.
    """
    values: dict[str, LoDTensor | SelectedRows] = {}
    offset, name = 0, ""
    for name, kind in variables:
        values[name], offset = read_variable(buffer, offset, kind, name=name, source=source)
    size = len(memoryview(buffer).cast("B"))
    if offset != size:
        raise CorruptParameterError(
            f"{source}: {size - offset} of {size} bytes are left behind the last of {len(values)} variables, {name!r}; "
            "expected the file to end there, so the file belongs to another program"
        )
    return values


def read_variable(
    buffer: Any, offset: int, kind: VarType, *, name: str, source: str
) -> tuple[LoDTensor | SelectedRows, int]:
    """Read the value of a variable of type `kind`; returns it and the offset of the first byte after it."""
    read = read_selected_rows if kind is VarType.SELECTED_ROWS else read_lod_tensor
    return read(buffer, offset, name=name, source=source)


def skip_variable(
    buffer: Any, offset: int, kind: VarType, *, name: str, source: str
) -> tuple[str, tuple[int, ...], int]:
    """As read_variable, without memory for the values: dtype, dims and the offset behind.

    Args:
        buffer: The bytes.
        offset: Where the variable starts.
        kind: Its type.
        name: Of it, for messages.
        source: Name of the file, for messages.

    Raises:
        CorruptParameterError: The stream is truncated or malformed; subclasses as for read_lod_tensor.
    """
    cursor = _Cursor(buffer, offset, name, source)
    if kind is VarType.SELECTED_ROWS:
        cursor.version("the SelectedRows")
        count = cursor.number("Q", "the number of rows")
        cursor.take(8 * count, f"{count} rows")
        cursor.number("q", "the height")
    else:
        cursor.version("the LoDTensor")
        _read_lod(cursor)
    dtype, dims = _read_header(cursor)
    cursor.take(_checked_size(cursor, dtype, dims), "the data")
    return dtype.name, dims, cursor.offset


def _read_lod(cursor: _Cursor) -> list[list[int]]:
    count = cursor.number("Q", "the number of LoD levels")
    # Each level takes at least 8 bytes, for its size. Without this check a huge count would loop until the file ends.
    if 8 * count > cursor.left:
        raise CorruptParameterError(
            f"{cursor.where()}: {count} LoD levels can't be in the {cursor.left} bytes that are left; expected a few"
        )
    lod = []
    for i in range(count):
        size = cursor.number("Q", f"the size of LoD level {i}")
        if size % 8:
            raise CorruptParameterError(
                f"{cursor.where()}: LoD level {i} has {size} bytes; expected a multiple of 8, the size of an offset"
            )
        offsets = np.frombuffer(cursor.take(size, f"LoD level {i}"), "<u8")
        # Checked as an array: a list of Python ints takes four times the memory.
        if (offsets[1:] < offsets[:-1]).any():
            k = int((offsets[1:] < offsets[:-1]).argmax())
            raise InvalidLoDError(
                f"LoD of {cursor.where()}: level {i} decreases from {offsets[k]} to {offsets[k + 1]} at position "
                f"{k + 1}; expected offsets that never decrease"
            )
        lod.append(offsets.tolist())
    return lod


def _read_header(cursor: _Cursor) -> tuple[np.dtype, tuple[int, ...]]:
    """Dtype and dims of a tensor, whose data come next."""
    cursor.version("the tensor")
    size = cursor.number("i", "the size of the TensorDesc")
    if size < 0:
        raise CorruptParameterError(f"{cursor.where()}: the size of the TensorDesc is {size}; expected 2 bytes or more")
    try:
        kind, dims = read_tensor_desc(bytes(cursor.take(size, "the TensorDesc")))
    except CorruptParameterError as e:
        raise CorruptParameterError(f"{cursor.where()}: {e}") from None
    if kind not in DTYPE_NAMES:
        raise CorruptParameterError(
            f"{cursor.where()}: its dtype is {kind.name} ({int(kind)}); expected one of "
            + ", ".join(DTYPE_NAMES.values())
        )
    return numpy_dtype(kind), tuple(dims)


def _read_tensor(cursor: _Cursor) -> np.ndarray:
    dtype, dims = _read_header(cursor)
    nbytes = _checked_size(cursor, dtype, dims)
    raw = np.frombuffer(cursor.take(nbytes, "the data"), np.uint8)
    # A copy, since the buffer may be a mapped file, to which in-place ops can't write.
    array = np.empty(dims, dtype)
    if dtype == np.bool_:
        np.not_equal(raw, 0, out=array.reshape(-1))  # to NumPy, bytes other than 0 and 1 are not valid bools
    else:
        array.reshape(-1).view(np.uint8)[...] = raw
    return array


def _checked_size(cursor: _Cursor, dtype: np.dtype, dims: tuple[int, ...]) -> int:
    """Check the dims against the rest of the file; returns the number of bytes of the data."""
    if len(dims) > _MAX_RANK:
        shown = f"{cursor.where()}: {dtype.name} of {len(dims)} dims"
        raise OversizedTensorError(f"{shown}; expected at most {_MAX_RANK} dims")
    # Without zeros, since NumPy checks the product of the other dims for overflow even if the array is empty.
    whole, nbytes = math.prod([d for d in dims if d]) * dtype.itemsize, math.prod(dims) * dtype.itemsize
    if min(dims, default=0) >= 0 and whole <= _MAX_BYTES and nbytes <= cursor.left:
        return nbytes
    shown = f"{dtype.name}{list(dims)}"
    if min(dims, default=0) < 0:
        raise CorruptParameterError(f"{cursor.where()}: {shown} has a negative dim; expected dims of a stored tensor")
    if whole > _MAX_BYTES:
        raise OversizedTensorError(
            f"{cursor.where()}: the size of {shown} overflows 64 bits; expected what the file holds"
        )
    raise OversizedTensorError(
        f"{cursor.where()}: {shown} needs {nbytes} bytes at offset {cursor.offset}, but only {cursor.left} are left; "
        "expected a complete file, so save or copy it again"
    )


# Writing ------------------------------------------------------------------------------------------------------------
def write_lod_tensor(file: IO[bytes], tensor: LoDTensor) -> None:
    """Write a LoDTensor.

    Raises:
        InvalidArgumentError: The format does not support the dtype.
    """
    file.write(struct.pack("<IQ", 0, len(tensor.lod)))
    for level in tensor.lod:
        file.write(struct.pack("<Q", 8 * len(level)))
        file.write(np.asarray(level, "<u8").tobytes())
    _write_tensor(file, np.asarray(tensor))


def write_selected_rows(file: IO[bytes], rows: SelectedRows) -> None:
    """Write a SelectedRows; rows keep their order and repetitions."""
    host = [x.get() if hasattr(x, "get") else x for x in (rows.rows, rows.value)]
    file.write(struct.pack("<IQ", 0, len(host[0])))
    file.write(np.asarray(host[0], "<i8").tobytes())
    file.write(struct.pack("<q", rows.height))
    _write_tensor(file, np.asarray(host[1]))


def write_variable(file: IO[bytes], value: object, name: str) -> None:
    """Write the value of variable `name` in the stream format of its class.

    Raises:
        InvalidArgumentError: The variable is of another sort than the two streams hold.
    """
    if isinstance(value, SelectedRows):
        write_selected_rows(file, value)
    elif isinstance(value, LoDTensor):
        write_lod_tensor(file, value)
    else:
        raise InvalidArgumentError(
            f"variable {name!r} holds a {type(value).__name__}, which has no file format; expected a LoDTensor or a "
            "SelectedRows, so do not mark the variable persistable"
        )


def _write_tensor(file: IO[bytes], array: np.ndarray) -> None:
    desc = write_tensor_desc(dtype_enum(array.dtype), array.shape)
    file.write(struct.pack("<Ii", 0, len(desc)))
    file.write(desc)
    # As bytes, since bfloat16 does not support the buffer protocol; a contiguous array is not copied.
    file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
