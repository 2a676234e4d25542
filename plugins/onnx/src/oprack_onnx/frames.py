"""What the nodes of a graph see: values by name, and the types that ONNX's inference found."""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import GraphProto, TypeProto
from oprack.errors import CorruptModelError, OprackError
from oprack.python.interruption import let_interruptions_pass
from oprack.python.text import printable
from oprack.types import VarType

from oprack_onnx.model import subgraphs
from oprack_onnx.values import DTYPES, Dims, Value

Types = dict[str, tuple[VarType, Dims | None, VarType]]
DOMAINS = {"ai.onnx": "", "": ""}


@dataclass(slots=True)
class Frame:
    """What the nodes of a graph see."""

    values: dict[str, Value | None]
    types: Types
    outer: Frame | None = None
    open_: set[str] = field(default_factory=set)

    def find(self, name: str, where: str) -> Value | None:
        """A value of this graph or of one around it. Raises CorruptModelError when there is none."""
        frame: Frame | None = self
        while frame is not None:
            if name in frame.values:
                return frame.values[name]
            frame = frame.outer
        raise CorruptModelError(f"{where} reads {printable(name)!r}, which nothing before it makes")


def graph_types(graph: GraphProto) -> Types:
    """Name -> dtype, dims and kind of the values of a graph, subgraphs included, whose types are known."""
    found: Types = {}
    for info in [*graph.value_info, *graph.output, *graph.input]:
        known = value_type(info.type)
        if known is not None:
            found[info.name] = known
    for node in graph.node:
        for inner in subgraphs(node):
            found |= graph_types(inner)
    return found


def value_type(type_: TypeProto) -> tuple[VarType, Dims | None, VarType] | None:
    """dtype, dims and kind of a type; None where they are not known."""
    which = type_.WhichOneof("value")
    if which == "sequence_type":
        inner = value_type(type_.sequence_type.elem_type)
        return None if inner is None else (inner[0], None, VarType.LOD_TENSOR_ARRAY)
    if which == "optional_type":
        inner = value_type(type_.optional_type.elem_type)
        return None if inner is None else (inner[0], None, VarType.LOD_TENSOR_ARRAY)
    if which != "tensor_type" or type_.tensor_type.elem_type not in DTYPES:
        return None
    tensor = type_.tensor_type
    dims = None
    if tensor.HasField("shape"):
        dims = tuple(d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else -1 for d in tensor.shape.dim)
    return DTYPES[tensor.elem_type], dims, VarType.LOD_TENSOR


CONTRADICTIONS = (
    OprackError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
    AssertionError,
)
"""What reading a model raises that says of itself what can't be: attributes of other types, sizes beyond all."""


def contradiction(error: Exception, where: str) -> CorruptModelError:
    """The error of a model that contradicts ONNX's schema.

    Args:
        error: One of CONTRADICTIONS.
        where: The node, or what else was read.

    Returns:
        The error to raise from it.
    """
    let_interruptions_pass()
    return CorruptModelError(f"{where} contradicts ONNX's schema: {type(error).__name__}: {error}")
