"""Fused all-reduces without common memory: what is done to a buffer is done to its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope
from oprack.errors import UnimplementedError
from oprack.testing.worlds import ThreadWorld
from oprack.types import VarType
from oprack_collective.unfuse import unfuse_all_reduce

X = np.arange(6, dtype="float32").reshape(2, 3)


def fused(ops: list[tuple[str, dict[str, Any], dict[str, Any], dict[str, Any]]], **attrs: Any) -> Program:
    """A program in which a and b get a buffer, and then these ops run."""
    program = Program()
    block = program.global_block()
    for name, shape in (("x", (2, 3)), ("a", (2, 3)), ("b", (2, 3)), ("buffer", (12,)), ("part", (6,))):
        block.create_var(name, shape=shape, dtype=VarType.FP32)
    given = {"dtype": 5, "copy_data": False, "set_constant": False, **attrs}
    block.append_op("coalesce_tensor", {"Input": ["x", "x"]}, {"Output": ["a", "b"], "FusedOutput": "buffer"}, given)
    for op in ops:
        block.append_op(*op)
    return program


WRITES = [
    ("scale", {"X": "x"}, {"Out": "a"}, {"scale": 2.0}),
    ("scale", {"X": "x"}, {"Out": "b"}, {"scale": 3.0}),
]
SUM = ("c_allreduce_sum", {"X": "buffer"}, {"Out": "buffer"}, {"ring_id": 0})


def on_two_ranks(program: Program) -> list[np.ndarray]:
    def rank(world: Any) -> list[np.ndarray]:
        return Executor().run(program, feed={"x": X * (world.rank + 1)}, fetch_list=["a", "b"], scope=Scope())

    return ThreadWorld(2).run(rank)[0]


def test_sums_of_what_is_written_into_the_buffer() -> None:
    waits = ("c_sync_comm_stream", {"X": ["buffer"]}, {"Out": ["buffer"]}, {"ring_id": 0})
    depends = ("depend", {"X": "a", "Dep": ["buffer"]}, {"Out": "a"}, {})
    program = fused([*WRITES, SUM, waits, depends])
    found = unfuse_all_reduce(program.desc)
    assert [op.type for op in found.blocks[0].ops] == [
        *("scale", "scale", "c_allreduce_sum", "c_allreduce_sum", "c_sync_comm_stream", "depend")
    ]
    assert found.blocks[0].ops[4].input("X") == found.blocks[0].ops[5].input("Dep") == ["a", "b"]
    assert [op.origin for op in found.blocks[0].ops] == [1, 2, 3, 3, 4, 5]
    a, b = on_two_ranks(program)
    np.testing.assert_array_equal(a, 2 * (X + 2 * X))
    np.testing.assert_array_equal(b, 3 * (X + 2 * X))
    assert program.global_block().ops[0].type == "coalesce_tensor"  # the program itself stays as it is


def test_parts_that_begin_with_a_value() -> None:
    add = ("elementwise_add", {"X": "a", "Y": "x"}, {"Out": "a"}, {})
    a, b = on_two_ranks(fused([add, SUM], set_constant=True, constant=10.0))
    np.testing.assert_array_equal(a, 20 + 3 * X)
    np.testing.assert_array_equal(b, np.full((2, 3), 20.0))


def test_what_needs_no_common_memory_stays() -> None:
    reads = ("scale", {"X": "buffer"}, {"Out": "part"}, {"scale": 2.0})
    program = fused([reads], copy_data=True)
    assert unfuse_all_reduce(program.desc) is program.desc


@pytest.mark.parametrize(
    "op",
    [
        ("c_reducescatter", {"X": "buffer"}, {"Out": "part"}, {"nranks": 2}),
        ("c_allreduce_sum", {"X": "buffer"}, {"Out": "part"}, {"ring_id": 0}),
        ("c_allgather", {"X": "buffer"}, {"Out": "buffer"}, {"nranks": 1}),
    ],
)
def test_other_uses_of_the_buffer_are_refused(op: Any) -> None:
    with pytest.raises(UnimplementedError, match=f"op {op[0]} uses 'buffer', the common memory .* gives a, b"):
        unfuse_all_reduce(fused([*WRITES, op]).desc)


def test_what_is_written_before_needs_no_common_memory() -> None:
    program = Program()
    block = program.global_block()
    for name, shape in (("x", (2, 3)), ("a", (2, 3)), ("buffer", (6,)), ("out", (6,))):
        block.create_var(name, shape=shape, dtype=VarType.FP32)
    block.append_op("scale", {"X": "x"}, {"Out": "a"}, {"scale": 2.0})
    given = {"dtype": 5, "copy_data": True, "set_constant": False, "use_align": False}
    block.append_op("coalesce_tensor", {"Input": ["a"]}, {"Output": ["a"], "FusedOutput": "buffer"}, given)
    block.append_op("scale", {"X": "buffer"}, {"Out": "out"}, {"scale": 3.0})
    assert unfuse_all_reduce(program.desc) is program.desc
    (out,) = Executor().run(program, feed={"x": X}, fetch_list=["out"], scope=Scope())
    np.testing.assert_array_equal(out, 6 * X.reshape(-1))
