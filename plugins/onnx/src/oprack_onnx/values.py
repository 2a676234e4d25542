"""Values of ONNX, the variables of Fluid that hold them, and nodes as forms read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto
from oprack.errors import CorruptModelError, UnimplementedError
from oprack.types import DTYPE_NAMES, VarType

Dims = tuple[int, ...]

DTYPES: dict[int, VarType] = {
    TensorProto.FLOAT: VarType.FP32,
    TensorProto.UINT8: VarType.UINT8,
    TensorProto.INT8: VarType.INT8,
    TensorProto.UINT16: VarType.UINT16,
    TensorProto.INT16: VarType.INT16,
    TensorProto.INT32: VarType.INT32,
    TensorProto.INT64: VarType.INT64,
    TensorProto.BOOL: VarType.BOOL,
    TensorProto.FLOAT16: VarType.FP16,
    TensorProto.DOUBLE: VarType.FP64,
    TensorProto.UINT32: VarType.UINT32,
    TensorProto.UINT64: VarType.SIZE_T,
    TensorProto.COMPLEX64: VarType.COMPLEX64,
    TensorProto.COMPLEX128: VarType.COMPLEX128,
    TensorProto.BFLOAT16: VarType.BF16,
}
"""ONNX's number of a dtype -> Fluid's."""

ELEM_TYPES = {dtype: number for number, dtype in DTYPES.items()}

FLOATING = (VarType.FP32, VarType.FP64, VarType.FP16, VarType.BF16)
HALF = (VarType.FP16, VarType.BF16)
SIGNED = (VarType.INT8, VarType.INT16, VarType.INT32, VarType.INT64)


def dtype_of(number: int, where: str) -> VarType:
    """Fluid's dtype for ONNX's number. Raises UnimplementedError for one that oprack has no tensors of."""
    if number not in DTYPES:
        known = TensorProto.DataType.Name(number) if number in TensorProto.DataType.values() else str(number)
        raise UnimplementedError(
            f"{where} has elements of type {known}, of which oprack has no tensors; expected one of "
            + ", ".join(DTYPE_NAMES[d] for d in DTYPES.values())
        )
    return DTYPES[number]


@dataclass(frozen=True, slots=True)
class Value:
    """A value of ONNX.

    Attributes:
        name: The variable that holds it.
        dtype: Of its elements; of a sequence, of those of its tensors.
        shape: Its dims, -1 for one that is not known; None where even the rank is not.
        constant: What it is, where that is known.
        kind: LOD_TENSOR, or LOD_TENSOR_ARRAY for a sequence.
        given: Of an optional value: whether it is there, where that is known.
    """

    name: str
    dtype: VarType
    shape: Dims | None = None
    constant: np.ndarray | None = None
    kind: VarType = VarType.LOD_TENSOR

    @property
    def rank(self) -> int | None:
        """Number of dims; None where it is not known."""
        return None if self.shape is None else len(self.shape)

    @property
    def size_is_known(self) -> bool:
        """Whether every dim is known."""
        return self.shape is not None and min(self.shape, default=0) >= 0

    def numbers(self) -> list[int] | None:
        """A constant as a list of integers; None where it is none."""
        return None if self.constant is None else [int(v) for v in self.constant.reshape(-1)]


@dataclass(slots=True)
class Node:
    """A node as forms read it.

    Attributes:
        op, domain, opset: Its op, and the version of the opset that its model imports.
        inputs: Its values; None for one that is absent.
        attrs: Attributes as Python values; defaults of the schema are filled in.
        types: What is known of each output: dtype, dims and kind, or None.
        outputs: Names of its outputs; "" for one that is absent.
        given: Names of the attributes that the node itself gives.
    """

    op: str
    domain: str
    opset: int
    inputs: list[Value | None]
    attrs: dict[str, Any]
    types: list[tuple[VarType, Dims | None, VarType] | None]
    outputs: list[str]
    where: str
    given: frozenset[str] = field(default_factory=frozenset)
    graphs: Mapping[str, Any] = field(default_factory=dict)

    def has(self, i: int) -> bool:
        """Whether input i is there."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def get(self, i: int) -> Value | None:
        """Input i, or None."""
        return self.inputs[i] if i < len(self.inputs) else None

    def input(self, i: int = 0) -> Value:
        """Input i. Raises CorruptModelError when it is absent."""
        value = self.get(i)
        if value is None:
            raise CorruptModelError(f"{self.where}: input {i} is absent; expected one, as {self.op} has it")
        return value

    def ints(self, name: str, i: int = -1) -> list[int] | None:
        """Integers that are an attribute in old opsets and an input in new ones.

        Args:
            name: The attribute.
            i: The input; -1 where there is none.

        Returns:
            The numbers; None where neither is there, or the input is not known before a run.
        """
        if name in self.given:
            value = self.attrs[name]
            return [int(v) for v in value] if isinstance(value, Sequence) else [int(value)]
        value = self.get(i) if i >= 0 else None
        return None if value is None else value.numbers()

    def wants(self, i: int) -> bool:
        """Whether output i is asked for."""
        return i < len(self.outputs) and bool(self.outputs[i])

    def out_dtype(self, i: int = 0) -> VarType | None:
        """dtype of an output, where it is known."""
        found = self.types[i] if i < len(self.types) else None
        return None if found is None else found[0]

    def out_shape(self, i: int = 0) -> Dims | None:
        """Dims of an output, where they are known."""
        found = self.types[i] if i < len(self.types) else None
        return None if found is None else found[1]

    def lacking(self, what: str) -> UnimplementedError:
        """The error of a form that can't be written."""
        return UnimplementedError(f"{self.where}: {what}")
