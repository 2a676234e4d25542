"""What passes may rely on: dims and dtypes that hold in every run, whatever a program declares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oprack.desc import BlockDesc, ProgramDesc
from oprack.ir import Graph, one_dtype, optimize
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.testing import PassCase
from oprack.types import AttrType

IMAGE = np.zeros((2, 3, 8, 6), np.float32)


def graph_of(
    ops: list[tuple[Any, ...]], feeds: dict[str, Any], params: dict[str, Any] | None = None, **more: Any
) -> Graph:
    program, scope = PassCase(feeds, params or {}, ops, **more).build()
    return Graph(program.desc, scope=scope)


def shapes(graph: Graph, *names: str) -> list[tuple[int, ...] | None]:
    return [graph.versions(name)[-1].shape for name in names]


def conv(x: str, w: str, y: str) -> tuple[Any, ...]:
    return "conv2d", {"Input": x, "Filter": w}, {"Output": y}, {"paddings": [1, 1]}


def test_sizes_of_feeds_count_where_they_are_checked() -> None:
    ops = [conv("x", "w", "y"), ("relu", {"X": "y"}, {"Out": "z"}, {})]
    params = {"w": np.zeros((4, 3, 3, 3), np.float32)}
    open_sizes = graph_of(ops, {"x": IMAGE}, params, checked=False)
    assert shapes(open_sizes, "x", "y", "z") == [(-1,) * 4, (-1, 4, -1, -1), (-1, 4, -1, -1)]
    assert open_sizes.versions("y")[0].expected_shape == (-1, 4, 8, 6)
    assert shapes(graph_of(ops, {"x": IMAGE}, params), "z") == [(-1, 4, 8, 6)]


def test_parameters_are_what_the_scope_holds() -> None:
    program, scope = PassCase({"x": IMAGE}, {"w": np.zeros((4, 3, 3, 3), np.float32)}, [conv("x", "w", "y")]).build()
    scope.var("w").set(np.zeros((5, 3, 1, 1), np.float64))
    graph = Graph(program.desc, scope=scope)
    w, y = graph.versions("w")[0], graph.versions("y")[0]
    assert (w.shape, w.dtype) == ((5, 3, 1, 1), "float64") and y.shape == (-1, 5, 10, 8)
    assert y.dtype is None and not one_dtype([w, y]), "which dtype a kernel gives for two is not known"


def test_each_write_of_a_name_has_its_own_dims() -> None:
    ops = [
        ("reshape2", {"X": "x"}, {"Out": "y", "XShape": "s"}, {"shape": [0, 144]}),
        ("relu", {"X": "y"}, {"Out": "y"}, {}),
        ("reshape2", {"X": "y"}, {"Out": "y", "XShape": "s"}, {"shape": [0, 12, 12]}),
    ]
    graph = graph_of(ops, {"x": IMAGE})
    assert [v.shape for v in graph.versions("y")] == [(-1, 144), (-1, 144), (-1, 12, 12)]


def test_an_attribute_that_a_tensor_overrides_is_no_fact() -> None:
    reshape = ("reshape2", {"X": "x", "ShapeTensor": ["n", "m"]}, {"Out": "y", "XShape": "s"}, {"shape": [2, 144]})
    feeds = {"x": IMAGE, "n": np.array([2], np.int32), "m": np.array([144], np.int32)}
    assert shapes(graph_of([reshape], feeds), "y") == [(-1, -1)]


def test_squeezing_a_dim_of_unknown_size_leaves_the_rank_open() -> None:
    ops = [
        ("squeeze2", {"X": "x"}, {"Out": "y", "XShape": "s"}, {"axes": [2]}),
        ("transpose2", {"X": "y"}, {"Out": "z", "XShape": "t"}, {"axis": [0, 2, 1]}),
    ]
    graph = graph_of(ops, {"x": IMAGE[:, :, :1]}, checked=False)
    assert shapes(graph, "y", "z") == [None, (-1, -1, -1)], "only rank 3 can be transposed so"


def test_an_op_that_no_value_fits_is_left_alone() -> None:
    ops = [conv("x", "w", "y"), ("relu", {"X": "y"}, {"Out": "z"}, {})]
    program, scope = PassCase({"x": IMAGE}, {"w": np.zeros((4, 3, 3, 3), np.float32)}, ops).build()
    scope.var("w").set(np.zeros((4, 7, 3, 3), np.float32))
    graph = Graph(program.desc, scope=scope)
    assert [op.opaque for op in graph.ops] == [True, False] and shapes(graph, "y") == [None]


def growing_loop() -> tuple[ProgramDesc, Scope]:
    """c = concat(c, x) three times; x and c are [2, 4], then c is [2, 8] ..."""
    program, scope = ProgramDesc(), Scope()
    block = program.blocks[0]
    for name, dtype, shape in (("x", "float32", [-1, 4]), ("c", "float32", [-1, 4]), ("kept", "float32", [-1, 4])):
        block.create_var(name, dtype=dtype, shape=shape, need_check_feed=True)
    for name in ("i", "n"):
        block.create_var(name, dtype="int64", shape=[1])
    block.create_var("more", dtype="bool", shape=[1])
    block.create_var("scopes", type=11)
    body: BlockDesc = program.append_block(block)
    body.append_op("concat", {"X": ["c", "x"]}, {"Out": "c"}, {"axis": 1})
    body.append_op("increment", {"X": "i"}, {"Out": "i"}, {"step": 1.0})
    body.append_op("less_than", {"X": "i", "Y": "n"}, {"Out": "more"}, {})
    block.append_op("assign", {"X": "x"}, {"Out": "c"})
    block.append_op("relu", {"X": "x"}, {"Out": "kept"})
    block.append_op("fill_constant", {}, {"Out": "i"}, {"shape": [1], "dtype": 3, "value": 0.0})
    block.append_op("fill_constant", {}, {"Out": "n"}, {"shape": [1], "dtype": 3, "value": 3.0})
    block.append_op("less_than", {"X": "i", "Y": "n"}, {"Out": "more"}, {})
    while_ = block.append_op(
        "while", {"X": ["c", "x", "i", "n"], "Condition": "more"}, {"Out": ["c", "i", "more"], "StepScopes": "scopes"}
    )
    while_.set_attr("sub_block", body.idx, AttrType.BLOCK)
    return program, scope


def test_what_a_loop_writes_has_the_dims_of_every_round() -> None:
    program, scope = growing_loop()
    outside, inside = Graph(program, scope=scope), Graph(program, 1, scope=scope)
    assert shapes(outside, "c", "kept", "i") == [(-1, -1), (-1, 4), (1,)]
    assert inside.versions("c")[0].shape == (-1, -1) and inside.versions("x")[0].shape == (-1, 4)


def test_a_loop_that_grows_a_tensor_gives_the_same_after_all_passes() -> None:
    program, scope = growing_loop()
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    (got,) = Executor().run(optimize(program, scope, keep=["c"], debug=True).program, {"x": x}, ["c"], scope)
    np.testing.assert_array_equal(got, np.tile(x, 4))


@pytest.mark.parametrize("rule", [ZeroDivisionError, IndexError])
def test_a_rule_that_fails_is_no_reason_to_refuse_a_program(
    monkeypatch: pytest.MonkeyPatch, rule: type[Exception]
) -> None:
    from oprack.packs.manager import default_manager

    def fails(ctx: Any) -> None:
        raise rule("no luck")

    program, scope = PassCase({"x": IMAGE}, {}, [("relu", {"X": "x"}, {"Out": "y"}, {})]).build()
    monkeypatch.setattr(default_manager().op_info("relu"), "infer_shape", fails)
    graph = Graph(program.desc, scope=scope)
    assert graph.ops[0].opaque and graph.versions("y")[0].shape is None
