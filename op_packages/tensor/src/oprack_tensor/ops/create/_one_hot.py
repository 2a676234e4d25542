"""What one_hot and one_hot_v2 share."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


def given_depth(ctx: InferShapeContext) -> int:
    """The number of classes, -1 where it is not known yet."""
    depth = ctx.attr("depth")
    if ctx.has_input("depth_tensor"):
        value = ctx.scalar("depth_tensor")
        depth = -1 if value is None else int(value)
    ctx.require_sizes("depth", [depth])
    return depth


class OneHotOf(OpDef):
    """Ids as rows of zeros with a 1."""

    X = Input("int32 or int64 ids of any shape.")
    depth_tensor = Input("One-element tensor that overrides `depth`.", dispensable=True)
    Out = Output("Shape of X and a last dim `depth`; LoD of X.")
    depth = Attr(-1, "Number of classes.")
    dtype = Attr(5, "dtype of Out.")
    allow_out_of_range = Attr(False, "Give zeros for an id outside [0, depth) instead of an error.")
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (*ctx.dim("X"), given_depth(ctx)))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.attr("dtype"))
