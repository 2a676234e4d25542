"""Branches and loops."""

from __future__ import annotations

from typing import Any

from onnx import GraphProto, ValueInfoProto, helper
from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.graph import Call, Graph, exported
from oprack_onnx.values import ELEM_TYPES


def value_info(graph: Graph, variable: str, name: str) -> ValueInfoProto:
    """The type of a variable, under the name of a value."""
    var = graph.block.find_var_recursive(variable)
    known = graph.types.get(name)
    number = ELEM_TYPES.get(graph.dtype(variable) if known is None else known, 1)
    if var is not None and var.type is VarType.LOD_TENSOR_ARRAY:
        return helper.make_value_info(
            name, helper.make_sequence_type_proto(helper.make_tensor_type_proto(number, None))
        )
    return helper.make_tensor_value_info(name, number, None)


def _empty(graph: Graph, variable: str) -> str:
    """What stands for a variable that nothing has set: a tensor of nothing, or an empty sequence."""
    import numpy as np
    from oprack.tensor import numpy_dtype

    var = graph.block.find_var_recursive(variable)
    dtype = graph.dtype(variable)
    if var is not None and var.type is VarType.LOD_TENSOR_ARRAY:
        return str(graph.node("SequenceEmpty", [], dtype=ELEM_TYPES[dtype]))
    rank = len(var.shape) if var is not None and var.shape else 1
    return graph.constant(np.zeros([0] * rank), numpy_dtype(dtype))


def _inner(call: Call) -> Graph:
    from oprack_onnx.export.model import write_block

    block = call.graph.block.program.blocks[call.attr("sub_block")]
    graph = Graph(block, call.graph)
    lacking: dict[str, str] = {}
    write_block(graph, lacking)
    if lacking:
        op, why = next(iter(lacking.items()))
        raise UnimplementedError(f"its block has op {op}: {why}")
    return graph


def _graph(graph: Graph, name: str, inputs: list[ValueInfoProto], outputs: list[tuple[str, str]]) -> GraphProto:
    """The graph, with outputs (variable, value), each a value of its own."""
    infos = []
    for variable, value in outputs:
        out = graph.fresh(f"{variable}.next")
        graph.nodes.append(helper.make_node("Identity", [value], [out]))
        if value in graph.types:
            graph.types[out] = graph.types[value]
        infos.append(value_info(graph, variable, out))
    return helper.make_graph(graph.nodes, name, inputs, infos)


@exported("conditional_block", "conditional_block_infer")
def conditional_block(call: Call) -> None:
    """If: the block's writes, or what was there before."""
    graph = call.graph
    written = [n for n in call.op.output("Out") if n]
    inner = _inner(call)
    written = [n for n in dict.fromkeys(written) if inner.has_value(n)]
    other = Graph(graph.block, graph)
    before = []
    for name in written:
        value = graph.value(name) if graph.has_value(name) else _empty(other, name)
        before.append(_of_dtype(other, value, inner.types.get(inner.value(name))))
    condition = graph.node("Reshape", [call.input("Cond"), graph.constant([])])
    then = _graph(inner, "then", [], [(n, inner.value(n)) for n in written])
    otherwise = _graph(other, "else", [], list(zip(written, before, strict=True)))
    _set_all(
        graph, written, graph.node("If", [condition], len(written), then_branch=then, else_branch=otherwise), inner
    )


def _of_dtype(graph: Graph, value: str, dtype: VarType | None) -> str:
    """A value in the dtype that another branch or round gives: what Paddle puts in an unset variable has any."""
    if dtype is None or graph.types.get(value) in (None, dtype):
        return value
    return graph.cast(value, dtype)


def _set_all(graph: Graph, names: list[str], found: Any, inner: Graph) -> None:
    """Set variables to the outputs of a node, which have the dtypes that its body gives."""
    for name, value in zip(names, [found] if len(names) == 1 else found, strict=False):
        known = inner.types.get(inner.value(name))
        if known is not None:
            graph.types[value] = graph.dtypes[name] = known
        graph.values[name] = value


