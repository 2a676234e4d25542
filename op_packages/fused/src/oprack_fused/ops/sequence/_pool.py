"""Pooled sequences side by side."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

AXIS = Attr(1, "Always 1.").in_set({1})


class PooledConcat(OpDef):
    """sequence_pool of each X, and concat."""

    X = Input("[N, M] with LoD, each; as many sequences in all.", duplicable=True)
    Out = Output("[number of sequences, columns of all X], each row a sequence.")
    pooltype = Attr("SUM", "SUM, AVERAGE or SQRT, as sequence_pool has it.").in_set({"SUM", "AVERAGE", "SQRT"})

    def infer_shape(ctx: InferShapeContext) -> None:
        columns = 0
        for i in range(ctx.input_count("X")):
            ctx.require_lod("X", 1, i)
            dims = ctx.dim("X", i)
            ctx.require(len(dims) == 2, f"X[{i}] has shape {list(dims)}; expected a matrix")
            columns = -1 if -1 in (columns, dims[1]) else columns + dims[1]
        ctx.set_dim("Out", (-1, columns))
        ctx.set_lod_level("Out", 1)
