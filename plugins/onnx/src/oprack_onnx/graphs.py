"""Graphs of ONNX, node by node: by a row, by a form, as an op of a pack, or by the function body of the schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnx
import onnx.inliner
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto, helper
from oprack.errors import MissingPackError, ModelError, UnimplementedError
from oprack.python.text import printable
from oprack.types import VarType

from oprack_onnx.control import ControlFlow
from oprack_onnx.domains import op_of_domain
from oprack_onnx.frames import CONTRADICTIONS, DOMAINS, Frame, contradiction, graph_types
from oprack_onnx.model import Tensors, with_types
from oprack_onnx.rows import write_row
from oprack_onnx.table import forms, rows
from oprack_onnx.values import ELEM_TYPES, FLOATING, Dims, Node, Value
from oprack_onnx.writer import Writer


class GraphReader:
    """Writes the graphs of a model.

    Args:
        writer: Of the program.
        tensors: Makes arrays.
        opsets: Domain -> the version that the model imports.
    """

    def __init__(self, writer: Writer, tensors: Tensors, opsets: Mapping[str, int]) -> None:
        self.writer, self.tensors, self.opsets = writer, tensors, dict(opsets)
        self.control = ControlFlow(self)
        self.lacking: dict[str, str] = {}
        self._depth = 0

    def initializers(self, graph: GraphProto, frame: Frame) -> None:
        """The tensors that a graph holds."""
        for tensor in graph.initializer:
            array = self.tensors.array(tensor, "an initializer")
            frame.values[tensor.name] = self.writer.parameter(tensor.name, array)
        for sparse in graph.sparse_initializer:
            array = self.tensors.sparse(sparse, f"sparse initializer {printable(sparse.values.name)!r}")
            frame.values[sparse.values.name] = self.writer.parameter(sparse.values.name, array)

    def nodes(self, graph: GraphProto, frame: Frame) -> None:
        """Write all nodes. What can't be written is kept in `lacking`, and its outputs count as absent."""
        for place, proto in enumerate(graph.node):
            name = f" {printable(proto.name)!r}" if proto.name else ""
            domain = f"{printable(proto.domain)}." if proto.domain not in DOMAINS else ""
            where = f"node {place}{name} ({domain}{printable(proto.op_type)})"
            try:
                self.node(proto, frame, where)
            except UnimplementedError as error:
                self.lacking.setdefault(f"{domain}{proto.op_type}", str(error))
                frame.values.update(dict.fromkeys(filter(None, proto.output), None))
                frame.open_.update(proto.output)

    def node(self, proto: NodeProto, frame: Frame, where: str) -> None:
        """Write one node, and set the values of its outputs."""
        if any(i in frame.open_ for i in proto.input):
            raise UnimplementedError(f"{where} reads what an op before it could not make")
        node = self._read(proto, frame, where)
        since = self.writer.mark()
        try:
            results = self._write(node, proto, frame)
        except (ModelError, UnimplementedError, MissingPackError) as error:
            if str(error).startswith("node "):
                raise
            raise type(error)(f"{where}: {error}") from error
        except CONTRADICTIONS as error:
            raise contradiction(error, where) from error
        for name, value, type_ in zip(proto.output, results, node.types, strict=False):
            if name:
                frame.values[name] = self._named(value, name, type_, since)

    def _named(
        self, value: Value | None, name: str, type_: tuple[VarType, Dims | None, VarType] | None, since: tuple[int, int]
    ) -> Value | None:
        """A result under its name, with what inference knows of its shape."""
        if value is None:
            return None
        value = self.writer.rename(value, name, since)
        shape = value.shape
        if type_ is not None and type_[1] is not None and value.kind is VarType.LOD_TENSOR:
            if shape is None or len(shape) != len(type_[1]):
                shape = type_[1]
            else:
                shape = tuple(b if a < 0 else a for a, b in zip(shape, type_[1], strict=True))
        var = self.writer.block.vars.get(value.name)
        if var is not None and shape is not None and value.kind is VarType.LOD_TENSOR and not var.persistable:
            var.shape = shape
        return Value(value.name, value.dtype, shape, value.constant, value.kind)

    # One node ---------------------------------------------------------------------------------------------------------
    def _read(self, proto: NodeProto, frame: Frame, where: str) -> Node:
        domain = DOMAINS.get(proto.domain, proto.domain)
        opset = self.opsets.get(domain, 0)
        attrs: dict[str, Any] = {}
        graphs = {}
        for attr in proto.attribute:
            if attr.type == AttributeProto.GRAPH:
                graphs[attr.name] = attr.g
            elif attr.type == AttributeProto.TENSOR:
                attrs[attr.name] = self.tensors.array(attr.t, where)
            elif attr.type == AttributeProto.SPARSE_TENSOR:
                attrs[attr.name] = self.tensors.sparse(attr.sparse_tensor, where)
            else:
                attrs[attr.name] = _plain(helper.get_attribute_value(attr))
        given = frozenset(attrs) | frozenset(graphs)
        for name, default in schema_defaults(proto.op_type, domain, opset).items():
            attrs.setdefault(name, _plain(helper.get_attribute_value(default)))
        inputs = [frame.find(name, where) if name else None for name in proto.input]
        types = [frame.types.get(name) if name else None for name in proto.output]
        return Node(proto.op_type, domain, opset, inputs, attrs, types, list(proto.output), where, given, graphs)

    def _write(self, node: Node, proto: NodeProto, frame: Frame) -> list[Value | None]:
        key = (node.domain, node.op)
        control = self.control.forms.get(node.op) if not node.domain else None
        if control is not None:
            return control(node, frame)
        found = forms().get(key)
        if found is not None:
            results = found(node, self.writer)
            if results:
                return results
        row = rows().get(key)
        if row is not None and (not row.floats or node.input().dtype in FLOATING):
            return write_row(node, row, self.writer)
        if node.domain and not node.domain.startswith("ai.onnx"):
            return write_row(node, op_of_domain(node), self.writer)
        return self._body(node, proto, frame)

    def _body(self, node: Node, proto: NodeProto, frame: Frame) -> list[Value | None]:
        """Write the function body that ONNX's schema has for an op, for the types at hand."""
        self._depth += 1
        try:
            if self._depth > 16:
                raise node.lacking("its function body goes too deep")
            return self._expanded(node, proto, frame)
        finally:
            self._depth -= 1

    def _expanded(self, node: Node, proto: NodeProto, frame: Frame) -> list[Value | None]:
        call = NodeProto()
        call.CopyFrom(proto)
        del call.input[:]
        call.input.extend(f"in{i}" if v is not None else "" for i, v in enumerate(node.inputs))
        named = {attr.name for attr in call.attribute}
        # the function body refers to attributes by name, defaults included
        for name, default in schema_defaults(node.op, node.domain, node.opset).items():
            if name not in named:
                call.attribute.append(default)
        del call.output[:]
        call.output.extend(f"out{i}" if name else "" for i, name in enumerate(node.outputs))
        graph = GraphProto(name="body")
        graph.node.append(call)
        inner = Frame({}, {}, frame)
        for i, value in enumerate(node.inputs):
            if value is not None:
                graph.input.append(_info(f"in{i}", value))
                inner.values[f"in{i}"] = value
                if value.constant is not None and value.constant.size <= 1024:
                    graph.initializer.append(onnx.numpy_helper.from_array(value.constant, f"in{i}"))
        graph.output.extend(ValueInfoProto(name=name) for name in call.output if name)
        function = function_body(node, call)
        graph.node[0].domain = function.domain = "body"  # the op itself may be called in its body
        model = ModelProto(ir_version=10, graph=graph, functions=[function], opset_import=function.opset_import)
        model.opset_import.append(helper.make_opsetid("body", 1))
        try:
            written = onnx.inliner.inline_local_functions(model)
        except Exception as error:
            raise node.lacking(f"the function body of ONNX's schema can't be written out: {error}") from None
        before = dict(self.opsets)
        self.opsets |= {DOMAINS.get(o.domain, o.domain): o.version for o in written.opset_import}
        try:
            typed = with_types(written)
            inner.types = graph_types(typed.graph)
            for place, step in enumerate(typed.graph.node):
                self.node(step, inner, f"{node.where}, step {place} ({step.op_type}) of its function body")
        finally:
            self.opsets = before
        return [inner.values[name] if name else None for name in call.output]


