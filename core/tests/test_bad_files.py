"""Broken and hostile programs and parameter files: each kind has its error class and a message that says why."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from oprack.desc import ProgramDesc
from oprack.errors import (
    BlockCycleError,
    CorruptModelError,
    CorruptParameterError,
    InvalidLoDError,
    ModelError,
    OversizedTensorError,
)
from oprack.io import load_from_buffers
from oprack.io.streams import read_combined, read_lod_tensor, read_selected_rows
from oprack.program import Program
from oprack.tensor import Scope
from oprack.types import VarType
from wire_bytes import attr, block, chunk, lod_stream, number, op, rows_stream, slot, tensor_stream, tensor_var

PROGRAMS = Path(__file__).parents[2] / "tests" / "data" / "programs"
GRU = (PROGRAMS / "gru_cls" / "model.pdmodel").read_bytes()

# Programs -----------------------------------------------------------------------------------------------------------
BAD_PROGRAMS = {
    "empty": (b"", r"0 bytes are no program: it has no block"),
    "text": (b"import paddle\n" * 20, r"280 bytes are no program: protobuf says"),
    "truncated": (GRU[:-200], r"no program: protobuf says.*check that the file is complete"),
    "a parameter file": ((PROGRAMS / "gru_cls" / "model.pdiparams").read_bytes(), r"is not the parameter file"),
    "no idx": (chunk(1, number(2, -1)), r"required fields are missing .*: blocks\[0\]\.idx"),
    "no op type": (block(0, -1, chunk(4, slot(1, "X", "x"))), r"blocks\[0\]\.ops\[0\]\.type"),
    "no attribute type": (block(0, -1, op("o", chunk(4, chunk(1, "a")))), r"ops\[0\]\.attrs\[0\]\.type"),
    "unknown attribute type": (block(0, -1, op("o", attr("a", 99))), r"unknown enum number: .*attrs\[0\]\.type"),
    "unknown dtype": (block(0, -1, tensor_var("x", 99, ())), r"vars\[0\]\.type\.lod_tensor\.tensor\.data_type"),
    "unknown kind": (block(0, -1, chunk(3, chunk(1, "x") + chunk(2, number(1, 77)))), r"vars\[0\]\.type\.type"),
    "no kind": (block(0, -1, chunk(3, chunk(1, "x"))), r"vars\[0\]\.type"),
    "many holes": (block(0, -1, *[chunk(4, b"")] * 9), r"ops\[2\]\.type and 6 more"),
    "name not UTF-8": (block(0, -1, op("o", slot(1, "X", "x")).replace(b"x", b"\xff")), r"name b'\\xff' is not UTF-8"),
    "type not UTF-8": (block(0, -1, op("o").replace(b"o", b"\xfe")), r"name b'\\xfe' is not UTF-8"),
    "variable not UTF-8": (block(0, -1, tensor_var("x", 5, ()).replace(b"x", b"\xff")), r"is not UTF-8"),
    "VAR not UTF-8": (block(0, -1, op("o", attr("a", 13, chunk(17, b"\xff")))), r"is not UTF-8"),
    "VARS not UTF-8": (block(0, -1, op("o", attr("a", 14, chunk(18, b"\xff")))), r"is not UTF-8"),
    "op version not UTF-8": (
        block(0, -1) + chunk(5, chunk(1, chunk(1, b"\xff") + chunk(2, number(1, 1)))),
        r"is not UTF-8",
    ),
    "nested groups": (block(0, -1) + b"\x8b\x01" * 5000, r"protobuf says"),
}


@pytest.mark.parametrize("case", BAD_PROGRAMS)
def test_corrupt_programs(case):
    data, message = BAD_PROGRAMS[case]
    with pytest.raises(CorruptModelError, match=message):
        Program.parse(data)
    with pytest.raises(CorruptModelError):
        load_from_buffers(bytearray(data), b"", Scope())


BAD_BLOCKS = {
    "idx": (block(1, -1), r"block at position 0 says that its idx is 1; expected 0"),
    "parent after the end": (
        block(0, -1) + block(1, 2),
        r"block 1: parent_idx is 2; expected one of the blocks 0 to 1",
    ),
    "second root": (block(0, -1) + block(1, -1), r"block 1: parent_idx is -1; expected one of the blocks 0 to 1"),
    "negative parent": (block(0, -2), r"block 0: parent_idx is -2; expected -1"),
    "forward block": (block(0, -1, number(5, 1)), r"block 0: forward_block_idx is 1; expected -1 to 0"),
    "BLOCK": (
        block(0, -1, op("while", attr("sub_block", 8, number(12, 1)))),
        r"block 0: attribute 'sub_block' of op while names block 1; expected one of the blocks 0 to 0",
    ),
    "negative BLOCK": (block(0, -1, op("while", attr("sub_block", 8, number(12, -1)))), r"names block -1"),
    "BLOCKS": (block(0, -1, op("switch", attr("blocks", 10, number(14, 0) + number(14, 7)))), r"names block 7"),
    "own parent": (block(0, 0), r"parents of the blocks run in a circle: 0 -> 0; expected a tree"),
    "parents": (block(0, -1) + block(1, 2) + block(2, 1), r"parents of the blocks run in a circle: 1 -> 2 -> 1"),
    "own sub-block": (
        block(0, -1, op("while", attr("sub_block", 8, number(12, 0)))),
        r"sub-blocks of the blocks run in a circle: 0 -> 0",
    ),
    "sub-blocks": (
        block(0, -1, op("while", attr("sub_block", 8, number(12, 1))))
        + block(1, 0, op("while", attr("sub_block", 8, number(12, 2))))
        + block(2, 1, op("while", attr("sub_block", 8, number(12, 1)))),
        r"sub-blocks of the blocks run in a circle: 1 -> 2 -> 1",
    ),
    "long circle": (
        b"".join(block(i, i - 1, op("w", attr("b", 8, number(12, (i + 1) % 40)))) for i in range(40)),
        r"0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> \.\.\.;",
    ),
}


@pytest.mark.parametrize("case", BAD_BLOCKS)
def test_blocks_that_can_not_be_walked(case):
    data, message = BAD_BLOCKS[case]
    with pytest.raises(BlockCycleError, match=message):
        Program.parse(data)


def test_two_ops_may_share_a_sub_block():
    shared = op("while", attr("sub_block", 8, number(12, 1)))
    assert len(Program.parse(block(0, -1, shared, shared) + block(1, 0)).blocks) == 2


def test_a_chain_of_many_blocks_is_walked_without_recursion():
    count = 20_000
    data = b"".join(
        block(i, i - 1, *([op("w", attr("b", 8, number(12, i + 1)))] if i + 1 < count else [])) for i in range(count)
    )
    start = time.process_time()
    desc = ProgramDesc.parse(data)
    assert time.process_time() - start < 5
    assert len(list(desc.block(count - 1).ancestors())) == count


def memory_of(action) -> int:
    """Peak of Python's memory while `action` runs."""
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_program_takes_memory_in_proportion_to_its_file():
    """The worst that a file can do: messages of a few bytes each, which are objects of some hundred bytes here."""
    for piece in (op("o"), slot(1, "X")[:0] + op("o", attr("a", 0)), tensor_var("x", 5, ()), op("o", slot(1, "X", ""))):
        data = block(0, -1, piece * 5000)
        assert memory_of(lambda data=data: ProgramDesc.parse(data)) < 150 * len(data)
    ints = block(
        0, -1, op("o", attr("a", 3, number(6, 1) * 100_000), attr("b", 7, b"\x5a\xa0\x8d\x06" + bytes(100_000)))
    )
    assert memory_of(lambda: ProgramDesc.parse(ints)) < 30 * len(ints)


