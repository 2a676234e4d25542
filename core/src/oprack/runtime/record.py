"""What one run of an op on the reference path decided; a plan is generated from such records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oprack.records import dataclass
from oprack.tensor import LoDTensor, LoDTensorArray, SparseValue

if TYPE_CHECKING:
    from oprack.kernel import Candidate
    from oprack.runtime.infer import Inferred
    from oprack.runtime.kernel_operator import OperatorWithKernel

Signature = tuple[Any, ...] | None


def signature(value: Any) -> Signature:
    """What the choice of kernels depends on: class, dtype, place and number of LoD levels, never the shape."""
    if isinstance(value, LoDTensor):
        return (LoDTensor, value.array.dtype, len(value.lod), value.place)
    if isinstance(value, SparseValue):
        return (type(value), value.elements.dtype, value.place)
    if isinstance(value, LoDTensorArray):
        first = next((t for t in value if t is not None), None)
        return (LoDTensorArray, signature(first))
    return None if value is None else (type(value),)


@dataclass(frozen=True)
class OpRecord:
    """One op of a recorded run, without the memory of its values: containers, dtypes and LoD levels are enough.

    Attributes:
        op: The operator.
        chosen: Its kernel, linked to those that take over when it declines.
        inputs: Values by input slot, as they were before the data transform.
        result: What the kernel returned.
        outputs: Values by output slot.
        inferred: What the shape rule said.
        compilable: Whether generated code can do the same, which is so where nothing is transformed before the kernel
            or after it.
    """

    op: OperatorWithKernel
    chosen: Candidate
    inputs: Mapping[str, Sequence[Any]]
    result: Any
    outputs: Mapping[str, Sequence[Any]]
    inferred: Inferred
    compilable: bool

    @classmethod
    def of(
        cls,
        op: OperatorWithKernel,
        chosen: Candidate,
        inputs: Mapping[str, Sequence[Any]],
        prepared: Mapping[str, Sequence[Any]],
        result: Any,
        outputs: Mapping[str, Sequence[Any]],
        inferred: Inferred,
    ) -> OpRecord:
        """The record of a run; `prepared` is `inputs` after the data transform."""
        same = all(g is p for s, values in prepared.items() for g, p in zip(inputs[s], values, strict=True))
        compilable = same and not _made_real(result, outputs)
        return cls(op, chosen, hollow(inputs), hollow(result), hollow(outputs), inferred, compilable)


def hollow(value: Any) -> Any:
    """A value of the same class, dtype and LoD levels without its memory, so that a record keeps nothing alive."""
    if isinstance(value, LoDTensor):
        return LoDTensor(np.empty(0, value.array.dtype), [[0]] * len(value.lod), check=False)
    if isinstance(value, SparseValue):
        pattern = [np.empty((*a.shape[:-1], 0), a.dtype) for a in value.pattern]
        return value.rebuilt(pattern, np.empty((0, *value.elements.shape[1:]), value.elements.dtype))
    if isinstance(value, LoDTensorArray):
        return LoDTensorArray()
    if isinstance(value, Mapping):
        return {k: hollow(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(hollow(v) for v in value)
    if hasattr(value, "dtype") and not isinstance(value, np.generic):
        return np.empty(0, value.dtype)
    return value


def _made_real(result: Any, outputs: Mapping[str, Sequence[Any]]) -> bool:
    """Whether a complex gradient was cut to its real part."""
    returned = list(result.values()) if isinstance(result, dict) else result
    returned = returned if isinstance(returned, list | tuple) else [returned]
    if all(getattr(getattr(v, "dtype", None), "kind", "") != "c" for v in returned):
        return False
    return any(isinstance(v, LoDTensor) and v.array.dtype.kind != "c" for vs in outputs.values() for v in vs)
