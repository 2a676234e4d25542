"""Ops around rank tables: definitions; the operators are in operators.rank_table."""

from __future__ import annotations

from oprack.op import Attr, GradOp, GradOpDef, Input, OpDef, Output, empty_grad
from oprack.types import VarType


class LoDRankTableDef(OpDef, type="lod_rank_table"):
    """Out ranks the sequences of X by length, longest first."""

    X = Input("Tensor with LoD.")
    Out = Output("Rank table.")
    level = Attr(0, "The LoD level to rank.")
    make_grad = empty_grad

    def infer_shape(ctx):
        """A rank table has no shape."""

    def infer_var_type(ctx):
        ctx.set_kind("Out", VarType.LOD_RANK_TABLE)


class MaxSequenceLen(OpDef, type="max_sequence_len"):
    """Out is the length of the longest sequence of a rank table."""

    RankTable = Input("Rank table.")
    Out = Output("int64 [1]")
    make_grad = empty_grad

    def infer_shape(ctx):
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx):
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", "int64")


class LoDTensorToArray(OpDef, type="lod_tensor_to_array"):
    """Out[t] holds the t-th element of every sequence that has one, longest sequence first."""

    X = Input("Tensor with sequences as the rank table has them.")
    RankTable = Input("Rank table.")
    Out = Output("Tensor array, one tensor for each time step.")

    def infer_shape(ctx):
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))

    def infer_var_type(ctx):
        ctx.set_kind("Out", VarType.LOD_TENSOR_ARRAY)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd):
        return GradOp(
            "array_to_lod_tensor",
            X=fwd.output_grad("Out"),
            RankTable=fwd.input("RankTable"),
            Out=fwd.input_grad("X"),
        )


class ArrayToLoDTensor(OpDef, type="array_to_lod_tensor"):
    """Undoes lod_tensor_to_array: Out holds the sequences in their own order again."""

    X = Input("Tensor array, one tensor for each time step.")
    RankTable = Input("Rank table.")
    Out = Output("Tensor with the sequences of the rank table.")

    def infer_shape(ctx):
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
            ctx.set_lod_level("Out", 1)

    def infer_var_type(ctx):
        ctx.set_kind("Out", VarType.LOD_TENSOR)
        ctx.set_dtype("Out", ctx.dtype("X"))

    def make_grad(fwd):
        return GradOp(
            "lod_tensor_to_array",
            X=fwd.output_grad("Out"),
            RankTable=fwd.input("RankTable"),
            Out=fwd.input_grad("X"),
        )


class ShrinkRnnMemory(OpDef, type="shrink_rnn_memory"):
    """Out holds the states of the sequences that are longer than I, which come first in X."""

    X = Input("States, longest sequence first.")
    RankTable = Input("Rank table.")
    I = Input("One integer: the time step.")  # noqa: E741  the slot's name
    Out = Output("The first rows (or sequences) of X.")

    def infer_shape(ctx):
        if not ctx.is_runtime:
            ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))


class ShrinkRnnMemoryGrad(GradOpDef, of=ShrinkRnnMemory, reads="X Out@GRAD?", grads_of="X"):
    """X@GRAD is Out@GRAD, and 0 for the rows that were left out."""


class ReorderLoDTensorByRank(OpDef, type="reorder_lod_tensor_by_rank"):
    """Out holds the sequences of X (its rows when it has no LoD) in the order of the rank table."""

    X = Input("As many sequences or rows as the rank table has.")
    RankTable = Input("Rank table.")
    Out = Output("Shape of X.")

    def infer_shape(ctx):
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

    def infer_shape(ctx):
        if not ctx.is_runtime:
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")


class SplitLoDTensor(OpDef, type="split_lod_tensor"):
    """OutTrue holds the sequences (rows when X has no LoD) where Mask is true, OutFalse the others."""

    X = Input("Tensor.")
    Mask = Input("bool [n, 1]: one for each sequence.")
    OutTrue = Output("The sequences where Mask is true.")
    OutFalse = Output("The others.")
    level = Attr(0, "The LoD level whose sequences are split.")

    def infer_shape(ctx):
        if not ctx.is_runtime:
            for slot in ("OutTrue", "OutFalse"):
                ctx.set_dim(slot, (-1, *ctx.dim("X")[1:]))
                ctx.set_lod_level(slot, ctx.lod_level("X"))

    def make_grad(fwd):
        return GradOp(
            "merge_lod_tensor",
            X=fwd.input("X"),
            Mask=fwd.input("Mask"),
            InTrue=fwd.output_grad("OutTrue"),
            InFalse=fwd.output_grad("OutFalse"),
            Out=fwd.input_grad("X"),
            attrs=fwd.attrs,
        )


def _merged_shape(ctx):
    if not ctx.is_runtime:
        ctx.set_dim("Out", (-1, *ctx.dim("InTrue")[1:]))
        ctx.set_lod_level("Out", ctx.lod_level("InTrue"))


def _merged_type(ctx):
    ctx.set_dtype("Out", ctx.dtype("InTrue"))


class MergeLoDTensor(OpDef, type="merge_lod_tensor"):
    """Undoes split_lod_tensor: takes the sequences of InTrue and InFalse in turn, as Mask says."""

    X = Input("What was split; its upper LoD levels are kept.")
    Mask = Input("bool [n, 1]: one for each sequence.")
    InTrue = Input("The sequences where Mask is true.")
    InFalse = Input("The others.")
    Out = Output("The joined tensor.")
    level = Attr(0, "The LoD level whose sequences are joined.")
    infer_shape = _merged_shape
    infer_var_type = _merged_type

    def make_grad(fwd):
        return GradOp(
            "split_lod_tensor",
            X=fwd.output_grad("Out"),
            Mask=fwd.input("Mask"),
            OutTrue=fwd.input_grad("InTrue"),
            OutFalse=fwd.input_grad("InFalse"),
            attrs=fwd.attrs,
        )


class MergeLoDTensorInfer(OpDef, type="merge_lod_tensor_infer"):
    """merge_lod_tensor without a gradient."""

    X = Input("What was split; its upper LoD levels are kept.")
    Mask = Input("bool [n, 1]: one for each sequence.")
    InTrue = Input("The sequences where Mask is true.")
    InFalse = Input("The others.")
    Out = Output("The joined tensor.")
    level = Attr(0, "The LoD level whose sequences are joined.")
    infer_shape = _merged_shape
    infer_var_type = _merged_type
    make_grad = empty_grad
