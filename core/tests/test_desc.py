"""Desc classes and Program: building, looking up, changing, printing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from oprack.desc import AttrType, BlockDesc, OpDesc, ProgramDesc, VarDesc, VarType
from oprack.errors import AttributeValueError, InvalidArgumentError, NotFoundError
from oprack.program import Program

PROGRAMS = Path(__file__).parents[2] / "tests" / "data" / "programs"


def small() -> Program:
    program = Program()
    block = program.global_block()
    block.create_var("x", dtype="float32", shape=[-1, 4])
    block.create_var("w", dtype="float32", shape=[4, 2], persistable=True, is_parameter=True)
    block.create_var("y", dtype="float32", shape=[-1, 2], lod_level=1)
    block.append_op("mul", {"X": "x", "Y": ["w"]}, {"Out": "y"}, {"x_num_col_dims": 1, "scale_x": 1.0})
    return program


def test_importing_desc_imports_neither_numpy_nor_protobuf():
    code = "import sys, oprack.desc, oprack.program; print(sorted({'numpy', 'google.protobuf'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_build_serialize_parse():
    program = Program.parse(small().serialize())
    block = program.global_block()
    (op,) = block.ops
    assert op.type == "mul"
    assert (op.input("X"), op.input("Y"), op.input("Absent"), op.output("Out")) == (["x"], ["w"], [], ["y"])
    assert op.input_arg_names() == ["x", "w"] and op.output_arg_names() == ["y"]
    assert op.attrs == {"x_num_col_dims": 1, "scale_x": 1.0}
    assert op.attr_types == {"x_num_col_dims": AttrType.INT, "scale_x": AttrType.FLOAT}
    w, y = block.var("w"), block.var("y")
    assert (w.type, w.dtype, w.shape, w.persistable, w.is_parameter) == (
        VarType.LOD_TENSOR,
        VarType.FP32,
        (4, 2),
        True,
        True,
    )
    assert (y.lod_level, y.persistable, y.stop_gradient, y.need_check_feed) == (1, False, False, False)


def test_program_answers():
    program = Program.parse((PROGRAMS / "while_loop" / "model.pdmodel").read_bytes())
    assert len(program.blocks) == 2 and program.block(1) is program.blocks[1]
    assert {"while", "matmul_v2", "less_than", "feed"} <= program.op_types()
    assert {"x", "tmp_3"} <= {var.name for var in program.list_vars()}
    assert repr(program) == "<Program: 2 blocks, 17 ops>"
    with pytest.raises(NotFoundError, match="block 2 does not exist; the program has blocks 0 to 1"):
        program.block(2)
    with pytest.raises(NotFoundError, match="block -1"):
        program.block(-1)


def test_printed_program():
    text = str(small())
    assert "block 0:" in text
    assert "  var w: float32[4, 2] persistable is_parameter" in text
    assert "  y = mul(X=['x'], Y=['w'], x_num_col_dims=1, scale_x=1)" in text
    op = OpDesc("while", {"X": []}, {}, {"f": 0.1, "fs": [0.5], "op_callstack": ["File ..."]})
    op.set_attr("sub_block", 1, AttrType.BLOCK)
    assert str(op) == "while(f=0.1, fs=[0.5], sub_block=block 1)"
    rows = VarDesc("g", VarType.SELECTED_ROWS, "float64", lod_level=0, stop_gradient=True)
    assert str(rows) == "g: selected_rows float64 stop_gradient"


def test_variables_are_found_in_parents():
    desc = ProgramDesc()
    outer = desc.block(0)
    outer.create_var("x", dtype="int64", shape=())
    inner = desc.append_block(outer)
    assert (inner.idx, inner.parent, inner.forward_block) == (1, outer, None)
    assert inner.find_var("x") is None and not inner.has_var("x")
    assert inner.find_var_recursive("x") is inner.var("x") is outer.vars["x"]
    inner.create_var("x", dtype="float32")
    assert inner.var("x").dtype is VarType.FP32 and outer.var("x").dtype is VarType.INT64
    assert inner.find_var_recursive("z") is None
    with pytest.raises(NotFoundError, match=r"'xx' is neither in block 1 nor in a parent of it \(did you mean x\?\)"):
        inner.var("xx")
    grad = desc.append_block(outer, forward_block=inner)
    assert grad.forward_block is inner
    assert ProgramDesc.parse(desc.serialize()).block(2).forward_block_idx == 1


def test_create_var_of_a_name_that_exists_sets_only_what_is_given():
    block = ProgramDesc().block(0)
    var = block.create_var("x", dtype="float32", shape=[2])
    assert block.create_var("x", shape=[3], persistable=True) is var
    assert (var.dtype, var.shape, var.persistable) == (VarType.FP32, (3,), True)
    with pytest.raises(InvalidArgumentError, match="'float31' is not a dtype"):
        block.create_var("y", dtype="float31")


def test_ops_are_added_and_removed_anywhere():
    block = ProgramDesc().block(0)
    last = block.append_op("c")
    first = block.prepend_op(OpDesc("a"))
    block.insert_op(1, "b", attrs={"n": 1})
    assert [op.type for op in block.ops] == ["a", "b", "c"]
    block.remove_op(first)
    block.remove_op(-1)
    assert [op.type for op in block.ops] == ["b"]
    with pytest.raises(NotFoundError, match="op c is not in block 0"):
        block.remove_op(last)
    with pytest.raises(NotFoundError, match="1 ops, so there is none at position 1"):
        block.remove_op(1)


def test_renaming():
    block = small().global_block()
    block.rename_var("x", "input")
    assert list(block.vars) == ["input", "w", "y"] and block.vars["input"].name == "input"
    (op,) = block.ops
    assert op.input("X") == ["input"]
    op.rename_input("w", "v")
    op.rename_output("y", "z")
    assert op.input("Y") == ["v"] and op.output("Out") == ["z"]
    with pytest.raises(NotFoundError, match="no variable 'x' to rename to 'input'"):
        block.rename_var("x", "input")
    block.remove_var("input")
    block.remove_var("input")
    assert "input" not in block.vars


def test_clone_shares_nothing():
    program = Program.parse((PROGRAMS / "while_loop" / "model.pdmodel").read_bytes())
    before = program.serialize()
    copy = program.clone()
    block = copy.global_block()
    block.vars["x"].shape = (7,)
    block.ops[0].inputs["X"][0] = "other"
    block.ops[2].attrs["shape"].append(9)
    block.ops[3].set_attr("axis", 5)
    copy.desc.op_version_map.clear()
    copy.desc.append_block(block)
    assert block.program is copy.desc
    assert program.serialize() == before != copy.serialize()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, AttrType.BOOLEAN),
        (2**31 - 1, AttrType.INT),
        (2**31, AttrType.LONG),
        (1.0, AttrType.FLOAT),
        ("s", AttrType.STRING),
        (1j, AttrType.SCALAR),
        ([1, 2], AttrType.INTS),
        ([1, 2**40], AttrType.LONGS),
        ((1, 2.5), AttrType.FLOATS),
        ([True], AttrType.BOOLEANS),
        (["a"], AttrType.STRINGS),
    ],
)
def test_type_of_an_attribute_from_its_value(value, kind):
    op = OpDesc("some_op", attrs={"a": value})
    assert op.attr_types["a"] is kind
    assert op.attr("a") == (list(value) if isinstance(value, tuple) else value)
    assert op.attr("b") is None and op.attr("b", 3) == 3


def test_numpy_values_become_plain_ones():
    np = pytest.importorskip("numpy")
    op = OpDesc("some_op", attrs={"b": np.bool_(True), "i": np.int64(3), "f": np.float32(0.5), "l": [np.int32(1)]})
    assert op.attrs == {"b": True, "i": 3, "f": 0.5, "l": [1]}
    assert [type(v) for v in op.attrs.values()] == [bool, int, float, list]
    assert op.attr_types["b"] is AttrType.BOOLEAN


def test_blocks_as_attributes():
    desc = ProgramDesc()
    subs = [desc.append_block(desc.block(0)) for _ in range(2)]
    op = desc.block(0).append_op("while", attrs={"sub_block": subs[0], "blocks": subs})
    assert op.block_attrs() == {"sub_block": [1], "blocks": [1, 2]}
    assert list(op.sub_blocks()) == [1, 1, 2]
    assert op.attr_types == {"sub_block": AttrType.BLOCK, "blocks": AttrType.BLOCKS}
    assert ProgramDesc.parse(desc.serialize()).block(0).ops[0].attrs == {"sub_block": 1, "blocks": [1, 2]}


def test_an_attribute_keeps_its_type():
    op = OpDesc("some_op", attrs={"f": 1.5, "l": []}, attr_types={"l": AttrType.LONGS})
    op.set_attr("f", 2)
    op.set_attr("l", [1])
    assert op.attr_types == {"f": AttrType.FLOAT, "l": AttrType.LONGS} and op.attrs == {"f": 2.0, "l": [1]}
    op.set_attr("f", "now a name", AttrType.VAR)
    assert op.attr_types["f"] is AttrType.VAR


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ([], None, r"op some_op: attribute 'a': the attribute type of \[\] can't be told; pass it, for example type="),
        ([1, "s"], None, r"the attribute type of \[1, 's'\] can't be told"),
        ({}, None, r"\{\} \(dict\) can't be an attribute; expected bool, int of 64 bits"),
        (2**70, None, "can't be an attribute"),
        (2**31, AttrType.INT, "2147483648 can't be an attribute of type INT; expected an int of 32 bits"),
        (True, AttrType.INT, "True can't be an attribute of type INT"),
        ("s", AttrType.FLOAT, "'s' can't be an attribute of type FLOAT; expected a float"),
        ([1, 2.5], AttrType.INTS, r"\[1, 2.5\] can't be an attribute of type INTS; expected a list of ints of 32"),
        (3, AttrType.STRINGS, "expected a list of str"),
    ],
)
def test_values_that_are_no_attributes(value, kind, message):
    with pytest.raises(AttributeValueError, match=message):
        OpDesc("some_op").set_attr("a", value, kind)


def test_values_that_bypass_set_attr_are_found_when_written():
    desc = ProgramDesc()
    op = desc.block(0).append_op("some_op", attrs={"axis": 1})
    op.attrs["axis"] = "one"
    with pytest.raises(AttributeValueError, match=r"'axis' is 'one', which can't be written as INT .*set_attr"):
        desc.serialize()
    op.attrs["axis"] = 2**40
    with pytest.raises(AttributeValueError, match="attribute 'axis' is 1099511627776"):
        desc.serialize()
    op.attrs["axis"] = 1
    op.inputs["X"] = [3]
    with pytest.raises(InvalidArgumentError, match="op some_op of block 0 can't be written"):
        desc.serialize()
    op.inputs["X"] = ["x"]
    desc.block(0).create_var("x", dtype="float32").shape = ("a",)
    with pytest.raises(InvalidArgumentError, match="variable 'x' of block 0 can't be written"):
        desc.serialize()


def test_attributes_set_without_a_type_get_that_of_their_value():
    desc = ProgramDesc()
    op = desc.block(0).append_op("some_op")
    op.attrs["axes"] = [3]
    assert ProgramDesc.parse(desc.serialize()).block(0).ops[0].attr_types == {"axes": AttrType.INTS}
    op.attrs["axes"] = []
    with pytest.raises(AttributeValueError, match=r"op some_op: attribute 'axes' is \[\], which .*set_attr"):
        desc.serialize()


def test_a_block_belongs_to_its_program():
    desc = ProgramDesc()
    assert isinstance(desc.block(0), BlockDesc)
    assert repr(desc.block(0)) == "<BlockDesc 0: 0 ops, 0 vars>"
    assert repr(desc) == "<ProgramDesc: 1 blocks, 0 ops>"
    assert desc.block(0).program is desc
    assert VarDesc("x").dtype_name() is None


def test_a_gradient_block_finds_the_variables_of_its_forward_block() -> None:
    program = ProgramDesc()
    root = program.block(0)
    forward = program.append_block(root)
    gradient = program.append_block(root, forward)
    root.create_var("x", dtype="float32")
    hidden = forward.create_var("h", dtype="float64")
    forward.create_var("x", dtype="int64")
    assert gradient.var("h") is hidden
    # the scopes of the forward block are nearer than the outer ones
    assert gradient.var("x").dtype_name() == "int64"
    # blocks that name each other, as only a hostile file has them, end the search all the same
    forward.forward_block_idx = gradient.idx
    assert gradient.find_var_recursive("nowhere") is None
