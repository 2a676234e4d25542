"""expand_as (Paddle 1.x) and its gradient."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of


class ExpandAs(OpDef, type="expand_as"):
    r"""$$Out_{\dots, r d + i, \dots} = X_{\dots, i, \dots}$$ X of dim d, repeated until it has the shape of
    target_tensor, whose dims are multiples of those of X."""

    X = Input("Tensor of rank 1 to 6.")
    target_tensor = Input("Gives the shape; its values are not read.")
    Out = Output("X repeated, shape of target_tensor.")
    no_need_buffer_vars = ("target_tensor",)
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, target = ctx.dim("X"), ctx.dim("target_tensor")
        pairs = zip(dims, target, strict=False)
        ctx.require(
            len(dims) == len(target) and all(min(a, b) < 0 or (b % a == 0 if a else b == 0) for a, b in pairs),
            f"X has shape {list(dims)} and target_tensor {list(target)}; expected equal ranks, and dims of "
            "target_tensor that are multiples of those of X",
        )
        ctx.set_dim("Out", target)


class ExpandAsGrad(GradOpDef, of=ExpandAs, shape_of="X target_tensor", grads_of="X"):
    """X@GRAD sums Out@GRAD over the repetitions."""