@exported("while")
def while_(call: Call) -> None:
    """Loop: what the block writes of the variables around it goes from round to round."""
    graph, condition = call.graph, call.name("Condition")
    block = graph.block.program.blocks[call.attr("sub_block")]
    own = set(block.vars)
    written = [n for op in block.ops for n in op.output_arg_names() if n not in own and n != condition]
    carried = list(dict.fromkeys(written))
    first = [graph.value(n) if graph.has_value(n) else _empty(graph, n) for n in carried]
    for _ in range(len(carried) + 1):  # a dtype may follow from another one that changes
        inner, inputs = _body(call, carried, first)
        given = [inner.types.get(inner.value(n)) for n in carried]
        again = [_of_dtype(graph, v, t) for v, t in zip(first, given, strict=True)]
        if again == first:
            break
        first = again
    flat = inner.node("Reshape", [inner.value(condition), inner.constant([])])
    body = _graph(inner, "body", inputs, [(condition, flat), *((n, inner.value(n)) for n in carried)])
    start = graph.node("Reshape", [graph.value(condition), graph.constant([])])
    _set_all(graph, carried, graph.node("Loop", ["", start, *first], max(len(carried), 1), body=body), inner)
    graph.values[condition] = graph.constant([False], bool)


def _body(call: Call, carried: list[str], first: list[str]) -> tuple[Graph, list[ValueInfoProto]]:
    """The block as a graph whose inputs are what goes from round to round."""
    from oprack_onnx.export.model import write_block

    graph = call.graph
    inner = Graph(graph.block.program.blocks[call.attr("sub_block")], graph)
    number, go_on = graph.fresh("number"), graph.fresh("go_on")
    inputs = [helper.make_tensor_value_info(number, 7, []), helper.make_tensor_value_info(go_on, 9, [])]
    for name, value in zip(carried, first, strict=True):
        now = inner.values[name] = graph.fresh(f"{name}.now")
        if value in graph.types:
            graph.types[now] = graph.dtypes[name] = graph.types[value]
        inputs.append(value_info(inner, name, now))
    lacking: dict[str, str] = {}
    write_block(inner, lacking)
    if lacking:
        op, why = next(iter(lacking.items()))
        raise UnimplementedError(f"its block has op {op}: {why}")
    return inner, inputs


# Arrays of tensors ----------------------------------------------------------------------------------------------------
def _place(call: Call) -> str:
    value = call.input("I")
    if call.dtype("I") is not VarType.INT64:
        value = call.graph.cast(value, VarType.INT64)
    return call.node("Reshape", value, call.graph.constant([]))


@exported("write_to_array")
def write_to_array(call: Call) -> None:
    """The array up to the place, the tensor, and the array behind: a place may be written again, or be the next one."""
    graph, (array,) = call.graph, call.op.output("Out")
    place, x = _place(call), call.input()
    graph.dtypes[array] = call.dtype()
    graph.types.setdefault(array, call.dtype())
    before = (
        graph.value(array)
        if graph.has_value(array)
        else str(graph.node("SequenceEmpty", [], dtype=ELEM_TYPES[call.dtype()]))
    )
    there = graph.node("Less", [place, graph.node("SequenceLength", [before])])
    branches = []
    for name, op in (("then", "SequenceErase"), ("else", "")):
        out = graph.fresh("array")
        node = helper.make_node(op, [before, place], [out]) if op else helper.make_node("Identity", [before], [out])
        tensors = helper.make_tensor_type_proto(ELEM_TYPES[call.dtype()], None)
        branches.append(
            helper.make_graph([node], name, [], [helper.make_value_info(out, helper.make_sequence_type_proto(tensors))])
        )
    kept = graph.node("If", [there], then_branch=branches[0], else_branch=branches[1])
    graph.values[array] = graph.node("SequenceInsert", [kept, x, place])


@exported("read_from_array")
def read_from_array(call: Call) -> None:
    call.set(call.node("SequenceAt", call.input("X"), _place(call)))


@exported("lod_array_length")
def lod_array_length(call: Call) -> None:
    call.set(call.node("Reshape", call.node("SequenceLength", call.input()), call.graph.ints([1])))


@exported("tensor_array_to_tensor")
def tensor_array_to_tensor(call: Call) -> None:
    stack = int(bool(call.attr("use_stack")))
    call.set(call.node("ConcatFromSequence", call.input(), axis=call.attr("axis"), new_axis=stack))


__all__ = ["conditional_block", "while_"]