# Parameter files ------------------------------------------------------------------------------------------------------
def header(*levels: bytes) -> bytes:
    return struct.pack("<IQ", 0, len(levels)) + b"".join(levels)


def tensor(desc: bytes, data: bytes = b"") -> bytes:
    return header() + struct.pack("<Ii", 0, len(desc)) + desc + data


F32 = struct.pack("<f", 1.0)
BAD_STREAMS = {
    "empty": (
        b"",
        CorruptParameterError,
        r"the version of the LoDTensor takes 4 bytes at offset 0, but only 0 are left",
    ),
    "version": (b"\1\0\0\0", CorruptParameterError, r"version of the LoDTensor is 1; expected 0"),
    "no levels": (bytes(9), CorruptParameterError, r"number of LoD levels takes 8 bytes at offset 4, but only 5 are"),
    "too many levels": (
        struct.pack("<IQ", 0, 2**61),
        CorruptParameterError,
        r"2305843009213693952 LoD levels can't be",
    ),
    "level size": (
        header(struct.pack("<Q", 12)) + bytes(20),
        CorruptParameterError,
        r"LoD level 0 has 12 bytes; expect",
    ),
    "level too long": (
        header(struct.pack("<Q", 2**40)),
        CorruptParameterError,
        r"LoD level 0 takes 1099511627776 bytes",
    ),
    "tensor version": (header() + b"\2\0\0\0", CorruptParameterError, r"the version of the tensor is 2; expected 0"),
    "negative desc": (header() + struct.pack("<Ii", 0, -5), CorruptParameterError, r"size of the TensorDesc is -5"),
    "long desc": (header() + struct.pack("<Ii", 0, 2**31 - 1), CorruptParameterError, r"takes 2147483647 bytes"),
    "garbage desc": (tensor(b"\xff\xff"), CorruptParameterError, r"2 bytes are no TensorDesc"),
    "no dtype": (tensor(number(2, 3)), CorruptParameterError, r"TensorDesc of 2 bytes names no dtype that is known"),
    "unknown dtype": (tensor(number(1, 99)), CorruptParameterError, r"names no dtype that is known"),
    "dtype of no numbers": (
        tensor(number(1, 25)),
        CorruptParameterError,
        r"its dtype is STRING \(25\); expected one of",
    ),
    "kind as dtype": (tensor(number(1, 7)), CorruptParameterError, r"its dtype is LOD_TENSOR \(7\)"),
    "negative dim": (lod_stream(5, (2, -1), F32), CorruptParameterError, r"float32\[2, -1\] has a negative dim"),
    "missing data": (
        lod_stream(5, (2, 2), F32 * 3),
        OversizedTensorError,
        r"float32\[2, 2\] needs 16 bytes at offset 26, but only 12 are left; expected a complete file",
    ),
    "huge": (lod_stream(5, (2**31, 2**10), F32), OversizedTensorError, r"needs 8796093022208 bytes at offset"),
    "overflow": (
        lod_stream(5, (2**32, 2**32), F32),
        OversizedTensorError,
        r"float32\[4294967296, 4294967296\] overflows",
    ),
    "wraps to zero": (lod_stream(5, (2**62, 4), b""), OversizedTensorError, r"overflows 64 bits"),
    "empty but huge": (lod_stream(5, (0, 2**62, 2**62), b""), OversizedTensorError, r"overflows 64 bits"),
    "many dims": (lod_stream(5, (1,) * 33, F32), OversizedTensorError, r"float32 of 33 dims; expected at most 32 dims"),
    "decreasing LoD": (
        lod_stream(5, (3,), F32 * 3, [0, 2, 1, 3]),
        InvalidLoDError,
        r"LoD of variable 'w' \(at offset 0 of the file\): level 0 decreases from 2 to 1 at position 2",
    ),
    "LoD not from 0": (
        lod_stream(5, (3,), F32 * 3, [1, 3]),
        InvalidLoDError,
        r"level 0 is \[1, 3\]; expected offsets that",
    ),
    "LoD and rows": (
        lod_stream(5, (3,), F32 * 3, [0, 2]),
        InvalidLoDError,
        r"level 0 ends at 2; expected 3, the tensor's",
    ),
    "LoD past the rows": (lod_stream(5, (3,), F32 * 3, [0, 2**63]), InvalidLoDError, r"ends at 9223372036854775808"),
    "LoD levels": (lod_stream(5, (3,), F32 * 3, [0, 1], [0, 1, 3]), InvalidLoDError, r"level 0 ends at 1; expected 2"),
    "empty level": (lod_stream(5, (0,), b"", []), InvalidLoDError, r"level 0 is \[\]"),
    "LoD of a scalar": (lod_stream(5, (), F32, [0, 1]), InvalidLoDError, r"level 0 ends at 1; expected 0"),
}


