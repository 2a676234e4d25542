"""flatten_contiguous_range: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of, normal_axis

from oprack_tensor.dims import product


class FlattenContiguousRange(OpDef, type="flatten_contiguous_range"):
    """Out is X with the dims start_axis ... stop_axis joined into one; a 0-D X becomes [1]."""

    X = Input("Tensor of any shape.")
    Out = Output("X flattened; LoD of X while the first dim stays.")
    XShape = Output("Empty, [0, dims of X]: carries X's shape and LoD to the gradient.", intermediate=True, extra=True)
    start_axis = Attr(1, "First dim to join; negative counts from the end.")
    stop_axis = Attr(1, "Last dim to join; negative counts from the end.")
    inplace = {"X": "Out"}

    def infer_shape(ctx):
        dims = ctx.dim("X")
        ctx.set_dim("XShape", (0, *dims))
        ctx.share_lod("X", "XShape")
        if not dims:
            ctx.set_dim("Out", (1,))
            return
        start = normal_axis(ctx.op_type, ctx.attr("start_axis"), len(dims), "start_axis")
        stop = normal_axis(ctx.op_type, ctx.attr("stop_axis"), len(dims), "stop_axis")
        ctx.require(start <= stop, f"start_axis is {start} and stop_axis {stop}; expected start_axis <= stop_axis")
        out = (*dims[:start], product(dims[start : stop + 1]), *dims[stop + 1 :])
        ctx.set_dim("Out", out)
        if out[0] == dims[0]:
            ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "flatten_contiguous_range_grad",
            XShape=fwd.output("XShape"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class FlattenContiguousRangeGrad(GradOpDef, type="flatten_contiguous_range_grad"):
    """X@GRAD is Out@GRAD in the shape of X."""

    Out_grad = Input("Gradient of Out.")
    XShape = Input("Carries the shape of X.")
    X_grad = Output("Shape and LoD of X.")
    start_axis = Attr(1, "As in flatten_contiguous_range.")
    stop_axis = Attr(1, "As in flatten_contiguous_range.")
    inplace = {"Out@GRAD": "X@GRAD"}
    no_need_buffer_vars = ("XShape",)
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("XShape")[1:])
        ctx.share_lod("XShape", "X@GRAD")
