"""Parameter streams against bytes that are spelled from the description of the format."""

from __future__ import annotations

import io
import struct

import ml_dtypes
import numpy as np
import pytest
from oprack.errors import CorruptParameterError, InvalidArgumentError
from oprack.io.streams import (
    read_combined,
    read_lod_tensor,
    read_selected_rows,
    write_lod_tensor,
    write_selected_rows,
    write_variable,
)
from oprack.program import Program
from oprack.tensor import LoDTensor, SelectedRows
from oprack.types import VarType, dtype_enum
from wire_bytes import lod_stream, rows_stream

# Written by the `save` op of Paddle 2.6.2
FROM_PADDLE = {
    "float32 [2, 3]": (
        "00000000 0000000000000000 00000000 06000000 08051002100300000000 0000803f 00000040 00004040 00008040 0000a040",
        np.arange(6, dtype="float32").reshape(2, 3),
        [],
    ),
    "int64 [3], one level": (
        "00000000 0100000000000000"
        "2000000000000000 0000000000000000 0200000000000000 0200000000000000 0300000000000000"
        "00000000 04000000 08031003 0000000000000000 0100000000000000 0200000000000000",
        np.arange(3, dtype="int64"),
        [[0, 2, 2, 3]],
    ),
    "float64 [6, 1], two levels": (
        "00000000 0200000000000000"
        "1800000000000000 0000000000000000 0200000000000000 0300000000000000"
        "2000000000000000 0000000000000000 0200000000000000 0200000000000000 0600000000000000"
        "00000000 06000000 080610061001 0000000000000000 000000000000f03f 0000000000000040"
        "0000000000000840 0000000000001040 0000000000001440",
        np.arange(6, dtype="float64").reshape(6, 1),
        [[0, 2, 3], [0, 2, 2, 6]],
    ),
    "int8 []": ("00000000 0000000000000000 00000000 02000000 0815 07", np.array(7, "int8"), []),
    "uint8 [0, 3], one empty sequence": (
        "00000000 0100000000000000 1000000000000000 0000000000000000 0000000000000000 00000000 06000000 081410001003",
        np.empty((0, 3), "uint8"),
        [[0, 0]],
    ),
}


def written(value) -> bytes:
    file = io.BytesIO()
    write_variable(file, value, "v")
    return file.getvalue()


@pytest.mark.parametrize("case", FROM_PADDLE)
def test_streams_of_paddle(case):
    text, array, lod = FROM_PADDLE[case]
    data = bytes.fromhex(text)
    tensor, end = read_lod_tensor(data)
    assert end == len(data)
    assert tensor.array.dtype == array.dtype and tensor.array.shape == array.shape
    np.testing.assert_array_equal(tensor.array, array)
    assert tensor.lod == lod
    assert written(LoDTensor(array, lod)) == data


def test_selected_rows_of_paddle():
    data = bytes.fromhex(
        "00000000 0400000000000000 0700000000000000 0200000000000000 0200000000000000 0000000000000000 0a00000000000000"
        "00000000 06000000 080510041003 00000000 0000803f 00000040 00004040 00008040 0000a040 0000c040 0000e040"
        "00000041 00001041 00002041 00003041"
    )
    rows, end = read_selected_rows(data)
    assert end == len(data)
    assert rows.rows.tolist() == [7, 2, 2, 0] and rows.rows.dtype == np.int64 and rows.height == 10
    np.testing.assert_array_equal(rows.value, np.arange(12, dtype="float32").reshape(4, 3))
    assert written(rows) == data


DTYPES = [
    (0, np.dtype(bool), b"\0\1"),
    (1, np.dtype("int16"), struct.pack("<2h", 1, -2)),
    (2, np.dtype("int32"), struct.pack("<2i", 1, -2)),
    (3, np.dtype("int64"), struct.pack("<2q", 1, -2)),
    (4, np.dtype("float16"), struct.pack("<2e", 1.0, -2.0)),
    (5, np.dtype("float32"), struct.pack("<2f", 1.0, -2.0)),
    (6, np.dtype("float64"), struct.pack("<2d", 1.0, -2.0)),
    (19, np.dtype("uint64"), struct.pack("<2Q", 1, 2**63)),
    (20, np.dtype("uint8"), b"\x01\xff"),
    (21, np.dtype("int8"), b"\x01\xfe"),
    (22, np.dtype(ml_dtypes.bfloat16), b"\x80\x3f\x00\xc0"),
    (23, np.dtype("complex64"), struct.pack("<4f", 1.0, 2.0, -2.0, 0.5)),
    (24, np.dtype("complex128"), struct.pack("<4d", 1.0, 2.0, -2.0, 0.5)),
]
VALUES = {"b": [False, True], "u": [1, 255], "c": [1 + 2j, -2 + 0.5j]}


@pytest.mark.parametrize(("number", "dtype", "data"), DTYPES, ids=[d.name for _, d, _ in DTYPES])
def test_every_dtype(number, dtype, data):
    stream = lod_stream(number, (2, 1), data)
    tensor, end = read_lod_tensor(stream)
    assert end == len(stream) and tensor.array.dtype == dtype
    want = [1, 2**63] if dtype == np.uint64 else VALUES.get(dtype.kind, [1, -2])
    assert tensor.array.reshape(-1).tolist() == want
    assert written(tensor) == stream


