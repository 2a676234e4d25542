"""A graph of ONNX that is being written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import UnimplementedError
from oprack.packs import op_info
from oprack.types import VarType, dtype_enum

from oprack_onnx.values import DTYPES, ELEM_TYPES

Dims = tuple[int, ...]

_BOOLEAN = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf"}
_COUNTING = {"Shape", "Size", "ArgMax", "ArgMin", "NonZero", "NonMaxSuppression", "SequenceLength"}
_ELSEWHERE = {"If", "Loop", "Scan", "SequenceEmpty", "SequenceInsert", "ConstantOfShape"}
"""Ops whose outputs have the dtypes that the program, or a body, says."""


class Graph:
    """Nodes, and which value each variable has now. A graph of a branch or loop sees the values of the one around it.

    Args:
        block: The block whose ops are written.
        outer: The graph around it.
    """

    def __init__(self, block: BlockDesc, outer: Graph | None = None) -> None:
        self.block, self.outer = block, outer
        self.nodes: list[NodeProto] = []
        self.values: dict[str, str] = {}
        self.initializers: dict[str, np.ndarray] = outer.initializers if outer is not None else {}
        self.dims: dict[str, Dims] = outer.dims if outer is not None else {}
        self.dtypes: dict[str, VarType] = outer.dtypes if outer is not None else {}
        self._names: set[str] = outer._names if outer is not None else set()
        self.lods: dict[str, list[str]] = {}
        self.pairs: set[str] = outer.pairs if outer is not None else set()
        """Variables of complex numbers, whose values are pairs of floats."""
        self.types: dict[str, VarType] = outer.types if outer is not None else {}
        """The dtypes of values, as far as they are known."""

    # Names ------------------------------------------------------------------------------------------------------------
    def fresh(self, base: str) -> str:
        """A name that no value has."""
        name, number = base, 0
        while name in self._names:
            number += 1
            name = f"{base}.{number}"
        self._names.add(name)
        return name

    def _around(self) -> Iterator[Graph]:
        """This graph and those around it, the innermost first."""
        graph: Graph | None = self
        while graph is not None:
            yield graph
            graph = graph.outer

    def value(self, variable: str) -> str:
        """The value that a variable has now. Raises UnimplementedError when nothing has set it."""
        for graph in self._around():
            if variable in graph.values:
                return graph.values[variable]
        raise UnimplementedError(f"variable {variable!r} is read before anything sets it")

    def has_value(self, variable: str) -> bool:
        """Whether something has set a variable."""
        return any(variable in graph.values for graph in self._around())

    def lod(self, variable: str) -> list[str]:
        """The values with the offsets of each level of a variable's LoD, outermost first; none when it has no LoD."""
        return next((graph.lods[variable] for graph in self._around() if variable in graph.lods), [])

    def dtype(self, variable: str) -> VarType:
        """The dtype of a variable."""
        if variable in self.dtypes:
            return self.dtypes[variable]
        known = self.types.get(self.value(variable)) if self.has_value(variable) else None
        if known is not None:
            return known
        var = self.block.find_var_recursive(variable)
        return VarType(var.dtype) if var is not None and var.dtype is not None else VarType.FP32

    def shape(self, variable: str) -> Dims | None:
        """The dims of a variable, -1 for one that is not known; None where there is no such variable."""
        var = self.block.find_var_recursive(variable)
        return None if var is None or var.shape is None else tuple(var.shape)

    # Nodes ------------------------------------------------------------------------------------------------------------
    def node(self, op: str, inputs: Sequence[str], outputs: int = 1, domain: str = "", **attrs: Any) -> Any:
        """Append a node; returns the name of its output, or a list of several."""
        names = [self.fresh(op) for _ in range(outputs)]
        given = {k: v for k, v in attrs.items() if v is not None}
        self.nodes.append(helper.make_node(op, list(inputs), names, name=names[0], domain=domain, **given))
        self.types |= {
            n: t for n, t in zip(names, self._types(op, inputs, outputs, attrs), strict=True) if t is not None
        }
        return names[0] if outputs == 1 else names

    def _types(self, op: str, inputs: Sequence[str], outputs: int, attrs: Mapping[str, Any]) -> list[VarType | None]:
        """The dtypes of a node's outputs: that of its first input, where the op has none of its own."""
        if op in _BOOLEAN:
            return [VarType.BOOL] * outputs
        if op in _COUNTING:
            return [VarType.INT64] * outputs
        if op in _ELSEWHERE:
            return [None] * outputs
        if op in ("Cast", "RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"):
            return [DTYPES[attrs["to" if op == "Cast" else "dtype"]]] * outputs
        source = {"Where": 1, "OneHot": 2, "QuantizeLinear": 2, "DequantizeLinear": 1, "RoiAlign": 0}.get(op, 0)
        first = self.types.get(inputs[source]) if len(inputs) > source else None
        behind = VarType.INT64 if op in ("TopK", "Unique", "MaxPool") else first
        return [first, *[behind] * (outputs - 1)]

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        """An initializer."""
        name = self.fresh("constant")
        self.initializers[name] = np.asarray(value, dtype)
        self.types[name] = VarType(dtype_enum(self.initializers[name].dtype))
        return name

    def cast(self, value: str, dtype: VarType) -> str:
        """A value with another dtype."""
        return str(self.node("Cast", [value], to=ELEM_TYPES[dtype]))

    def ints(self, values: Sequence[int]) -> str:
        """An initializer of integers."""
        return self.constant(list(values))


