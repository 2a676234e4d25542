"""expand and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import given_ints
from oprack_tensor.ops.shape._tile import set_tiled


class Expand(OpDef, type="expand"):
    r"""$$Out_{\dots, r d + i, \dots} = X_{\dots, i, \dots}$$ X of dim d, repeated expand_times[k] times along dim k, as
    tile does for as many numbers as X has dims."""

    X = Input("Tensor of rank 1 or more.")
    ExpandTimes = Input("int32 [rank of X], overrides `expand_times`.", dispensable=True)
    expand_times_tensor = Input("One-element tensors, override `expand_times`.", dispensable=True, duplicable=True)
    Out = Output("X repeated; LoD of X while the first dim stays.")
    expand_times = Attr([], "Repetitions along each dim.", type=AttrType.INTS)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        rank = len(ctx.dim("X"))
        times = given_ints(ctx, "expand_times", "ExpandTimes", "expand_times_tensor", likely=rank)
        ctx.require(
            len(times) == rank,
            f"X has shape {list(ctx.dim('X'))} and expand_times is {times}; expected one for each dim",
        )
        set_tiled(ctx, "expand_times", times)


class ExpandGrad(GradOpDef, of=Expand, shape_of="X ExpandTimes expand_times_tensor", grads_of="X", linear=True):
    """X@GRAD sums Out@GRAD over the repetitions."""
