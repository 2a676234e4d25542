"""Graph: versions of variables, what depends on what, changes, and back to a program; the verifier."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import ir_ops
import numpy as np
import pytest
from oprack.desc import ProgramDesc
from oprack.errors import GraphError
from oprack.ir import Graph, OpNode, VarNode, verify
from oprack.ir.verify import Facts
from oprack.packs.manager import PackManager
from oprack.runtime import Executor
from oprack.tensor import Scope
from oprack.testing import PassCase
from oprack.types import AttrType

X = np.array([1.0, 2.0])
W = np.array([3.0, 5.0])


@pytest.fixture(autouse=True)
def more_ops(rack: PackManager) -> Iterator[None]:
    ir_ops.register(rack)
    yield


def graph_of(ops: list[tuple[Any, ...]], params: dict[str, Any] | None = None, **options: Any) -> Graph:
    program, scope = PassCase({"x": X}, params or {}, ops).build()
    return Graph(program.desc, scope=scope, **options)


def op(kind: str, x: str, out: str, y: str | None = None, **attrs: Any) -> tuple[Any, ...]:
    return kind, {"X": x} if y is None else {"X": x, "Y": y}, {"Out": out}, attrs


def run(program: ProgramDesc, scope: Scope | None, *names: str) -> list[Any]:
    return Executor().run(program, {"x": X}, list(names), scope)


# Versions -------------------------------------------------------------------------------------------------------------
def test_each_write_of_a_name_is_a_version() -> None:
    graph = graph_of([op("double", "x", "y"), op("plus", "y", "y", "x"), op("plus", "y", "z", "x")])
    first, second, third = graph.ops
    y = graph.versions("y")
    assert [v.producer for v in y] == [first, second] and [v.version for v in y] == [1, 2]
    assert y[0].consumers == [second] and y[1].consumers == [third]
    assert graph.is_overwritten(y[0]) and not graph.is_overwritten(y[1])
    (x,) = graph.versions("x")
    assert graph.is_external(x) and x.version == 0 and x.consumers == [first, second, third]
    assert second.input("Y") is x and third.output("Out") is graph.versions("z")[0] and third.input("W") is None
    assert repr(y[1]) == "<VarNode y:2>" and repr(third) == "<OpNode z = plus(y, x)>"


def test_the_program_that_comes_back_runs_without_the_graph() -> None:
    ops = [op("double", "x", "y"), op("plus", "y", "y", "w"), op("times", "y", "z", "w", by=2.0)]
    graph = graph_of(ops, {"w": W})
    program, scope = graph.to_program(), graph.scope
    del graph
    assert [o.type for o in program.blocks[0].ops] == ["double", "plus", "times"]
    (z,) = run(program, scope, "z")
    assert (z == (2 * X + W) * W * 2).all()
    assert ProgramDesc.parse(program.serialize()).serialize() == program.serialize()


def test_a_graph_that_is_taken_apart_leaves_nothing_to_the_collector() -> None:
    graph = graph_of([op("double", "x", "a"), op("double", "a", "b"), op("double", "b", "y")], keep={"y"})
    graph.to_program()
    gc.collect()
    assert any(isinstance(o, OpNode) for o in gc.get_objects())
    gc.disable()
    try:
        graph.take_apart()
        del graph
        assert not any(isinstance(o, OpNode | VarNode) for o in gc.get_objects())
    finally:
        gc.enable()


def test_the_given_program_is_not_changed() -> None:
    program, scope = PassCase({"x": X}, {}, [op("double", "x", "y"), op("double", "y", "z")]).build()
    before = program.serialize()
    graph = Graph(program.desc, scope=scope)
    graph.remove_op(graph.ops[1])
    assert len(graph.to_program().blocks[0].ops) == 1 and program.serialize() == before


def test_variables_that_no_op_names_any_more_are_dropped() -> None:
    graph = graph_of([op("double", "x", "y"), op("plus", "x", "z", "w")], {"w": W}, keep=["w"])
    for node in reversed(graph.ops):
        graph.remove_op(node)
    assert set(graph.to_program().blocks[0].vars) == {"w"} and "w" in graph.scope


# Parameters -----------------------------------------------------------------------------------------------------------
def test_a_parameter_is_constant_while_nothing_writes_it() -> None:
    graph = graph_of([op("plus", "x", "y", "w"), op("double", "v", "v")], {"w": W, "v": W})
    (w,), (v, _) = graph.versions("w"), graph.versions("v")
    assert (graph.constant_array(w) == W).all() and graph.constant(v) is None
    assert graph.constant_array(v, [graph.ops[1]]) is not None
    assert graph.constant(graph.versions("x")[0]) is None
    assert Graph(graph.program).constant(w) is None, "without a scope nothing is known"


def test_new_parameters_get_fresh_names_and_originals_stay() -> None:
    graph = graph_of([op("plus", "x", "y", "w")], {"w": W, "w.ir_0": W})
    node = graph.ops[0]
    new = graph.new_parameter(W * 2, "w")
    assert new.name == "w.ir_1" and new.persistable and new.shape == (2,) and new.dtype == "float64"
    assert graph.fresh_name("w.ir_1") == "w.ir_2"
    graph.replace_input(node, graph.versions("w")[0], new)
    spare = graph.new_parameter(W, "w")
    program = graph.to_program()
    assert (run(program, graph.scope, "y")[0] == X + 2 * W).all() and "w" not in program.blocks[0].vars
    assert (graph.scope.get_var("w").get().array == W).all()
    assert spare.name not in graph.scope, "what no op reads is freed"
    with pytest.raises(GraphError, match="a parameter like 'w' can't be added: the graph was made without a scope"):
        Graph(program).new_parameter(W, "w")


# Changes --------------------------------------------------------------------------------------------------------------
def test_ops_are_added_where_they_are_wanted() -> None:
    graph = graph_of([op("double", "x", "y"), op("double", "y", "z")])
    facts = verify(graph)
    first, second = graph.ops
    out = graph.new_var("y")
    new = graph.add_op("plus", {"X": first.outputs["Out"], "Y": first.inputs["X"]}, {"Out": [out]}, before=second)
    graph.replace_input(second, first.outputs["Out"][0], out)
    assert graph.ops == [first, new, second] and out.shape == (-1,) and len(graph) == 3
    assert verify(graph, facts) == facts
    last = graph.add_op("double", {"X": [out]}, {"Out": [graph.new_var("last")]})
    assert graph.ops[-1] is last and repr(graph) == "<Graph of block 0: 4 ops>"
    assert (run(graph.to_program(), None, "z")[0] == 6 * X).all()


def test_an_op_whose_output_is_read_is_not_removed() -> None:
    graph = graph_of([op("double", "x", "y"), op("double", "y", "z")])
    with pytest.raises(GraphError, match=r"y = double.* can.t be removed: .*z = double.* reads .y."):
        graph.remove_op(graph.ops[0])


def test_one_variable_stands_for_another() -> None:
    graph = graph_of([op("double", "x", "y"), op("copy", "y", "c"), op("double", "c", "z")], keep=["z"])
    double, copy, last = graph.ops
    assert graph.replace_var(copy.outputs["Out"][0], double.outputs["Out"][0])
    graph.remove_op(copy)
    assert last.input("X").name == "y" and (run(graph.to_program(), None, "z")[0] == 4 * X).all()


def test_a_kept_name_goes_to_the_variable_that_stands_for_it() -> None:
    graph = graph_of([op("double", "x", "y"), op("copy", "y", "c"), op("double", "y", "z")], keep=["c", "z"])
    double, copy, last = graph.ops
    assert graph.replace_var(copy.outputs["Out"][0], double.outputs["Out"][0])
    graph.remove_op(copy)
    verify(graph)
    assert double.output("Out").name == "c" and last.input("X").name == "c" and not graph.versions("y")
    c, z = run(graph.to_program(), None, "c", "z")
    assert (c == 2 * X).all() and (z == 4 * X).all()


@pytest.mark.parametrize(
    "ops,keep",
    [
        ([op("copy", "x", "c"), op("double", "c", "z")], ["c"]),  # a feed keeps its name
        ([op("double", "x", "y"), op("copy", "y", "c"), op("double", "y", "z")], ["c", "y"]),  # both are kept
        ([op("double", "x", "y"), op("copy", "y", "c"), op("double", "x", "y"), op("plus", "c", "z", "y")], []),
        ([op("double", "x", "c"), op("copy", "c", "y"), op("copy", "y", "c"), op("double", "y", "z")], ["c"]),
        ([op("copy", "w", "c"), op("double", "c", "z")], ["c"]),  # a parameter keeps its name
    ],
)
def test_names_may_forbid_it(ops: list[tuple[Any, ...]], keep: list[str]) -> None:
    graph = graph_of(ops, {"w": W}, keep=keep)
    before = [repr(o) for o in graph.ops]
    copy = [o for o in graph.ops if o.type == "copy"][-1]
    assert not graph.replace_var(copy.outputs["Out"][0], copy.inputs["X"][0])
    assert [repr(o) for o in graph.ops] == before


# Order ----------------------------------------------------------------------------------------------------------------
def test_ops_are_sorted_near_to_where_they_were() -> None:
    graph = graph_of(
        [op("double", "x", "a"), op("double", "x", "b"), op("plus", "a", "c", "b"), op("double", "x", "a")]
    )
    first, second, third, fourth = graph.ops
    graph._ops.reorder([fourth, third, second, first])
    graph.sort()
    assert graph.ops == [second, first, third, fourth], "the second write of a waits for the reader of the first"


def test_a_circle_is_an_error() -> None:
    graph = graph_of([op("double", "x", "y"), op("double", "y", "z")])
    first, second = graph.ops
    graph.replace_input(first, first.inputs["X"][0], second.outputs["Out"][0])
    with pytest.raises(GraphError, match="ops depend on each other in a circle, among them <OpNode y = double"):
        graph.to_program()


# Sub-blocks -----------------------------------------------------------------------------------------------------------
def with_block(ops: list[tuple[Any, ...]], *after: tuple[Any, ...]) -> Graph:
    """x -> y; then a block with these ops runs twice, reaching y and what it names by name; then the ops after it."""
    program, scope = PassCase({"x": X}, {}, [op("double", "x", "y"), op("copy", "y", "c")]).build()
    block = program.desc.blocks[0]
    sub = program.desc.append_block(block)
    for kind, inputs, outputs, attrs in ops:
        sub.append_op(kind, inputs, outputs, attrs)
    block.append_op("repeat", {"X": ["y"]}, {"Out": []}).set_attr("sub_block", 1, AttrType.BLOCK)
    for kind, inputs, outputs, attrs in after:
        block.create_var(outputs["Out"], dtype="float64", shape=[-1])
        block.append_op(kind, inputs, outputs, attrs)
    return Graph(program.desc, scope=scope)


def test_what_a_sub_block_reaches_is_pinned() -> None:
    graph = with_block([op("plus", "c", "c", "y")], op("double", "c", "z"))
    double, copy, repeat, last = graph.ops
    assert repeat.opaque and repeat.runs_itself and not copy.opaque
    first, second = graph.versions("c")
    assert first.pinned and second.pinned and second.producer is repeat and last.input("X") is second
    assert {n.name for n in repeat.hidden_reads} == {"c", "y"} and repeat in double.output("Out").consumers
    assert graph.is_kept(first) and not graph.replace_var(first, double.outputs["Out"][0])
    assert verify(graph).inputs == {"x"}
    (z,) = run(graph.to_program(), None, "z")
    assert (z == 2 * (2 * X + 2 * X + 2 * X)).all()


def test_the_graph_of_a_sub_block_keeps_what_belongs_outside() -> None:
    outer = with_block([op("double", "c", "t"), op("copy", "t", "c")])
    outer.program.blocks[1].create_var("t", dtype="float64", shape=[-1])
    graph = Graph(outer.program, 1)
    double, copy = graph.ops
    assert graph.is_kept(copy.outputs["Out"][0]) and not graph.is_kept(double.outputs["Out"][0])
    assert graph.versions("c")[0].version == 0


def test_a_name_in_an_attribute_is_read() -> None:
    program, scope = PassCase({"x": X}, {}, [op("double", "x", "y"), op("double", "x", "z")]).build()
    last = program.desc.blocks[0].ops[1]
    last.set_attr("note", "y")  # text is text
    (y,) = Graph(program.desc, scope=scope).versions("y")
    assert not y.pinned and not y.consumers
    last.set_attr("note", "y", AttrType.VAR)
    graph = Graph(program.desc, scope=scope)
    (y,) = graph.versions("y")
    assert y.pinned and graph.ops[1] in y.consumers


# The verifier ---------------------------------------------------------------------------------------------------------
def broken(change: Any) -> tuple[Graph, Facts]:
    ops = [op("double", "x", "y"), op("plus", "y", "z", "w"), op("double", "z", "u")]
    graph = graph_of(ops, {"w": W}, keep=["u"])
    facts = verify(graph)
    assert facts == Facts(frozenset({"x", "w"}), {"u": ("float64", 1)})
    change(graph, *graph.ops)
    return graph, facts


def removed(graph: Graph, *ops: OpNode) -> None:
    graph._ops.remove(ops[0])


def overwritten(graph: Graph, first: OpNode, *_: OpNode) -> None:
    graph.add_op("double", {"X": first.inputs["X"]}, {"Out": first.outputs["Out"]})


def unread(graph: Graph, _: OpNode, second: OpNode, third: OpNode) -> None:
    third.inputs["X"] = second.inputs["X"]


def foreign(graph: Graph, first: OpNode, *_: OpNode) -> None:
    graph.replace_input(first, first.inputs["X"][0], graph.new_var("x"))


@pytest.mark.parametrize(
    "change,message",
    [
        (removed, "reads <VarNode y:1>, whose producer <OpNode y = double.*> was removed"),
        (overwritten, "writes <VarNode y:1>, whose producer is"),
        (unread, "which does not count it among its consumers"),
        (foreign, "reads 'x.ir_0', which no op writes before it"),
        (lambda g, a, b, c: setattr(c, "inputs", {}), "<OpNode u = double.*> lacks input X"),
        (lambda g, a, b, c: c.inputs.update(Q=[]) or c.inputs.update(Q=c.inputs["X"]), "has input Q; the op has X"),
        (lambda g, a, b, c: c.inputs["X"].append(c.inputs["X"][0]), "has 2 variables in input X; expected one"),
        (lambda g, a, b, c: c.desc.set_attr("factor", -1.0), "attribute 'factor' is -1.0; expected a value greater"),
        (lambda g, a, b, c: setattr(c.desc, "type", "nothing"), "op 'nothing' is unknown"),
        (lambda g, a, b, c: g.block.remove_var("z"), "names 'z', which no block declares"),
        (lambda g, a, b, c: setattr(g.block.vars["x"], "shape", (2, 2)), "'u' was float64 of rank 1 and would be"),
    ],
)
def test_the_verifier_names_what_is_wrong(change: Any, message: str) -> None:
    graph, facts = broken(change)
    with pytest.raises(GraphError, match=message):
        verify(graph, facts)
