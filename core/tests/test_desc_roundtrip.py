"""Programs come out of a round trip as they went in, byte by byte, with all that the Desc classes do not know."""

from __future__ import annotations

import json
import math
import struct
import time
from pathlib import Path

import numpy as np
import pytest
from oprack.desc import AttrType, ProgramDesc, VarType
from oprack.program import Program
from wire_bytes import attr, block, chunk, double, number, op, single, slot, tensor_var

DATA = Path(__file__).parents[2] / "tests" / "data"
PROGRAMS = sorted((DATA / "programs").glob("*/*.pdmodel"))
CASES = sorted((DATA / "cases").rglob("*.npz"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_program_files(path):
    data = path.read_bytes()
    program = Program.parse(data)
    assert program.serialize() == data
    assert program.clone().serialize() == data


def test_programs_of_every_case_file():
    """The first and the last case of each op: forward, backward and double backward programs of 2.6.2 and 1.8.5."""
    done = 0
    for path in CASES:
        with np.load(path, allow_pickle=False) as file:
            heads = json.loads(file["cases"].tobytes())
            stored = file["data_uint8"] if "data_uint8" in file.files else np.empty(0, np.uint8)
        for head in (heads[0], heads[-1]):
            for key, (_, offset, shape) in head["arrays"].items():
                if key in ("program", "program_grad", "program_grad2"):
                    data = stored[offset : offset + shape[0]].tobytes()
                    assert ProgramDesc.parse(data).serialize() == data, (path.name, head["id"], key)
                    done += 1
    assert done > 800


VALUES = [
    (AttrType.INT, number(3, -1), -1),
    (AttrType.FLOAT, single(4, 0.1), struct.unpack("<f", struct.pack("<f", 0.1))[0]),
    (AttrType.STRING, chunk(5, "größe"), "größe"),
    (AttrType.INTS, number(6, 3) + number(6, -4), [3, -4]),
    (AttrType.FLOATS, single(7, 1.5) + single(7, math.inf), [1.5, math.inf]),
    (AttrType.STRINGS, chunk(8, "a") + chunk(8, ""), ["a", ""]),
    (AttrType.BOOLEAN, number(10, 1), True),
    (AttrType.BOOLEANS, number(11, 1) + number(11, 0), [True, False]),
    (AttrType.BLOCK, number(12, 1), 1),
    (AttrType.LONG, number(13, 2**40), 2**40),
    (AttrType.BLOCKS, number(14, 1), [1]),
    (AttrType.LONGS, number(15, -(2**40)), [-(2**40)]),
    (AttrType.FLOAT64S, double(16, 0.1), [0.1]),
    (AttrType.VAR, chunk(17, "x"), "x"),
    (AttrType.VARS, chunk(18, "x") + chunk(18, "y"), ["x", "y"]),
    (AttrType.FLOAT64, double(19, 0.1), 0.1),
    (AttrType.SCALAR, chunk(20, number(1, 1) + number(2, 1)), True),
    (AttrType.SCALAR, chunk(20, number(1, 2) + number(3, -7)), -7),
    (AttrType.SCALAR, chunk(20, number(1, 3) + double(4, 2.5)), 2.5),
    (AttrType.SCALARS, chunk(21, number(1, 4) + chunk(5, double(1, 1.0) + double(2, -2.0))), [1 - 2j]),
]


@pytest.mark.parametrize(("kind", "wire", "value"), VALUES, ids=[f"{k.name}-{v}" for k, _, v in VALUES])
def test_attribute_of_every_type(kind, wire, value):
    data = block(0, -1, op("some_op", attr("a", kind, wire))) + block(1, 0)
    desc = ProgramDesc.parse(data)
    one = desc.block(0).ops[0]
    assert one.attrs == {"a": value} and type(one.attrs["a"]) is type(value)
    assert one.attr_types == {"a": kind}
    assert desc.serialize() == data
    one.set_attr("a", value)
    assert desc.serialize() == data


def test_binary_text_survives():
    data = block(0, -1, op("engine", attr("blob", 2, chunk(5, b"\xff\x00\xfe")), attr("blobs", 5, chunk(8, b"\x80"))))
    assert ProgramDesc.parse(data).serialize() == data


def test_a_float_keeps_all_its_bits():
    for bits in (0x00000001, 0x7F7FFFFF, 0x80000000, 0x3DCCCCCD):
        value = struct.unpack("<f", struct.pack("<I", bits))[0]
        data = block(0, -1, op("some_op", attr("f", 1, single(4, value))))
        assert ProgramDesc.parse(data).serialize() == data


def test_optional_fields_that_are_set_to_their_default():
    flags = number(3, 0) + number(4, 0) + number(5, 0) + number(6, 0)
    lod_level = chunk(3, chunk(1, "x") + chunk(2, number(1, 7) + chunk(3, chunk(1, number(1, 5)) + number(2, 0))))
    for data in (
        block(0, -1, tensor_var("x", 5, (), flags)),
        block(0, -1, lod_level),
        block(0, -1, chunk(4, chunk(3, "some_op") + number(5, 0))),
        block(0, -1, number(5, -1)),
        block(0, -1) + chunk(4, number(1, 0)),
        block(0, -1) + chunk(4, b"") + chunk(5, b""),
    ):
        desc = ProgramDesc.parse(data)
        assert desc.serialize() == data
        assert desc.clone().serialize() == data


def test_order_of_slots_attributes_and_variables():
    data = block(
        0,
        -1,
        tensor_var("z", 5, (1,)),
        tensor_var("a", 5, (2,)),
        op("some_op", attr("z", 0, number(3, 1)), attr("a", 0, number(3, 2))),
    )
    assert ProgramDesc.parse(data).serialize() == data
    slots = chunk(4, slot(1, "Z", "z", "z") + slot(1, "A") + slot(2, "Out", "a") + chunk(3, "some_op"))
    desc = ProgramDesc.parse(block(0, -1, slots))
    assert desc.block(0).ops[0].inputs == {"Z": ["z", "z"], "A": []}
    assert desc.serialize() == block(0, -1, slots)


def test_attributes_that_come_twice():
    """Training programs of 2.x repeat some; the last one counts, and both are written."""
    data = block(0, -1, op("some_op", *[attr(n, 6, number(10, 0)) for n in ("use_mkldnn", "axis", "use_mkldnn")]))
    desc = ProgramDesc.parse(data)
    assert desc.serialize() == data
    one = desc.block(0).ops[0]
    one.remove_attr("axis")
    one.set_attr("new", 3)
    again = ProgramDesc.parse(desc.serialize()).block(0).ops[0]
    assert again.attrs == {"use_mkldnn": False, "new": 3}


# Field 3 of a program of Fluid 1.6 to 1.8: which versions of the ops it agrees with
COMPATIBLE_MAP = chunk(3, chunk(1, chunk(1, "gru") + chunk(2, chunk(1, "1.6.0") + number(2, 1))) + chunk(2, "1.5.0"))


def test_fluid_1_program():
    """Its field 3 comes back with the same bytes, behind the fields that are known."""
    body, version = block(0, -1, op("gru")), chunk(4, number(1, 1006003))
    desc = ProgramDesc.parse(body + COMPATIBLE_MAP + version)
    assert desc.version == 1006003
    assert desc.op_version_map == {}
    assert desc.serialize() == body + version + COMPATIBLE_MAP
    assert desc.clone().serialize() == body + version + COMPATIBLE_MAP


def test_unknown_fields_at_every_level():
    """Fields 90 and up, of all four wire types, in each message that a program is made of."""
    extra = number(90, 7) + chunk(91, "text") + single(92, 1.0) + double(93, 2.0)
    tensor = chunk(1, number(1, 5) + number(2, 8) + extra)
    var = chunk(3, chunk(1, "x") + chunk(2, number(1, 7) + chunk(3, tensor + number(2, 1) + extra) + extra) + extra)
    scalar = chunk(20, number(1, 4) + chunk(5, double(1, 1.0) + double(2, 2.0) + extra) + extra)
    one = chunk(
        4,
        chunk(1, chunk(1, "X") + chunk(2, "x") + extra)
        + chunk(2, chunk(1, "Out") + chunk(2, "x") + extra)
        + chunk(3, "some_op")
        + chunk(4, chunk(1, "s") + number(2, 16) + scalar + extra)
        + extra,
    )
    pair = chunk(1, chunk(1, "some_op") + chunk(2, number(1, 2) + extra) + extra)
    data = (
        chunk(1, number(1, 0) + number(2, -1) + var + one + extra)
        + chunk(4, number(1, 2006002) + extra)
        + chunk(5, pair + extra)
        + extra
    )
    desc = ProgramDesc.parse(data)
    assert desc.serialize() == data
    assert desc.clone().serialize() == data
    # What is edited changes, what is removed takes its own along, the rest stays
    desc.block(0).vars["x"].shape = (9,)
    assert desc.serialize() == data.replace(number(1, 5) + number(2, 8), number(1, 5) + number(2, 9))
    desc.block(0).ops.clear()
    assert len(desc.serialize()) == len(data) - len(one)
    assert ProgramDesc.parse(desc.serialize()).serialize() == desc.serialize()


def test_fields_that_the_classes_have_no_place_for():
    reader = chunk(2, number(1, 15) + chunk(5, chunk(1, chunk(1, number(1, 5) + number(2, 3)) + number(2, 1))))
    pair = chunk(2, number(1, 18) + chunk(7, number(1, 5) + number(1, 3)))
    both = chunk(2, number(1, 7) + chunk(2, number(1, 5)) + chunk(3, chunk(1, number(1, 3))))
    var_attrs = chunk(7, chunk(1, "process_mesh") + number(2, 2) + chunk(4, b"\xff"))
    for kind in (reader, pair, both):
        data = block(0, -1, chunk(3, chunk(1, "x") + kind + number(3, 1) + var_attrs))
        assert ProgramDesc.parse(data).serialize() == data
    data = block(0, -1, op("some_op", attr("a", 0, number(3, 1) + chunk(5, "stray"))))
    assert ProgramDesc.parse(data).serialize() == data


@pytest.mark.parametrize(
    ("kind", "field"),
    [(8, 2), (25, 8), (26, 9), (27, 10), (30, 11), (31, 12)],
    ids=["SELECTED_ROWS", "STRING", "STRINGS", "VOCAB", "SPARSE_COO", "SPARSE_CSR"],
)
def test_variables_with_a_plain_tensor_desc(kind, field):
    var_type = number(1, kind) + chunk(field, number(1, 6) + number(2, -1))
    data = block(0, -1, chunk(3, chunk(1, "x") + chunk(2, var_type)))
    desc = ProgramDesc.parse(data)
    var = desc.block(0).vars["x"]
    assert (var.type, var.dtype, var.shape, var.lod_level) == (VarType(kind), VarType.FP64, (-1,), 0)
    assert desc.serialize() == data


def test_lod_tensor_array():
    var_type = number(1, 13) + chunk(4, chunk(1, number(1, 5)) + number(2, 2))
    data = block(0, -1, chunk(3, chunk(1, "x") + chunk(2, var_type)))
    desc = ProgramDesc.parse(data)
    var = desc.block(0).vars["x"]
    assert (var.type, var.shape, var.lod_level) == (VarType.LOD_TENSOR_ARRAY, (), 2)
    assert desc.serialize() == data


def test_packed_dims_and_attributes_are_read():
    """Fluid never writes them, but a proto2 reader has to take them."""
    packed = chunk(3, chunk(1, "x") + chunk(2, number(1, 7) + chunk(3, chunk(1, number(1, 5) + chunk(2, b"\x02\x03")))))
    desc = ProgramDesc.parse(block(0, -1, packed, op("some_op", attr("a", 3, chunk(6, b"\x01\x02")))))
    assert desc.block(0).vars["x"].shape == (2, 3)
    assert desc.block(0).ops[0].attrs == {"a": [1, 2]}


def test_a_program_of_2000_ops_parses_fast():
    attrs = [attr(f"attr_{i}", 0, number(3, i)) for i in range(10)]
    ops = [op("some_op", *attrs, slot(1, "X", f"x{i}"), slot(2, "Out", f"x{i + 1}")) for i in range(2000)]
    data = block(0, -1, *[tensor_var(f"x{i}", 5, (-1, 64)) for i in range(2001)], *ops)
    took = []
    for _ in range(5):
        start = time.process_time()
        desc = ProgramDesc.parse(data)
        took.append(time.process_time() - start)
    assert len(desc.block(0).ops) == 2000
    assert min(took) < 0.3
