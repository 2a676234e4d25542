"""repeat_interleave and its gradient."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class RepeatInterleave(OpDef, type="repeat_interleave"):
    r"""Out repeats part i of X along dim `dim` $r_i$ times, one after the other, where $r_i$ is
    Repeats or RepeatsTensor_i."""

    X = Input("Tensor of rank 1 or more.")
    RepeatsTensor = Input("int32 or int64 [size of the dim], overrides `Repeats`.", dispensable=True)
    Out = Output("X with the sum of all repetitions in place of the dim.")
    Repeats = Attr(0, "How often to repeat each part.")
    dim = Attr(0, "Dim to repeat along; negative counts from the end.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, dim, times = list(ctx.dim("X")), ctx.axis("X", "dim"), ctx.attr("Repeats")
        if ctx.has_input("RepeatsTensor"):
            ctx.require_dims("RepeatsTensor", [dims[dim]], why=f"since X has shape {dims}")
            dims[dim] = -1
        else:
            ctx.require(times > 0, f"Repeats is {times}; expected 1 or more, or a RepeatsTensor")
            dims[dim] = -1 if dims[dim] < 0 else dims[dim] * times
        ctx.set_dim("Out", dims)


class RepeatInterleaveGrad(
    GradOpDef, of=RepeatInterleave, reads="X RepeatsTensor", shape_of="X", grads_of="X", linear=True
):
    """X@GRAD sums Out@GRAD over the repetitions of each part."""
