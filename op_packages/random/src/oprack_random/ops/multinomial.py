"""multinomial: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class Multinomial(OpDef, type="multinomial"):
    r"""$$P(Out_{i,j} = k) = X_{i,k} / \sum_l X_{i,l}$$

    num_samples draws from each row; without replacement, what was drawn before counts as weight 0.
    """

    X = Input("[m] or [n, m] weights, not negative.")
    Out = Output("int64 [num_samples] or [n, num_samples]")
    num_samples = Attr(1, "How many to draw from each row.", support_tensor=True)
    replacement = Attr(False, "Whether a class may be drawn again.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, k = ctx.require_rank("X", 1, 2), ctx.attr("num_samples")
        ctx.set_dim("Out", (*dims[:-1], -1 if isinstance(k, str) else k))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")
