"""What global_scatter and global_gather share: rows that experts on other ranks take, and give back."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp, InferShapeContext, Input, OpDef, dtype_of

from oprack_collective.ops._attrs import RING_ID, USE_CALC_STREAM


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
