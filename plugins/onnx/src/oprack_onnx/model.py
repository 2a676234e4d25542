"""The bytes of a model: parsed, checked for size, and its tensors as arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, checker, numpy_helper
from oprack.errors import (
    CorruptModelError,
    CorruptParameterError,
    MissingParameterError,
    UnimplementedError,
    UnsafeNameError,
)
from oprack.python.text import printable

from oprack_onnx.values import dtype_of

MAX_NODES = 1_000_000
"""Nodes that a model may have once its functions are written out."""

MAPPED = 1 << 20
"""Bytes from which on a tensor of a file of external data is not read into memory, but mapped."""

LARGE = 1024
"""Elements from which on a tensor is left out of what ONNX's shape inference reads."""


def parse(data: bytes | memoryview) -> ModelProto:
    """The model of a file's bytes. Raises CorruptModelError when they are none."""
    model = ModelProto()
    try:
        model.ParseFromString(bytes(data))
    except (DecodeError, RecursionError, ValueError) as error:
        raise CorruptModelError(f"the bytes are no model of ONNX: {error}") from None
    return model


def without_functions(model: ModelProto) -> ModelProto:
    """The model with its functions written out where they are called.

    Raises:
        CorruptModelError: It is no model, or its functions make too much of it.
    """
    if not model.HasField("graph") or not model.ir_version:
        raise CorruptModelError("the bytes are no model of ONNX: they have no graph, or no version of the format")
    if not model.opset_import:
        raise CorruptModelError("the model imports no opset; expected one for each domain of its nodes")
    if not _is_text(model):
        raise CorruptModelError("the model has names that are no text in UTF-8")
    expanded = _expanded_size(model)
    if expanded > MAX_NODES:
        raise CorruptModelError(
            f"the model has {expanded} nodes once its functions are written out; expected at most {MAX_NODES}"
        )
    return _inlined(model) if model.functions else model


def _is_text(model: ModelProto) -> bool:
    """Whether all names are text: protobuf hands out bytes, or an error, for a name that is not in UTF-8."""
    try:
        names = [n for o in model.opset_import for n in (o.domain,)]
        for function in model.functions:
            names += [function.name, function.domain, *function.input, *function.output, *_names(function.node)]
        names += _names_of_graph(model.graph)
    except UnicodeDecodeError:
        return False
    return all(isinstance(name, str) for name in names)


def _names_of_graph(graph: GraphProto) -> list[str]:
    infos: list[Any] = [*graph.input, *graph.output, *graph.value_info, *graph.initializer]
    return [graph.name, *(i.name for i in infos), *_names(graph.node)]


def _names(nodes: Iterable[NodeProto]) -> list[str]:
    found: list[str] = []
    for node in nodes:
        found += [node.name, node.op_type, node.domain, *node.input, *node.output]
        for attr in node.attribute:
            found += [attr.name, attr.ref_attr_name]
            if attr.HasField("t"):
                found += [attr.t.name, *(e.value for e in attr.t.external_data)]
        for graph in subgraphs(node):
            found += _names_of_graph(graph)
    return found


def _inlined(model: ModelProto) -> ModelProto:
    from onnx import inliner

    try:
        return inliner.inline_local_functions(model)
    except Exception as error:  # whatever the library says of a model that contradicts itself
        raise CorruptModelError(f"the functions of the model can't be written out: {error}") from None


def subgraphs(node: NodeProto) -> Iterator[GraphProto]:
    """The graphs among a node's attributes."""
    for attr in node.attribute:
        if attr.type == AttributeProto.GRAPH:
            yield attr.g
        yield from attr.graphs


