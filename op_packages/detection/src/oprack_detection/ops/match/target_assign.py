"""target_assign (Paddle 1.x): all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


class TargetAssign(OpDef, type="target_assign"):
    r"""$$Out_{n,m} = X_{o_n + MatchIndices_{n,m}, \; m \bmod P}$$ with weight 1; mismatch_value with weight 0 where
    MatchIndices is -1

    o_n is the first row of image n. NegIndices get mismatch_value with weight 1.
    """

    X = Input("Targets [rows, P, K] with one LoD level: the rows of each image. P is 1 or the number of priors.")
    MatchIndices = Input("Row of each prior [N, M], int32, counted within its image; -1: none.")
    NegIndices = Input("Priors that learn mismatch_value [K, 1], int32; LoD: those of each image.", dispensable=True)
    Out = Output("Target of each prior [N, M, K].")
    OutWeight = Output("1 where it counts [N, M, 1], float32.")
    mismatch_value = Attr(0, "Target of priors without a match.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        x, (n, m) = ctx.require_rank("X", 3), ctx.require_rank("MatchIndices", 2)
        ctx.require_lod("X")
        if ctx.has_input("NegIndices"):
            ctx.require_lod("NegIndices")
        ctx.set_dim("Out", (n, m, x[2]))
        ctx.set_dim("OutWeight", (n, m, 1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("OutWeight", "float32")
