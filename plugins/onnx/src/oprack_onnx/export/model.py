"""A program and its parameters as a model of ONNX."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper
from oprack.desc import OpDesc
from oprack.errors import UnimplementedError
from oprack.program import Program
from oprack.types import AttrType, VarType, dtype_enum

from oprack_onnx.export.graph import FORMS, Call, Form, Graph, tensor
from oprack_onnx.export.layout import turned
from oprack_onnx.export.lod import share_lod
from oprack_onnx.export.tensors.fourier import refuse_complex
from oprack_onnx.values import ELEM_TYPES

OPSET = 20
"""The version of ONNX's opset that is written."""

DOMAIN = "oprack"
_MODULES = {
    "tensors": "numbers elementwise losses shapes set_value indexing order fourier linalg control",
    "nets": "layers images boxes detection sequences recurrent graphs quantized fused",
}


@functools.cache
def forms() -> Mapping[str, Form]:
    """How each op is written: op of Fluid -> function."""
    for room, modules in _MODULES.items():
        for module in modules.split():
            importlib.import_module(f"oprack_onnx.export.{room}.{module}")
    return FORMS


def export_model(
    program: Program,
    feed_names: Sequence[str],
    fetch_names: Sequence[str],
    parameters: Mapping[str, np.ndarray],
) -> tuple[ModelProto, list[str]]:
    """Write a program as a model of ONNX.

    Ops that ONNX has no counterpart for are nodes of the domain `oprack`, which oprack-onnx reads again, and no other
    runtime does.

    Args:
        program: The program, with or without feed and fetch ops.
        feed_names: Its inputs.
        fetch_names: Its outputs.
        parameters: Name -> array of what it holds.

    Returns:
        The model, and the types of the ops that are nodes of the domain `oprack`, with why.

    Raises:
        UnimplementedError: A variable that is read has no value, or no dtype of ONNX.
    """
    graph = Graph(program.desc.blocks[0])
    inputs = []
    for name in set(fetch_names) - set(feed_names) - set(parameters):
        graph.fresh(name)  # what a node gives on the way has another name
    for name in feed_names:
        graph.values[name] = graph.fresh(name)
        graph.types[name] = graph.dtypes[name] = graph.dtype(name)
        inputs.append(_info(graph, name, name))
        var = graph.block.find_var_recursive(name)
        levels = [graph.fresh(offsets_name(name, i)) for i in range(var.lod_level if var is not None else 0)]
        graph.lods[name] = levels
        inputs += [helper.make_tensor_value_info(level, TensorProto.INT64, [None]) for level in levels]
    for name, array in parameters.items():
        graph.values[name] = graph.fresh(name)
        graph.initializers[graph.values[name]] = array
        graph.types[graph.values[name]] = VarType(dtype_enum(array.dtype))
    lacking: dict[str, str] = {}
    write_block(graph, lacking)
    outputs = []
    for name in fetch_names:
        value = graph.value(name)
        wanted = name
        if wanted in feed_names or wanted in graph.initializers:
            wanted = graph.fresh(f"{name}.out")
        graph.nodes.append(helper.make_node("Identity", [value], [wanted]))
        outputs.append(_info(graph, name, wanted))
        for i, level in enumerate(graph.lod(name)):
            told = graph.fresh(offsets_name(name, i))
            graph.nodes.append(helper.make_node("Identity", [level], [told]))
            outputs.append(helper.make_tensor_value_info(told, TensorProto.INT64, [None]))
    used = {i for n in _all_nodes(graph) for i in n.input}
    held = [tensor(n, a) for n, a in graph.initializers.items() if n in used]
    made = helper.make_graph(graph.nodes, "program", inputs, outputs, held)
    opsets = [helper.make_opsetid("", OPSET)]
    if lacking:
        opsets.append(helper.make_opsetid(DOMAIN, 1))
    model = helper.make_model(made, opset_imports=opsets, producer_name="oprack", ir_version=9)
    return model, [f"{op}: {why}" for op, why in sorted(lacking.items())]


def offsets_name(variable: str, level: int) -> str:
    """The input or output that has the offsets of a level of a variable's LoD."""
    return f"{variable}.lod{level}"


