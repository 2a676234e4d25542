"""How a kernel says which plain ops its op stands for: `step("mul", X=x, Y=w)`, one call for each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from oprack import op_info
from oprack.kernel import Array, KernelContext
from oprack.tensor import LoDTensor
from oprack.types import FLOATS

if TYPE_CHECKING:
    from oprack.tensor.lod_tensor import LoD

BOTH = ("cpu", "cuda")
DTYPES = FLOATS


class Steps:
    """Runs plain ops on arrays, each by the best kernel that the run may choose.

    Args:
        ctx: The context of the fused op's kernel.
    """

    def __init__(self, ctx: KernelContext) -> None:
        self._ctx = ctx

    def __call__(self, op_type: str, *, lods: Mapping[str, LoD] | None = None, want: str = "", **given: Any) -> Array:
        """One op.

        Args:
            op_type: The plain op.
            lods: Offsets of its inputs by slot.
            want: The output to give back, by default the first one of its OpProto.
            given: Its inputs by slot (`Out_grad` is `Out@GRAD`; None is absent), and attributes.

        Returns:
            The array of that output.
        """
        return self.all(op_type, lods=lods, **given)[want or next(iter(op_info(op_type).proto.outputs))]

    def all(self, op_type: str, *, lods: Mapping[str, LoD] | None = None, **given: Any) -> dict[str, Any]:
        """One op, as a call does it; the arrays of all outputs by slot."""
        proto = op_info(op_type).proto
        slots = {slot.param: slot.name for slot in proto.inputs.values()}
        inputs = {slots[name]: value for name, value in given.items() if name in slots}
        attrs = {name: value for name, value in given.items() if name not in slots}
        found = self._ctx.run_op(op_type, inputs, attrs, {slot: [lod] for slot, lod in (lods or {}).items()})
        if not isinstance(found, dict):
            results = found if isinstance(found, tuple) else (found,)
            found = dict(zip(proto.outputs, results, strict=False))
        return {slot: v.array if isinstance(v, LoDTensor) else v for slot, v in found.items()}

    def activated(self, x: Array, activation: str) -> Array:
        """An activation by the type of its op; "" and identity leave x as it is."""
        return x if activation in ("", "identity") else self(activation, X=x)

    def dense(self, x: Array, weight: Array, bias: Array | None, activation: str = "", dims: int = 1) -> Array:
        """activation(x weight + bias); dims: how many dims of x are rows."""
        out = self("mul", X=x, Y=weight, x_num_col_dims=dims, y_num_col_dims=1)
        if bias is not None:
            out = self("elementwise_add", X=out, Y=bias.reshape(-1), axis=-1)
        return self.activated(out, activation)