def function_body(node: Node, call: NodeProto) -> FunctionProto:
    """The function body that ONNX's schema has for an op, for the types at hand.

    Of the opsets that have one, it is that of the newest which is not newer than the model's, else of the oldest: where
    the op itself is the same in both, so is what it means.

    Raises:
        UnimplementedError: There is none.
    """
    try:
        schema: Any = onnx.defs.get_schema(node.op, node.opset, node.domain)
    except Exception:
        raise node.lacking(f"opset {node.opset} of domain {printable(node.domain)!r} has no such op") from None
    for versions, make in (
        (schema.function_opset_versions, _plain_body),
        (schema.context_dependent_function_opset_versions, _body_of_types),
    ):
        if versions:
            version = max((v for v in versions if v <= node.opset), default=min(versions))
            function = FunctionProto()
            function.ParseFromString(make(schema, version, node, call))
            return function
    raise node.lacking(
        f"oprack-onnx has no row and no form for it, and ONNX's schema no function body (opset {node.opset})"
    )


def _plain_body(schema: Any, version: int, node: Node, call: NodeProto) -> bytes:
    return schema.get_function_with_opset_version(version)  # type: ignore[no-any-return]


def _body_of_types(schema: Any, version: int, node: Node, call: NodeProto) -> bytes:
    types = [_info("x", v).type.SerializeToString() if v is not None else b"" for v in node.inputs]
    return schema.get_context_dependent_function_with_opset_version(version, call.SerializeToString(), types)  # type: ignore[no-any-return]


def _info(name: str, value: Value) -> ValueInfoProto:
    number = ELEM_TYPES[value.dtype]
    dims = None if value.shape is None else [d if d >= 0 else None for d in value.shape]
    found = helper.make_tensor_value_info(name, number, dims)
    if value.kind is VarType.LOD_TENSOR_ARRAY:
        return helper.make_value_info(
            name, helper.make_sequence_type_proto(helper.make_tensor_type_proto(number, None))
        )
    return found


def _plain(value: Any) -> Any:
    """Text as text."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list) and value and isinstance(value[0], bytes):
        return [v.decode("utf-8", "replace") for v in value]
    return value


def schema_defaults(op: str, domain: str, opset: int) -> dict[str, AttributeProto]:
    """The defaults that ONNX's schema gives the attributes of an op."""
    try:
        schema = onnx.defs.get_schema(op, opset, domain)
    except Exception:  # a domain of somebody else, or an op that this opset lacks
        return {}
    return {
        name: attr.default_value
        for name, attr in schema.attributes.items()
        if attr.default_value.type != AttributeProto.UNDEFINED
    }