@pytest.mark.parametrize("case", BAD_STREAMS)
def test_corrupt_streams(case):
    data, error, message = BAD_STREAMS[case]
    with pytest.raises(error, match=message) as caught:
        read_lod_tensor(data, name="w", source="the file")
    assert type(caught.value) is error
    assert "variable 'w' (at offset 0 of the file)" in str(caught.value)


BAD_ROWS = {
    "version": (b"\1\0\0\0", r"version of the SelectedRows is 1; expected 0"),
    "rows": (struct.pack("<IQ", 0, 2**60), r"1152921504606846976 rows takes 9223372036854775808 bytes"),
    "height": (struct.pack("<IQq", 0, 1, 5), r"the height takes 8 bytes at offset 20, but only 0 are left"),
    "count": (rows_stream([1, 2], 9, 5, (1, 1), F32), r"2 rows but value has shape \[1, 1\]"),
    "row outside": (rows_stream([9], 9, 5, (1, 1), F32), r"rows lie in \[9, 9\] but height is 9"),
    "negative row": (rows_stream([-1], 9, 5, (1, 1), F32), r"rows lie in \[-1, -1\]"),
    "scalar": (rows_stream([], 9, 5, (), F32), r"0 rows but value has shape \[\]"),
    "huge": (rows_stream([], 9, 5, (2**40, 2**20), b""), r"float32\[1099511627776, 1048576\] needs 46"),
}


