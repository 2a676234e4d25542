"""A model for inputs of known shapes, and known values of some: what follows from them is worked out once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from oprack_onnx.frames import DOMAINS
from oprack_onnx.model import subgraphs

LARGEST = 1 << 20
"""Elements of a constant that is worked out."""

_VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten")
_EACH = {"Abs", "Ceil", "Clip", "Cos", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu"}
_EACH |= {"Log", "Mish", "Neg", "Reciprocal", "Relu", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Tanh"}
"""Ops of one element each, which may be taken before a tensor is given another shape."""

_RANDOM = ("Random", "Bernoulli", "Multinomial", "Dropout")


def specialized(model: ModelProto, dims: Mapping[str, tuple[int, ...]], known: Mapping[str, np.ndarray]) -> ModelProto:
    """The model whose inputs have these dims, and some of them these values; branches that are not taken are gone.

    Args:
        model: The model, with its functions written out and its data inside.
        dims: Input -> its dims.
        known: Inputs that have this value, and are inputs no more.

    Returns:
        The model. Names of inputs and outputs stay.
    """
    work = _Work(model)
    graph = model.graph
    work.hold(graph)
    inputs = []
    for info in graph.input:
        if info.name in work.constants or info.name in work.types:
            continue
        if info.name in known:
            work.set(info.name, known[info.name])
            continue
        if info.name in dims and info.type.HasField("tensor_type"):
            number = info.type.tensor_type.elem_type
            info = helper.make_tensor_value_info(info.name, number, list(dims[info.name]))
        work.types[info.name] = info.type
        inputs.append(info)
    work.nodes(graph.node)
    for info in graph.output:
        if work.name(info.name) != info.name:
            work.give(work.name(info.name), info.name)
    return work.model(inputs, list(graph.output))


class _Work:
    """What is known of the values of a model while its nodes are walked."""

    def __init__(self, model: ModelProto) -> None:
        self._source = model
        self.constants: dict[str, np.ndarray] = {}
        self.types: dict[str, TypeProto] = {}
        self.alias: dict[str, str] = {}
        self.written: list[NodeProto] = []
        self._large: dict[str, TensorProto] = {}
        graph = model.graph
        self._names = {i.name for i in graph.input} | {t.name for t in graph.initializer}
        self._names |= {o for n in graph.node for o in n.output}
        self._views: dict[str, str] = {}
        """What is another value in another shape, and that value."""
        self._opsets = {DOMAINS.get(o.domain, o.domain): o.version for o in model.opset_import}

    def hold(self, graph: GraphProto) -> None:
        """Keep the tensors of a graph; those that are small may be computed with."""
        for tensor in graph.initializer:
            self.types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
            if int(np.prod(tensor.dims)) <= LARGEST and tensor.data_location != TensorProto.EXTERNAL:
                self.set(tensor.name, numpy_helper.to_array(tensor))
            else:
                self._large[tensor.name] = tensor

    def set(self, name: str, array: np.ndarray) -> None:
        """Give a value what it is."""
        array = np.asarray(array)
        self.constants[name] = array
        number = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.types[name] = helper.make_tensor_type_proto(number, list(array.shape))

    def name(self, value: str) -> str:
        """The value that another one is the same as."""
        while value in self.alias:
            value = self.alias[value]
        return value

    def nodes(self, nodes: Iterable[NodeProto]) -> None:
        """Walk nodes in order."""
        for proto in nodes:
            node = NodeProto()
            node.CopyFrom(proto)
            node.input[:] = [self.name(i) for i in node.input]
            self._node(node)

    def _node(self, node: NodeProto) -> None:
        given = [self.constants.get(i) for i in node.input if i]
        if not node.domain and node.op_type == "If" and given and given[0] is not None:
            self._branch(node, bool(given[0].reshape(-1)[0]))
        elif not node.domain and node.op_type == "Identity":
            self.alias[node.output[0]] = node.input[0]
        elif not node.domain and node.op_type in ("Shape", "Size") and self._dims(node.input[0]) is not None:
            self._sized(node)
        elif self._computed(node, given):
            pass
        elif not node.domain and node.op_type == "Cast" and self._is_cast_to_itself(node):
            self.alias[node.output[0]] = node.input[0]
        elif not node.domain and (node.op_type in _VIEWS or self._reduces_nothing(node)):
            self._view(node)
        elif not node.domain and node.op_type in _EACH and node.input[0] in self._views:
            self._each(node)
        elif not node.domain and node.op_type == "Conv" and self._is_conv_of_rows(node):
            self._conv_of_rows(node)
        else:
            self._write(node)

    def _write(self, node: NodeProto) -> None:
        self.written.append(node)
        self._infer(node)

    def _is_cast_to_itself(self, node: NodeProto) -> bool:
        type_ = self.types.get(node.input[0])
        wanted = next((a.i for a in node.attribute if a.name == "to"), -1)
        return type_ is not None and type_.HasField("tensor_type") and type_.tensor_type.elem_type == wanted

    def _reduces_nothing(self, node: NodeProto) -> bool:
        """Whether a node takes the sum, mean or largest of one element each."""
        if node.op_type not in ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"):
            return False
        self._infer(node)
        dims, out = self._dims(node.input[0]), self._dims(node.output[0])
        return dims is not None and out is not None and np.prod(dims) == np.prod(out)

    # Shapes -----------------------------------------------------------------------------------------------------------
    def _view(self, node: NodeProto) -> None:
        """A tensor in another shape is the same for all of its shapes: views of views are views of the first one."""
        self._infer(node)
        source, dims = node.input[0], self._dims(node.output[0])
        if dims is None or self._dims(source) is None:
            self.written.append(node)
        else:
            self._reshaped(self._views.get(source, source), node.output[0], dims)

    def _reshaped(self, source: str, name: str, dims: list[int]) -> None:
        if self._dims(source) == dims:
            self.alias[name] = source
            return
        self._views[name] = source
        target = f"{name}.dims"
        self.set(target, np.array(dims, np.int64))
        self._write(helper.make_node("Reshape", [source, target], [name], name=name))

    def _each(self, node: NodeProto) -> None:
        """Elements of a view: those of what it is a view of, in the view's shape."""
        name, dims = node.output[0], self._dims(node.input[0])
        assert dims is not None
        node.input[0] = self._views[node.input[0]]
        node.output[0] = f"{name}.source"
        self._write(node)
        self._reshaped(node.output[0], name, dims)

    def _is_conv_of_rows(self, node: NodeProto) -> bool:
        dims = self._dims(node.input[0])
        return dims is not None and len(dims) == 3 and node.input[1] in self.constants

    def _conv_of_rows(self, node: NodeProto) -> None:
        """A convolution of one axis as one of images of one row, so that several need no other shapes between them."""
        self._infer(node)
        source, name = node.input[0], node.output[0]
        (n, c, length), dims = self._dims(source) or [0, 0, 0], self._dims(name)
        if dims is None:
            self.written.append(node)
            return
        weights, image = f"{name}.weights", f"{name}.image"
        self.set(weights, self.constants[node.input[1]][:, :, None])
        self._reshaped(self._views.get(source, source), image, [n, c, 1, length])
        node.input[0], node.input[1], node.output[0] = self.name(image), weights, f"{name}.rows"
        for attr in node.attribute:
            if attr.name in ("kernel_shape", "strides", "dilations"):
                attr.ints[:] = [1, *attr.ints]
            elif attr.name == "pads":
                attr.ints[:] = [0, attr.ints[0], 0, attr.ints[1]]
        self._write(node)
        self._reshaped(node.output[0], name, dims)

    def _branch(self, node: NodeProto, taken: bool) -> None:
        graph = self._apart(next(a.g for a in node.attribute if a.name == ("then_branch" if taken else "else_branch")))
        self.hold(graph)
        self.nodes(graph.node)
        for target, info in zip(node.output, graph.output, strict=True):
            source = self.name(info.name)
            if source in self.constants:
                self.set(target, self.constants[source])
            else:
                self.alias[target] = source

    def _apart(self, graph: GraphProto) -> GraphProto:
        """A branch whose names are its own: two branches that do not lie in each other may have the same ones."""
        made = [t.name for t in graph.initializer] + [o for n in graph.node for o in n.output if o]
        renamed: dict[str, str] = {}
        for name in made:
            other = name
            while other in self._names:
                other += "'"
            self._names.add(other)
            if other != name:
                renamed[name] = other
        if not renamed:
            return graph
        own = GraphProto()
        own.CopyFrom(graph)
        for tensor in own.initializer:
            tensor.name = renamed.get(tensor.name, tensor.name)
        for info in own.output:
            info.name = renamed.get(info.name, info.name)
        _rename(own.node, renamed)
        return own

    def _dims(self, name: str) -> list[int] | None:
        type_ = self.types.get(name)
        if type_ is None or not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
            return None
        dims = type_.tensor_type.shape.dim
        return [d.dim_value for d in dims] if all(d.HasField("dim_value") for d in dims) else None

    def _sized(self, node: NodeProto) -> None:
        dims = self._dims(node.input[0])
        assert dims is not None
        attrs = {a.name: a.i for a in node.attribute}
        if node.op_type == "Size":
            self.set(node.output[0], np.array(int(np.prod(dims)), np.int64))
        else:
            self.set(node.output[0], np.array(dims[attrs.get("start", 0) : attrs.get("end")], np.int64))

    def _computed(self, node: NodeProto, given: list[np.ndarray | None]) -> bool:
        """Work a node out by ONNX's reference, where all that it reads is known and it is no game of chance."""
        if node.domain or any(v is None for v in given) or node.op_type.startswith(_RANDOM) or any(subgraphs(node)):
            return False
        if sum(v.size for v in given if v is not None) > LARGEST:
            return False
        names = list(dict.fromkeys(i for i in node.input if i))
        infos = [onnx.ValueInfoProto(name=n, type=self.types[n]) for n in names]
        graph = helper.make_graph([node], "node", infos, [onnx.ValueInfoProto(name=o) for o in node.output if o])
        try:
            one = helper.make_model(graph, opset_imports=self._source.opset_import, ir_version=10)
            found: Any = ReferenceEvaluator(one).run(None, {n: self.constants[n] for n in names})
        except Exception:  # whatever the reference lacks, a run will do
            return False
        if any(not isinstance(v, np.ndarray | np.generic) or v.size > LARGEST for v in found):
            return False
        for name, value in zip((o for o in node.output if o), found, strict=True):
            self.set(name, np.asarray(value))
        return True

    def _infer(self, node: NodeProto) -> None:
        """Keep the types of a node's outputs, as far as ONNX's inference knows them."""
        domain = DOMAINS.get(node.domain, node.domain)
        try:
            schema = onnx.defs.get_schema(node.op_type, self._opsets[domain], domain)
            types = {i: self.types[i] for i in node.input if i}
            data = {i: numpy_helper.from_array(self.constants[i], i) for i in node.input if i in self.constants}
            self.types |= onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=list(self._source.opset_import)
            )
        except Exception:  # an op of a custom domain, or an input of which nothing is known
            return

    def give(self, value: str, name: str) -> None:
        """Name a value as the model names its output: it takes the name, unless something else has to keep it."""
        node = next((n for n in self.written if value in n.output), None)
        if node is None or value in {o.name for o in self._source.graph.output}:
            self.written.append(helper.make_node("Identity", [value], [name]))
            return
        for other in self.written:
            if any(subgraphs(other)) and value in _outside(other):
                self.written.append(helper.make_node("Identity", [value], [name]))
                return
        for other in self.written:
            other.input[:] = [name if i == value else i for i in other.input]
            other.output[:] = [name if o == value else o for o in other.output]

    def model(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> ModelProto:
        """What is left, as a model; nodes that nothing reads are gone."""
        wanted = {o.name for o in outputs}
        kept: list[NodeProto] = []
        for node in reversed(self.written):
            if wanted & set(node.output):
                kept.append(node)
                wanted |= set(node.input) | _outside(node)
        kept.reverse()
        held = [self._large[n] for n in self._large if n in wanted]
        held += [numpy_helper.from_array(a, n) for n, a in self.constants.items() if n in wanted]
        graph = helper.make_graph(kept, "specialized", inputs, outputs, held)
        return helper.make_model(graph, opset_imports=self._source.opset_import, ir_version=self._source.ir_version)


def _rename(nodes: Iterable[NodeProto], renamed: Mapping[str, str]) -> None:
    """Give values other names, in what nodes read and make, and in what their graphs read."""
    for node in nodes:
        node.input[:] = [renamed.get(i, i) for i in node.input]
        node.output[:] = [renamed.get(o, o) for o in node.output]
        for graph in subgraphs(node):
            _rename(graph.node, renamed)
            for info in graph.output:
                info.name = renamed.get(info.name, info.name)


def _outside(node: NodeProto) -> set[str]:
    """What the graphs of a node read, from outside or not."""
    found: set[str] = set()
    for graph in subgraphs(node):
        found |= {o.name for o in graph.output}
        for inner in graph.node:
            found |= set(inner.input) | _outside(inner)
    return found