class Call:
    """An op of Fluid as forms write it.

    Args:
        op: The op.
        graph: Where it is written.
    """

    def __init__(self, op: OpDesc, graph: Graph) -> None:
        self.op, self.graph, self.type = op, graph, op.type
        self.told: set[str] = set()
        """Outputs whose LoD the form has set."""
        self._defaults: Mapping[str, Any] = {n: a.default for n, a in op_info(op.type).proto.attrs.items()}

    def attr(self, name: str) -> Any:
        """An attribute, or its default."""
        return self.op.attr(name, self._defaults.get(name))

    def name(self, slot: str, i: int = 0) -> str:
        """The variable of an input slot. Raises UnimplementedError when it is absent."""
        names = self.op.input(slot)
        if i >= len(names):
            raise UnimplementedError(f"input {slot} is absent")
        return names[i]

    def declared(self, slot: str = "Out") -> VarType | None:
        """The dtype that the program declares for an output."""
        var = self.graph.block.find_var_recursive(next(iter(self.op.output(slot)), ""))
        return VarType(var.dtype) if var is not None and var.dtype is not None else None

    def has(self, slot: str) -> bool:
        """Whether an input slot is there."""
        return bool(self.op.input(slot))

    def input(self, slot: str = "X", i: int = 0) -> str:
        """The value of an input."""
        return self.graph.value(self.name(slot, i))

    def inputs(self, slot: str = "X") -> list[str]:
        """The values of a slot."""
        return [self.graph.value(n) for n in self.op.input(slot)]

    def rank(self, slot: str = "X", i: int = 0) -> int:
        """The rank of an input. Raises UnimplementedError where it is not known."""
        shape = self.graph.shape(self.name(slot, i))
        if shape is None:
            raise UnimplementedError(f"the rank of {slot} is not known")
        return len(shape)

    def dims(self, slot: str = "X", i: int = 0) -> Dims:
        """The dims of an input."""
        self.rank(slot, i)
        return self.graph.shape(self.name(slot, i)) or ()

    def dtype(self, slot: str = "X") -> VarType:
        """The dtype of an input."""
        return self.graph.dtype(self.name(slot))

    def set(self, value: str, slot: str = "Out", i: int = 0, dtype: VarType | None = None) -> None:
        """Set the variable of an output slot; nothing, when it is absent."""
        names = self.op.output(slot)
        if i < len(names):
            self.graph.values[names[i]] = value
            known = self.graph.types.get(value)
            if known is not None:
                self.graph.dtypes[names[i]] = known
            elif dtype is not None:
                self.graph.dtypes[names[i]] = dtype

    def node(self, op: str, *inputs: str, **attrs: Any) -> str:
        """Append a node of one output."""
        return str(self.graph.node(op, inputs, **attrs))

    def refuse(self, name: str, *values: Any) -> None:
        """Raise UnimplementedError unless an attribute has one of these values."""
        if self.attr(name) not in values:
            raise UnimplementedError(
                f"attribute {name} is {self.attr(name)!r}; expected {' or '.join(map(repr, values))}"
            )


Form = Callable[[Call], None]
FORMS: dict[str, Form] = {}
"""Op of Fluid -> how it is written."""


def exported(*ops: str) -> Callable[[Form], Form]:
    """Register a function as the form of some ops."""

    def register(function: Form) -> Form:
        FORMS.update(dict.fromkeys(ops, function))
        return function

    return register


def tensor(name: str, array: np.ndarray) -> TensorProto:
    """An array as a tensor of ONNX."""
    return numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
