"""What an op reaches through its blocks and attributes."""

from __future__ import annotations

from oprack.desc import AttrType, OpDesc, ProgramDesc
from oprack.desc.reach import inner_blocks, named_by_attributes, read_inside, reads, writes, written_inside
from oprack.io.export import prune


def nested() -> tuple[ProgramDesc, OpDesc]:
    """An op `outer` in block 0 that runs block 1, in which an op runs block 2; the op of block 2 has an attribute."""
    program = ProgramDesc()
    block = program.blocks[0]
    first = program.append_block(block)
    second = program.append_block(first)
    first.create_var("local")
    first.create_var("table", persistable=True)
    axis = OpDesc("sum", {"X": ["local", "w"]}, {"Out": ["h"]}, {"axis": "k"}, {"axis": AttrType.VAR})
    second.append_op(axis)
    second.append_op("take", {"X": ["@EMPTY@", "h"], "Shape": "size"}, {"Out": ["local"]})
    first.append_op(OpDesc("inner", {"X": ["x"]}, {"Out": ["table"]}, {"block": 2}, {"block": AttrType.BLOCK}))
    outer = OpDesc("outer", {"X": ["x"]}, {"Out": ["y"]}, {"block": 1}, {"block": AttrType.BLOCK})
    block.append_op(outer)
    return program, outer


def test_blocks_inside_blocks_are_reached_but_what_they_declare_is_theirs() -> None:
    program, op = nested()
    assert inner_blocks(op, program) == program.blocks[1:]
    assert reads(op, program) == ["x", "w", "k", "h", "size"]
    assert writes(op, program) == ["y", "table", "h"]
    assert read_inside(op, program, lambda one: ("Shape",)) == ["x", "w", "k", "h"]
    assert written_inside(op, program) == ["table", "h"]


def test_which_attributes_name_variables() -> None:
    values = {"axis": "k", "sizes": ["m", "n"], "mode": "mean", "op_callstack": ["line"], "op_role_var": ["w", "g"]}
    types = {"axis": AttrType.VAR, "sizes": AttrType.VARS}
    op = OpDesc("pool", {}, {}, values, types)
    assert named_by_attributes(op) == ["k", "m", "n"]
    # text of an op that runs a block says how the block calls a value
    values |= {"states": ["h"], "skip_eager_deletion_vars": ["t"], "block": 1}
    types |= {"block": AttrType.BLOCK}
    op = OpDesc("rnn", {}, {}, values, types)
    assert named_by_attributes(op) == ["k", "m", "n", "mean", "h"]
    program = ProgramDesc()
    program.append_block(program.blocks[0]).create_var("h")
    assert reads(op, program) == ["k", "m", "n", "mean"]


def test_pruning_takes_text_for_text() -> None:
    """`reduction="mean"` is no reason to keep an op that computes a variable named mean, and to ask for its feeds."""
    program = ProgramDesc()
    block = program.blocks[0]
    for name in ("x", "label", "mean", "k", "y"):
        block.create_var(name)
    block.append_op("average", {"X": "label"}, {"Out": "mean"})
    block.append_op("size", {"X": "x"}, {"Out": "k"})
    attrs = {"reduction": "mean", "axis": "k"}
    block.append_op(OpDesc("reduce", {"X": "x"}, {"Out": "y"}, attrs, {"axis": AttrType.VAR}))
    prune(program, ["x"], ["y"])
    assert [op.type for op in block.ops] == ["size", "reduce"]
    assert list(block.vars) == ["x", "k", "y"]