def _all_nodes(graph: Graph) -> list[onnx.NodeProto]:
    found: list[onnx.NodeProto] = []

    def look(nodes: Sequence[onnx.NodeProto]) -> None:
        for node in nodes:
            found.append(node)
            for attr in node.attribute:
                if attr.HasField("g"):
                    look(attr.g.node)
                    found.extend(helper.make_node("Identity", [o.name], [""]) for o in attr.g.output)

    look(graph.nodes)
    return found


def _info(graph: Graph, variable: str, name: str) -> onnx.ValueInfoProto:
    var = graph.block.find_var_recursive(variable)
    dtype = graph.dtype(variable)
    if variable in graph.pairs or (var is not None and var.dtype in (VarType.COMPLEX64, VarType.COMPLEX128)):
        raise UnimplementedError(f"variable {variable!r} is complex; fetch its real and imaginary parts")
    if dtype not in ELEM_TYPES:
        raise UnimplementedError(f"variable {variable!r} has dtype {dtype.name}, which ONNX lacks")
    if var is not None and var.type is VarType.LOD_TENSOR_ARRAY:
        tensors = helper.make_tensor_type_proto(ELEM_TYPES[dtype], None)
        return helper.make_value_info(name, helper.make_sequence_type_proto(tensors))
    shape = graph.shape(variable)
    if name != variable or variable not in graph.values or graph.values[variable] != name:
        shape = None if not shape else shape  # what an output's shape is, a run knows
    dims = None if shape is None else [d if d >= 0 else None for d in shape]
    return helper.make_tensor_value_info(name, ELEM_TYPES[dtype], dims)


def write_block(graph: Graph, lacking: dict[str, str]) -> None:
    """Write the ops of a block."""
    for op in graph.block.ops:
        if op.type in ("feed", "fetch"):
            continue
        try:
            write_op(op, graph)
        except UnimplementedError as error:
            if op.block_attrs():
                raise UnimplementedError(f"op {op.type}: {error}") from error
            lacking.setdefault(op.type, str(error))
            _foreign(Call(op, graph))


def write_op(op: OpDesc, graph: Graph) -> Call:
    """Write an op by its form.

    Args:
        op: The op.
        graph: Where it is written.

    Returns:
        What the form was given.

    Raises:
        UnimplementedError: There is no form, or it can't write this op; the graph has no node of it then.
    """
    call, kept = Call(op, graph), len(graph.nodes)
    form = forms().get(op.type)
    try:
        if form is None:
            raise UnimplementedError("ONNX has no counterpart that oprack-onnx knows")
        refuse_complex(call)
        form(turned(call))
        share_lod(call)
    except UnimplementedError:
        del graph.nodes[kept:]
        raise
    return call


_PLAIN: dict[AttrType, Callable[[Any], Any]] = {
    AttrType.INT: int,
    AttrType.LONG: int,
    AttrType.BOOLEAN: int,
    AttrType.FLOAT: float,
    AttrType.FLOAT64: float,
    AttrType.STRING: str,
    AttrType.INTS: list,
    AttrType.LONGS: list,
    AttrType.BOOLEANS: lambda v: [int(x) for x in v],
    AttrType.FLOATS: list,
    AttrType.STRINGS: list,
}


def _foreign(call: Call) -> None:
    """A node of oprack's own domain: inputs and outputs in the order of the OpProto, attributes by name."""
    from oprack.packs import op_info

    proto, graph = op_info(call.type).proto, call.graph
    inputs: list[str] = []
    for slot in proto.inputs:
        names = call.op.input(slot)
        inputs += [graph.value(n) for n in names] if names else [""]
    while inputs and not inputs[-1]:
        inputs.pop()
    outputs = []
    for slot in proto.outputs:
        for i, name in enumerate(call.op.output(slot)):
            value = graph.fresh(name)
            outputs.append(value)
            call.set(value, slot, i)
    attrs = {}
    for name, attr in proto.attrs.items():
        value = call.op.attr(name)
        if value is not None and not attr.generated and not attr.extra and attr.type in _PLAIN:
            plain = _PLAIN[attr.type](value)
            if plain != []:
                attrs[name] = plain
    graph.nodes.append(helper.make_node(call.type, inputs, outputs, domain=DOMAIN, **attrs))


__all__ = ["OPSET", "export_model", "forms", "write_block", "write_op"]
