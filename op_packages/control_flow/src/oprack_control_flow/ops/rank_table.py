"""Sequences ordered by length, for loops over their places."""

from __future__ import annotations

from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    empty_grad,
)
from oprack.types import VarType


# array_to_lod_tensor: its definition; the operator is in the file of this name below operators.
class ArrayToLoDTensor(OpDef, type="array_to_lod_tensor"):
    r"""$$Out_{o_s + t} = X[t]_{r(s)}$$ for each sequence s, whose rows begin at o_s and whose place in the rank table
    is r(s).

    Undoes lod_tensor_to_array: Out holds the sequences in their own order again.
    """

    X = Input("Tensor array, one tensor for each time step.")
    RankTable = Input("Rank table.")
    Out = Output("Tensor with the sequences of the rank table.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
            ctx.set_lod_level("Out", 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "lod_tensor_to_array",
            X=fwd.output_grad("Out"),
            RankTable=fwd.input("RankTable"),
            Out=fwd.input_grad("X"),
        )


# lod_rank_table: its definition; the operator is in the file of this name below operators.
class LoDRankTableDef(OpDef, type="lod_rank_table"):
    r"""$$\ell_{Out_0} \ge \ell_{Out_1} \ge \ldots$$: the sequences of X by their lengths l, longest first; equals keep
    their order.
    """

    X = Input("Tensor with LoD.")
    Out = Output("Rank table.")
    level = Attr(0, "The LoD level to rank.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """A rank table has no shape."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_RANK_TABLE)


# lod_tensor_to_array: its definition; the operator is in the file of this name below operators.
class LoDTensorToArray(OpDef, type="lod_tensor_to_array"):
    r"""$$Out[t]_r = X_{o_s + t}$$ where s is the r-th longest sequence, its rows begin at o_s, and it has more than t
    of them.
    """

    X = Input("Tensor with sequences as the rank table has them.")
    RankTable = Input("Rank table.")
    Out = Output("Tensor array, one tensor for each time step.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "array_to_lod_tensor",
            X=fwd.output_grad("Out"),
            RankTable=fwd.input("RankTable"),
            Out=fwd.input_grad("X"),
        )


# max_sequence_len: its definition; the operator is in the file of this name below operators.
class MaxSequenceLen(OpDef, type="max_sequence_len"):
    r"""$$Out = \max_s \ell_s$$: the length of the longest sequence of a rank table, 0 when it has none."""

    RankTable = Input("Rank table.")
    Out = Output("int64 [1]")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", "int64")


# reorder_lod_tensor_by_rank: its definition; the operator is in the file of this name below operators.
class ReorderLoDTensorByRank(OpDef, type="reorder_lod_tensor_by_rank"):
    r"""$$Out^{(r)} = X^{(s_r)}$$: the sequences of X (its rows when it has no LoD) in the order s of the
    rank table.
    """

    X = Input("As many sequences or rows as the rank table has.")
    RankTable = Input("Rank table.")
    Out = Output("Shape of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")


class ReorderLoDTensorByRankGrad(
    GradOpDef,
    of=ReorderLoDTensorByRank,
    reads="Out@GRAD RankTable",
    grads_of="X",
    grad_names={"Out": "X", "X": "Out"},
):
    """Out holds the sequences of X in their own order again."""

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")


# shrink_rnn_memory: its definition; the operator is in the file of this name below operators.
class ShrinkRnnMemory(OpDef, type="shrink_rnn_memory"):
    r"""$$Out = X_{0 \ldots n - 1}, \quad n = |\{s : \ell_s > I\}|$$

    The states of the sequences that are longer than I, which come first in X.
    """

    X = Input("States, longest sequence first.")
    RankTable = Input("Rank table.")
    I = Input("One integer: the time step.")  # noqa: E741  the slot's name
    Out = Output("The first rows (or sequences) of X.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))


class ShrinkRnnMemoryGrad(GradOpDef, of=ShrinkRnnMemory, reads="X Out@GRAD?", grads_of="X"):
    """X@GRAD is Out@GRAD, and 0 for the rows that were left out."""
