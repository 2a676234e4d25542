"""tile: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, dtype_of
from oprack.types import AttrType

from oprack_tensor.dims import given_ints


class Tile(OpDef, type="tile"):
    """Out repeats X `repeat_times[i]` times along dim i; the shorter of both is filled up with ones in front."""

    X = Input("Tensor of any shape.")
    RepeatTimes = Input("int32 or int64 [n], overrides `repeat_times`.", dispensable=True)
    repeat_times_tensor = Input("n one-element tensors, override `repeat_times`.", dispensable=True, duplicable=True)
    Out = Output("X repeated; LoD of X while the first dim stays.")
    repeat_times = Attr([], "Repetitions along each dim.", type=AttrType.INTS, support_tensor=True)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx):
        dims = ctx.dim("X")
        times = given_ints(ctx, "repeat_times", "RepeatTimes", "repeat_times_tensor")
        rank = max(len(dims), len(times))
        full, times = (1,) * (rank - len(dims)) + tuple(dims), [1] * (rank - len(times)) + times
        out = [-1 if t is None or d < 0 else d * t for d, t in zip(full, times, strict=True)]
        ctx.require(all(t is None or t > 0 for t in times), f"repeat_times is {times}; expected positive numbers")
        ctx.set_dim("Out", out)
        if dims and out[0] == dims[0]:
            ctx.share_lod("X", "Out")

    def make_grad(fwd):
        return GradOp(
            "tile_grad",
            X=fwd.input("X"),
            RepeatTimes=fwd.input("RepeatTimes"),
            repeat_times_tensor=fwd.input("repeat_times_tensor"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


class TileGrad(GradOpDef, type="tile_grad"):
    """X@GRAD sums Out@GRAD over the repetitions."""

    X = Input("Only its shape is read.")
    RepeatTimes = Input("As in tile.", dispensable=True)
    repeat_times_tensor = Input("As in tile.", dispensable=True, duplicable=True)
    Out_grad = Input("Gradient of Out.")
    X_grad = Output("Shape and LoD of X.")
    repeat_times = Attr([], "As in tile.", type=AttrType.INTS, support_tensor=True)
    no_need_buffer_vars = ("X", "RepeatTimes", "repeat_times_tensor")
    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_shape(ctx):
        ctx.set_dim("X@GRAD", ctx.dim("X"))
        ctx.share_lod("X", "X@GRAD")

    def make_grad(fwd):
        return GradOp(
            "tile",
            X=fwd.output_grad("X@GRAD"),
            RepeatTimes=fwd.input("RepeatTimes"),
            repeat_times_tensor=fwd.input("repeat_times_tensor"),
            Out=fwd.input_grad("Out@GRAD"),
            attrs=fwd.attrs,
        )
