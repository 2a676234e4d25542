"""tile: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, factors, letters
from oprack.types import AttrType

from oprack_tensor.dims import given_ints
from oprack_tensor.ops.shape._tile import set_tiled


class Tile(OpDef, type="tile"):
    r"""$$Out_{\ldots, i, \ldots} = X_{\ldots, i \bmod n_a, \ldots}$$ for $$0 \le i < n_a \cdot repeat\_times_a$$ along
    each dim a.

    The shorter of the shape and repeat_times is filled up with ones in front.
    """

    X = Input("Tensor of any shape.")
    RepeatTimes = Input("int32 or int64 [n], overrides `repeat_times`.", dispensable=True)
    repeat_times_tensor = Input("n one-element tensors, override `repeat_times`.", dispensable=True, duplicable=True)
    Out = Output("X repeated; LoD of X while the first dim stays.")
    repeat_times = Attr([], "Repetitions along each dim.", type=AttrType.INTS, support_tensor=True)
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        if ctx.has("RepeatTimes") or ctx.has("repeat_times_tensor"):
            return []
        x, out = ctx.dim("X"), ctx.dim("Out")
        new = len(out) - len(x)
        names = [n if a == b else None for n, a, b in zip(letters(len(x)), x, out[new:], strict=True)]
        return factors({"X": names}, {"Out": [None] * new + names}, linear=(("X",),))

    def infer_shape(ctx: InferShapeContext) -> None:
        set_tiled(ctx, "repeat_times", given_ints(ctx, "repeat_times", "RepeatTimes", "repeat_times_tensor"))


class TileGrad(GradOpDef, of=Tile, shape_of="X RepeatTimes repeat_times_tensor", grads_of="X", linear=True):
    """X@GRAD sums Out@GRAD over the repetitions."""