@pytest.mark.parametrize("case", BAD_ROWS)
def test_corrupt_selected_rows(case):
    data, message = BAD_ROWS[case]
    with pytest.raises(CorruptParameterError, match=message):
        read_selected_rows(data, name="t")


def test_the_variable_and_its_place_in_a_combined_file_are_named():
    good = lod_stream(5, (1,), F32)
    names = [("first", VarType.LOD_TENSOR), ("second", VarType.LOD_TENSOR)]
    with pytest.raises(CorruptParameterError, match=rf"'second' \(at offset {len(good)} of a\.pdiparams\)"):
        read_combined(good + good[:-1], names, source="a.pdiparams")
    with pytest.raises(OversizedTensorError, match=rf"variable 'second' \(at offset {len(good)} of a\.pdiparams\)"):
        read_combined(good + lod_stream(5, (10**6,), F32), names, source="a.pdiparams")


def test_hostile_sizes_take_no_memory():
    """Files of some bytes that claim terabytes: of elements, LoD offsets, rows, and of their description."""
    hostile = [
        lod_stream(5, (2**38,), F32),
        lod_stream(6, (2**20, 2**20), F32 * 100),
        struct.pack("<IQ", 0, 2**50),
        header(struct.pack("<Q", 2**45)) + bytes(100),
        header() + struct.pack("<Ii", 0, 2**31 - 1) + bytes(100),
    ]

    def read_all() -> None:
        for data in hostile:
            with pytest.raises(CorruptParameterError):
                read_lod_tensor(data)
        with pytest.raises(CorruptParameterError):
            read_selected_rows(struct.pack("<IQ", 0, 2**45) + bytes(100))

    read_all()
    assert memory_of(read_all) < 500_000


def test_a_tensor_is_copied_once():
    data = lod_stream(5, (1000, 1000), bytes(4_000_000))
    assert memory_of(lambda: read_lod_tensor(memoryview(data))) < 4_500_000


def test_hostile_offsets_take_little_memory():
    """A megabyte of broken LoD is refused before it becomes Python ints."""
    data = lod_stream(5, (1,), F32, [*range(1, 100_000), 0])

    def read() -> None:
        with pytest.raises(InvalidLoDError, match="decreases from 99999 to 0 at position 99999"):
            read_lod_tensor(data)

    assert memory_of(read) < 1_000_000


def test_parameters_of_a_model_in_memory():
    program = block(0, -1, tensor_var("w", 5, (2,), number(3, 1)))
    scope = Scope()
    load_from_buffers(program, lod_stream(5, (2,), F32 * 2), scope)
    assert scope.find_var("w").get().array.tolist() == [1.0, 1.0]
    for params, message in (
        (b"", r"'w' \(at offset 0 of the parameter buffer\): .* only 0 are left"),
        (lod_stream(5, (2,), F32 * 2) + b"x", r"the parameter buffer: 1 of \d+ bytes are left behind"),
        (header() + tensor_stream(5, (3,), F32 * 3), r"got float32\[3\], but the program expects float32\[2\]"),
    ):
        fresh = Scope()
        with pytest.raises(CorruptParameterError, match=message):
            load_from_buffers(program, params, fresh)
        assert fresh.local_var_names() == []


def test_all_of_them_are_model_errors():
    for error in (BlockCycleError, CorruptModelError, CorruptParameterError, OversizedTensorError):
        assert issubclass(error, ModelError) and issubclass(error, ValueError)