def _expanded_size(model: ModelProto) -> int:
    functions = {(f.domain, f.name): f for f in model.functions}
    sizes: dict[tuple[str, str], int] = {}

    def of_nodes(nodes: Iterable[NodeProto], above: frozenset[tuple[str, str]]) -> int:
        total = 0
        for node in nodes:
            key = (node.domain, node.op_type)
            total += of_function(functions[key], above) if key in functions else 1
            total += sum(of_nodes(graph.node, above) for graph in subgraphs(node))
            if total > MAX_NODES:
                break
        return total

    def of_function(function: FunctionProto, above: frozenset[tuple[str, str]]) -> int:
        key = (function.domain, function.name)
        if key in above:
            raise CorruptModelError(f"function {function.name!r} of the model calls itself; expected none that does")
        if key not in sizes:
            sizes[key] = of_nodes(function.node, above | {key})
        return sizes[key]

    return of_nodes(model.graph.node, frozenset())


# Tensors --------------------------------------------------------------------------------------------------------------
class Tensors:
    """Makes arrays of a model's tensors.

    Args:
        folder: Where external data lies; None for a model without a file.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._files: dict[str, np.ndarray] = {}

    def array(self, tensor: TensorProto, where: str) -> np.ndarray:
        """The array of a tensor.

        Raises:
            UnimplementedError: oprack has no tensors of its dtype.
            CorruptParameterError: Its data have another size than its dims say.
            MissingParameterError, UnsafeNameError: Its file is not there, or lies elsewhere.
        """
        name = f"{where} (tensor {printable(tensor.name)!r})"
        dtype_of(tensor.data_type, name)
        if any(d < 0 for d in tensor.dims):
            raise CorruptParameterError(f"{name} has dims {list(tensor.dims)}; expected sizes of 0 or more")
        if tensor.data_location == TensorProto.EXTERNAL:
            return self._external(tensor, name)
        count = math.prod(tensor.dims)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        held = len(tensor.raw_data) if tensor.HasField("raw_data") else _items(tensor)
        wanted = count * dtype.itemsize if tensor.HasField("raw_data") else count
        if held < wanted:
            raise CorruptParameterError(f"{name} has dims {list(tensor.dims)}, and data for {held} of {wanted}")
        try:
            array: np.ndarray = numpy_helper.to_array(tensor)
        except Exception as error:  # the library's words for data that do not fit
            raise CorruptParameterError(f"{name} can't be read: {error}") from None
        # memory of its own: what lies in the bytes of the file may not be aligned
        return np.require(array.reshape(tuple(tensor.dims)), requirements=["A", "O", "C"])

    def sparse(self, tensor: Any, where: str) -> np.ndarray:
        """A sparse tensor, written out. Raises as `array`."""
        values, indices, dims = self.array(tensor.values, where), self.array(tensor.indices, where), list(tensor.dims)
        size = math.prod(dims)
        if min(dims, default=0) < 0 or size > 2**26:
            raise UnimplementedError(f"{where} is a sparse tensor of shape {dims}; expected at most {2**26} elements")
        flat = np.zeros(size, values.dtype)
        places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), tuple(dims))
        flat[places] = values
        return flat.reshape(dims)

    def _external(self, tensor: TensorProto, name: str) -> np.ndarray:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        data = self._file(entries.get("location", ""), name)
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)
        wanted = math.prod(tensor.dims) * dtype.itemsize
        try:
            offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
        except ValueError:
            raise CorruptParameterError(f"{name}: its offset or length is no number") from None
        if offset < 0 or length != wanted or offset + length > data.size:
            raise CorruptParameterError(
                f"{name} has dims {list(tensor.dims)}, {wanted} bytes, and lies in {length} bytes from {offset} on of "
                f"{printable(entries['location'])!r}, which has {data.size} bytes"
            )
        part = data[offset : offset + length]
        # what is large stays in its file, of which the system reads what is used; where it lies must suit its elements
        mapped = length >= MAPPED and offset % dtype.itemsize == 0
        return (part if mapped else part.copy()).view(dtype).reshape(tuple(tensor.dims))

    def _file(self, location: str, name: str) -> np.ndarray:
        """The bytes of a file of external data; it lies in the folder of the model or below."""
        if self._folder is None:
            raise MissingParameterError(
                f"{name} lies in file {printable(location)!r}, and a model that is given as bytes has no folder; load "
                "it by its path"
            )
        if location not in self._files:
            file = external_file(self._folder, location, name)
            self._files[location] = np.memmap(file, np.uint8, "r") if file.stat().st_size else np.zeros(0, np.uint8)
        return self._files[location]


def external_file(folder: Path, location: str, name: str) -> Path:
    """The path of a file of external data.

    Raises:
        UnsafeNameError: It leads out of the folder.
        MissingParameterError: There is no such file.
    """
    root = folder.resolve()
    file = (root / location).resolve() if location and "\x00" not in location else root
    if file == root or not file.is_relative_to(root):
        raise UnsafeNameError(
            f"{name} names the file {printable(location)!r}; expected one in the folder of the model, {str(root)!r}"
        )
    if not file.is_file():
        raise MissingParameterError(f"{name} lies in file {str(file)!r}, which is not there")
    return file


def external_locations(model: ModelProto) -> list[str]:
    """The files of external data that a model names, each once."""
    found: dict[str, None] = {}

    def look(graph: GraphProto) -> None:
        tensors = [*graph.initializer, *(a.t for n in graph.node for a in n.attribute if a.HasField("t"))]
        for tensor in tensors:
            if tensor.data_location == TensorProto.EXTERNAL:
                found.update((e.value, None) for e in tensor.external_data if e.key == "location")
        for node in graph.node:
            for inner in subgraphs(node):
                look(inner)

    look(model.graph)
    return list(found)


def _items(tensor: TensorProto) -> int:
    """Elements of a tensor that holds its data in a field of their type."""
    for field in ("float_data", "double_data", "int64_data", "uint64_data", "string_data"):
        held = len(getattr(tensor, field))
        if held:
            return held // 2 if tensor.data_type in (TensorProto.COMPLEX64, TensorProto.COMPLEX128) else held
    return len(tensor.int32_data)


# Types ----------------------------------------------------------------------------------------------------------------
def with_types(model: ModelProto) -> ModelProto:
    """The model with the types that ONNX's shape inference finds, without its large tensors.

    Inference serialises the model, so that what it does not need is left out: large tensors become inputs. It trusts
    the model, and may end the process where nodes contradict their schema or read what nothing makes; such models stay
    without types.
    """
    slim = _without_data(model)
    context = checker.DEFAULT_CONTEXT.__class__()
    context.ir_version = min(max(model.ir_version, 3), onnx.IR_VERSION)
    context.opset_imports = {o.domain: o.version for o in model.opset_import}
    if not _is_sound(slim.graph, context, frozenset()):
        return slim
    try:
        return onnx.shape_inference.infer_shapes(slim, data_prop=True)
    except Exception:  # inference knows no op of a custom domain, and gives up on what contradicts itself
        return slim


def _is_sound(graph: GraphProto, context: Any, outer: frozenset[str]) -> bool:
    """Whether every node has the inputs and attributes of its schema, and reads what was made before it."""
    names = set(outer) | {i.name for i in graph.input} | {t.name for t in graph.initializer}
    names |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        if not names.issuperset(filter(None, node.input)):
            return False
        inner = list(subgraphs(node))
        if not all(_is_sound(g, context, frozenset(names)) for g in inner):
            return False
        if not inner and (not node.domain or node.domain.startswith("ai.onnx")):
            try:
                checker.check_node(node, context)
            except (checker.ValidationError, RuntimeError):
                return False
        names.update(node.output)
    return names.issuperset(o.name for o in graph.output)


def _without_data(model: ModelProto) -> ModelProto:
    slim = ModelProto(ir_version=model.ir_version)
    slim.opset_import.extend(model.opset_import)
    graph = slim.graph
    graph.name = model.graph.name or "graph"
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    graph.value_info.extend(model.graph.value_info)
    named = {i.name for i in graph.input}
    for sparse in model.graph.sparse_initializer:
        values = sparse.values
        if values.name not in named:
            graph.input.append(onnx.helper.make_tensor_value_info(values.name, values.data_type, list(sparse.dims)))
    for tensor in model.graph.initializer:
        if math.prod(tensor.dims) <= LARGE and tensor.data_location != TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in named:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return slim
