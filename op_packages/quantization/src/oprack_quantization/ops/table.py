"""Definitions of tables of quantized numbers."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.op.families import like
from oprack.types import AttrType


class DequantizeLog(OpDef, type="dequantize_log"):
    r"""$$Out = Dict_X \;\text{for}\; X \ge 0,\quad Out = -Dict_{X + 128} \;\text{for}\; X < 0$$"""

    X = Input("int8 tensor of any shape.")
    Dict = Input("float32 [128]: the numbers that X stands for.")
    Out = Output("float32, shape and LoD of X.")
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_dims("Dict", (128,), why="one number for each int8 that is not negative")
        like(ctx, [("Out", "X")])

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("Dict"))


class LookupTableDequant(OpDef, type="lookup_table_dequant"):
    r"""$$Out_{i,j} = a + b_j (z - a) / 256$$ for the row of W with number Ids[i]: $a$, $z$, and bytes $b$ behind them.

    A row of W holds its least and its greatest number as floats, and then one byte for each of its numbers, four of
    them in the place of a float.
    """

    W = Input("float32 [V, D], whose columns from 2 on are bytes.")
    Ids = Input("int64 [..., 1], each from 0 to V - 1.")
    Out = Output("float32 [..., 4 (D - 2)], LoD of Ids.")
    padding_idx = Attr(-1, "The id whose row is zeros; -1: none.", type=AttrType.LONG)
    expected_kernel_type = dtype_of("W")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        table, ids = ctx.require_rank("W", 2), tuple(ctx.dim("Ids"))
        ctx.require(
            table[1] < 0 or table[1] > 2,
            f"W has shape {list(table)}; expected more than 2 columns, of which the first two are a range",
        )
        ctx.require(
            len(ids) >= 2 and ids[-1] in (1, -1),
            f"Ids has shape {list(ids)}; expected two dims or more, the last one 1",
        )
        ctx.set_dim("Out", (*ids[:-1], -1 if table[1] < 0 else 4 * (table[1] - 2)))
        ctx.share_lod("Ids", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("W"))