def test_a_bool_is_one_whatever_byte_stands_for_it():
    tensor, _ = read_lod_tensor(lod_stream(0, (3,), b"\x00\x02\xff"))
    assert tensor.array.tolist() == [False, True, True]
    assert tensor.array.view(np.uint8).tolist() == [0, 1, 1]


@pytest.mark.parametrize("levels", [[], [[0, 0, 2, 3]], [[0, 1, 1, 3], [0, 0, 2, 3]]], ids=["none", "one", "two"])
def test_lod_levels(levels):
    stream = lod_stream(5, (3, 1), struct.pack("<3f", 1, 2, 3), *levels)
    tensor, end = read_lod_tensor(stream)
    assert (tensor.lod, end) == (levels, len(stream))
    assert written(tensor) == stream


@pytest.mark.parametrize(("dims", "data"), [((), b"\0\0\x80\x3f"), ((0,), b""), ((0, 3), b""), ((2, 0, 5), b"")])
def test_scalars_and_empty_tensors(dims, data):
    stream = lod_stream(5, dims, data)
    tensor, end = read_lod_tensor(stream)
    assert tensor.array.shape == dims and end == len(stream)
    assert written(tensor) == stream


def test_selected_rows_without_rows():
    stream = rows_stream([], 10, 6, (0, 4), b"")
    rows, end = read_selected_rows(stream)
    assert (rows.rows.tolist(), rows.height, rows.value.shape, end) == ([], 10, (0, 4), len(stream))
    assert written(rows) == stream


def test_packed_dims_are_read():
    """Fluid's reader takes them, its writer never writes them."""
    desc = b"\x08\x05\x12\x02\x02\x01"
    stream = struct.pack("<IQIi", 0, 0, 0, len(desc)) + desc + struct.pack("<2f", 1, 2)
    tensor, _ = read_lod_tensor(stream)
    assert tensor.array.tolist() == [[1.0], [2.0]]


def test_arrays_that_are_not_contiguous():
    array = np.arange(6, dtype="float32").reshape(2, 3)
    assert written(LoDTensor(array.T)) == written(LoDTensor(array.T.copy()))
    assert written(LoDTensor(array[:, ::2])) == lod_stream(5, (2, 2), struct.pack("<4f", 0, 2, 3, 5))


def test_a_loaded_tensor_owns_its_memory():
    data = bytearray(lod_stream(5, (2,), struct.pack("<2f", 1, 2)))
    tensor, _ = read_lod_tensor(memoryview(data))
    data[-8:] = bytes(8)
    tensor.array += 1
    assert tensor.array.tolist() == [2.0, 3.0]
    assert tensor.array.flags.aligned and tensor.array.flags.owndata


def test_combined_streams_follow_one_another():
    first = lod_stream(5, (1,), struct.pack("<f", 1.5))
    second = rows_stream([1], 2, 5, (1, 1), struct.pack("<f", 2.5))
    third = lod_stream(0, (), b"\1", *[])
    names = [("a", VarType.LOD_TENSOR), ("b", VarType.SELECTED_ROWS), ("c", VarType.LOD_TENSOR)]
    values = read_combined(first + second + third, names)
    assert list(values) == ["a", "b", "c"]
    assert isinstance(values["a"], LoDTensor) and isinstance(values["b"], SelectedRows)
    assert values["b"].rows.tolist() == [1] and values["c"].array.tolist() is True
    assert read_combined(b"", []) == {}
    with pytest.raises(CorruptParameterError, match=r"of 3 variables|left behind the last of 2 variables, 'b'"):
        read_combined(first + second + third, names[:2])


def test_values_without_a_format():
    with pytest.raises(InvalidArgumentError, match="variable 'v' holds a list, which has no file format"):
        written([1, 2])
    with pytest.raises(InvalidArgumentError, match="uint32"):
        written(LoDTensor(np.zeros(2, "uint32")))
    file = io.BytesIO()
    write_lod_tensor(file, LoDTensor(np.zeros(1, "int8")))
    write_selected_rows(file, SelectedRows([0], np.zeros((1, 1), "int8"), 1))
    assert file.getvalue() == lod_stream(21, (1,), b"\0") + rows_stream([0], 1, 21, (1, 1), b"\0")


@pytest.mark.parametrize("dtype", ["uint16", "uint32"])
def test_dtypes_without_a_number_of_fluids_are_not_written(dtype: str) -> None:
    with pytest.raises(InvalidArgumentError, match=rf"a tensor of {dtype} can't be written: .* cast it first"):
        write_lod_tensor(io.BytesIO(), LoDTensor(np.ones(2, dtype)))
    program = Program()
    program.desc.blocks[0].create_var("x", dtype=dtype_enum(dtype), shape=(2,))
    with pytest.raises(InvalidArgumentError, match=rf"variable 'x' of block 0 can't be written: its dtype is {dtype}"):
        program.serialize()
