"""Definitions of ops for mixtures of experts, each on a rank of its own."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, Output, dtype_of

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


# What global_scatter and global_gather share: rows that experts on other ranks take, and give back.
class ExpertRows(OpDef):
    """Rows X [rows, width] travel to other ranks. A type says how many rows Out has, and which one is its way back."""

    X = Input("[rows, width].")
    local_count = Input("[ranks * experts], int64: how many rows of this rank go to each expert of each rank.")
    global_count = Input("[ranks * experts], int64: how many rows of each rank come to each expert of this one.")
    ring_id = RING_ID
    use_calc_stream = USE_CALC_STREAM
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("X", 2)
        ctx.set_dim("Out", (-1, dims[1]))


def way_back(op_type: str, fwd: ForwardOp) -> GradOp:
    """The gradient op of rows that travelled: they go back, by the op of type `op_type`."""
    return GradOp(
        op_type,
        X=fwd.output_grad("Out"),
        local_count=fwd.input("local_count"),
        global_count=fwd.input("global_count"),
        Out=fwd.input_grad("X"),
        attrs={k: v for k, v in fwd.attrs.items() if k in ("ring_id", "use_calc_stream")},
    )


class GlobalGather(ExpertRows, type="global_gather"):
    r"""$$Out = [X_{0, e_0}, X_{0, e_1}, \dots, X_{1, e_0}, X_{1, e_1}, \dots]$$

    The way back of global_scatter: X has what this rank's experts made of the rows of all ranks, and Out the
    rows that came from this rank.
    """

    Out = Output("[sum of local_count, width].")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return way_back("global_scatter", fwd)


class GlobalScatter(ExpertRows, type="global_scatter"):
    r"""$$Out = [X_{0, e_0}, X_{1, e_0}, \dots, X_{0, e_1}, X_{1, e_1}, \dots]$$

    X has this rank's rows for the experts e of rank 0, then of rank 1, and so on. Out has the rows of all ranks
    for this rank's first expert, then for its second, and so on.
    """

    Out = Output("[sum of global_count, width].")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return way_back("global_gather", fwd)
