"""positive_negative_pair: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad

_SLOTS = ("PositivePair", "NegativePair", "NeutralPair")


class PositiveNegativePair(OpDef, type="positive_negative_pair"):
    r"""$$PositivePair = \sum_{(i, j)} \frac{w_i + w_j}{2} [(s_i - s_j)(l_i - l_j) > 0]$$ over the pairs of one query
    whose labels l differ; the others of them count in NegativePair, and those with equal scores s in NeutralPair, too.
    """

    Score = Input("[N, columns], scores.")
    Label = Input("[N, 1], how well each item fits.")
    QueryID = Input("int64 [N, 1], the query of each item.")
    AccumulatePositivePair = Input("[1], counted so far.", dispensable=True)
    AccumulateNegativePair = Input("[1], counted so far.", dispensable=True)
    AccumulateNeutralPair = Input("[1], counted so far.", dispensable=True)
    Weight = Input("[N, 1]; 1 when absent.", dispensable=True)
    PositivePair = Output("[1], pairs in the right order.")
    NegativePair = Output("[1], pairs in the wrong order.")
    NeutralPair = Output("[1], pairs with equal scores.", dispensable=True)
    column = Attr(0, "The column of Score to use; negative counts from the end.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("Score")

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, columns = ctx.require_rank("Score", 2)
        column = ctx.attr("column")
        ctx.require(
            columns < 0 or -columns <= column < columns, f"column is {column}; expected one of Score's {columns}"
        )
        for slot in ("Label", "QueryID", "Weight"):
            if ctx.has_input(slot):
                ctx.require_dims(slot, (rows, 1), why="a row for each of Score")
        for slot in _SLOTS:
            ctx.set_dim(slot, (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in _SLOTS:
            ctx.set_dtype(slot, ctx.dtype("Score"))
