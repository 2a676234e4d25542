"""global_gather: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


class GlobalGather(OpDef, type="global_gather"):
    r"""$$Out = [X_{0, e_0}, X_{0, e_1}, \dots, X_{1, e_0}, X_{1, e_1}, \dots]$$

    The way back of global_scatter: X has what this rank's experts made of the rows of all ranks, and Out the
    rows that came from this rank.
    """

    X = Input("[rows, width].")
    local_count = Input("[ranks * experts], int64: how many rows of this rank go to each expert of each rank.")
    global_count = Input("[ranks * experts], int64: how many rows of each rank come to each expert of this one.")
    Out = Output("[sum of local_count, width].")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 2)
        ctx.set_dim("Out", (-1, dims[1]))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "global_scatter",
            X=fwd.output_grad("Out"),
            local_count=fwd.input("local_count"),
            global_count=fwd.input("global_count"),
            Out=fwd.input_grad("X"),
            attrs={k: v for k, v in fwd.attrs.items() if k in ("ring_id", "use_calc_stream")},
        )
