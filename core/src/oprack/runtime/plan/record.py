"""What one run of an op on the reference path decided; a plan is generated from such records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from oprack.tensor import LoDTensor, LoDTensorArray, SelectedRows

if TYPE_CHECKING:
    from oprack.kernel import Candidate
    from oprack.runtime.kernel_operator import OperatorWithKernel

Signature = tuple[Any, ...] | None


def signature(value: Any) -> Signature:
    """What the choice of kernels depends on: class, dtype, place, layout and number of LoD levels, never the shape."""
    if isinstance(value, LoDTensor):
        return (LoDTensor, value.array.dtype, len(value.lod), value.layout, value.place)
    if isinstance(value, SelectedRows):
        return (SelectedRows, value.value.dtype, value.place)
    if isinstance(value, LoDTensorArray):
        first = next((t for t in value if t is not None), None)
        return (LoDTensorArray, signature(first))
    return None if value is None else (type(value),)


@dataclass(frozen=True)
class OpRecord:
    """One op of a traced run.

    op, chosen: the operator and its kernel. given: values by input slot, as the scope held them. prepared: the same
    after the data transform. result: what the kernel returned. outputs: by output slot. shares: LoD that infer_shape
    hands from inputs to outputs.
    """

    op: OperatorWithKernel
    chosen: Candidate
    given: Mapping[str, Sequence[Any]]
    prepared: Mapping[str, Sequence[Any]]
    result: Any
    outputs: Mapping[str, Sequence[Any]]
    shares: Sequence[tuple[tuple[str, int], tuple[str, int]]]

    @property
    def plain(self) -> bool:
        """Whether generated code can do it: nothing is transformed before the kernel or after it, nor of its layout."""
        if self.chosen.spec.layout != "any":
            return False
        same = all(g is p for s, values in self.prepared.items() for g, p in zip(self.given[s], values, strict=True))
        return same and not self._made_real()

    def _made_real(self) -> bool:
        """Whether a complex gradient was cut to its real part."""
        returned = self.result.values() if isinstance(self.result, dict) else self.result
        returned = returned if isinstance(returned, list | tuple) or isinstance(self.result, dict) else [returned]
        if all(getattr(getattr(v, "dtype", None), "kind", "") != "c" for v in returned):
            return False
        return any(isinstance(v, LoDTensor) and v.array.dtype.kind != "c" for vs in self.outputs.values() for v in vs)
