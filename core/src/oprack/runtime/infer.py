"""InferShape on real values: checks inputs before the kernel runs and carries LoD from inputs to outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.errors import OprackError, PreconditionNotMetError
from oprack.op.infer import Dims, InferContext, InferShapeContext, InferVarTypeContext
from oprack.op.proto import OpProto
from oprack.python.records import dataclass
from oprack.runtime.checks import Listed, check_fits
from oprack.tensor import LoDTensor, LoDTensorArray, SparseValue
from oprack.tensor.kinds import LISTED, kind_of
from oprack.types import VarType, dtype_name

if TYPE_CHECKING:
    from oprack.runtime.operator import OperatorBase


@dataclass
class Inferred:
    """What a shape rule said of some inputs.

    Attributes:
        dims: Shape by (output slot, position), -1 where only the kernel knows.
        shares: Pairs of an input and an output that gets its LoD.
        from_values: Whether the rule looked at values or offsets, so that this holds for these inputs only, and not for
            others of the same shapes.
        watched: Whether a kernel's call for these inputs has been watched.
    """

    dims: Mapping[tuple[str, int], Dims]
    shares: Sequence[tuple[tuple[str, int], tuple[str, int]]]
    from_values: bool = False
    watched: bool = False


NOTHING_INFERRED = Inferred({}, ())


def dtype_of_value(value: Any) -> str | None:
    """dtype of a tensor, of a sparse value, or of the first element of an array; None for anything else."""
    if isinstance(value, LoDTensorArray):
        return next((t.dtype for t in value if t is not None), None)
    return getattr(value, "dtype", None)


class _RuntimeContext(InferContext):
    """The values of an op's inputs, and the names of its variables."""

    def __init__(
        self,
        proto: OpProto,
        attrs: Mapping[str, Any],
        values: Mapping[str, Sequence[Any]],
        input_names: Mapping[str, Sequence[str]],
        output_names: Mapping[str, Sequence[str]],
    ) -> None:
        self.op_type, self.proto = proto.type, proto
        self.attrs = attrs
        self._values = values
        self._input_names = input_names
        self._output_names = output_names

    def input_names(self, slot: str) -> Sequence[str]:
        if slot in self._values:
            return self._input_names.get(slot, ())
        self.require_declared(slot, self.proto.inputs, "input")
        return ()

    def output_names(self, slot: str) -> Sequence[str]:
        names = self._output_names.get(slot)
        if names is None:
            self.require_declared(slot, self.proto.outputs, "output")
            return ()
        return names

    def _value(self, slot: str, i: int) -> Any:
        values = self._values.get(slot, ())
        if i >= len(values) or values[i] is None:
            names = self._input_names.get(slot, ())
            name = f" (variable {names[i]!r})" if i < len(names) else ""
            raise PreconditionNotMetError(
                f"op {self.op_type}: input {slot}[{i}]{name} holds no value, but the op's shape rule reads it; "
                "feed it or run the op that writes it first: for a parameter, run the startup program or load its file"
            )
        return values[i]

    def kind(self, slot: str, i: int = 0) -> VarType:
        return kind_of(self._value(slot, i))


class RuntimeInferShapeContext(_RuntimeContext, InferShapeContext):
    """Dims and LoD of the values at hand; keeps what the rule sets for the outputs.

    Attributes:
        dims_set: (slot, i) -> shape set by the rule, -1 where only the kernel knows.
        shares: ((source, i), (target, j)) pairs of inputs and the outputs that get their LoD.
        read_values: Whether the rule looked at a value or at offsets, so that its result holds for these only.
        listed: Whether output i of a slot lists its elements, so that its dims take no memory.
    """

    is_runtime = True
    listed: Listed = staticmethod(lambda slot, i: False)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.dims_set: dict[tuple[str, int], Dims] = {}
        self.shares: list[tuple[tuple[str, int], tuple[str, int]]] = []
        self.read_values = False

    def is_initialized(self, slot: str, i: int = 0) -> bool:
        values = self._values.get(slot, ())
        return i < len(values) and values[i] is not None

    def dim(self, slot: str, i: int = 0) -> Dims:
        value = self._value(slot, i)
        if type(value) is LoDTensor:
            return tuple(value.array.shape)
        if isinstance(value, LoDTensorArray):
            # Fluid gives an array the dims of its elements; one that nothing was written to has none yet
            return next((t.shape for t in value if t is not None), ())
        return tuple(value.shape)

    def set_dim(self, slot: str, dims: Sequence[int], i: int = 0) -> None:
        if i < len(self.output_names(slot)):
            self.dims_set[slot, i] = tuple(map(int, dims))
            check_fits(self.op_type, (slot, i), self.output_names(slot)[i], self.dims_set[slot, i], self.listed)

    def lod_level(self, slot: str, i: int = 0) -> int:
        value = self._value(slot, i)
        return len(value.lod) if isinstance(value, LoDTensor) else 0

    def lod(self, slot: str, i: int = 0) -> list[list[int]]:
        self.read_values = True  # offsets are no part of the signature that results are cached by
        value = self._value(slot, i)
        return value.lod if isinstance(value, LoDTensor) else []

    def share_lod(self, source: str, target: str, i: int = 0, j: int = 0) -> None:
        present, targets = self.has_input(source), self.output_names(target)
        if present and j < len(targets):
            self.shares.append(((source, i), (target, j)))

    def set_lod_level(self, slot: str, level: int, i: int = 0) -> None:
        """The kernel returns the offsets."""

    def value(self, slot: str, i: int = 0) -> Any:
        self.read_values = True
        value = self._value(slot, i)
        return np.asarray(value.elements if isinstance(value, SparseValue) else value)


class RuntimeInferVarTypeContext(_RuntimeContext, InferVarTypeContext):
    """Containers and dtypes of present values; records what the rule sets for outputs, by (slot, i)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.kinds_set: dict[tuple[str, int], VarType] = {}
        self.dtypes_set: dict[tuple[str, int], str] = {}

    def dtype(self, slot: str, i: int = 0) -> str:
        dtype = dtype_of_value(self._value(slot, i))
        if dtype is None:
            raise PreconditionNotMetError(f"op {self.op_type}: input {slot}[{i}] has no dtype yet")
        return dtype

    def set_dtype(self, slot: str, dtype: object, i: int | None = None) -> None:
        for k in range(self.output_count(slot)) if i is None else (i,):
            self.dtypes_set[slot, k] = dtype_name(dtype)

    def set_kind(self, slot: str, kind: VarType, i: int | None = None) -> None:
        """Noted alone: the kernel decides the container."""
        for k in range(self.output_count(slot)) if i is None else (i,):
            self.kinds_set[slot, k] = kind


def lists_elements(op: OperatorBase, values: Mapping[str, Sequence[Any]], slot: str, i: int) -> bool:
    """Whether an output lists its elements by the op's type rule; what a program declares is not to be trusted."""
    context = RuntimeInferVarTypeContext(op.info.proto, op.attrs, values, op.inputs, op.outputs)
    try:
        op.info.run_infer_var_type(context)
    except OprackError:
        return False  # the rule needs something that is known only when the program is built
    return context.kinds_set.get((slot, i)) in LISTED
