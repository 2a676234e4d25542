"""Rows and sequences repeated for another LoD."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences


class SequenceExpand(OpDef, type="sequence_expand"):
    r"""$$Out = [X^{(i)} \text{ repeated } \ell_i \text{ times}]_i$$, l_i the length of sequence i of a level of Y; of
    an X without LoD, row i.

    When that level of Y has no sequence at all, Out is X.
    """

    X = Input("[N, ...] with at most one LoD level.")
    Y = Input("Its LoD tells how often; its data is not read.")
    Out = Output("Repeated rows; one LoD level if X has one, else none.")
    ref_level = Attr(-1, "Level of Y's LoD to count by; -1 is the innermost.")
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Y"), ("Out",), ("X",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Y")
        ctx.set_dim("Out", (-1, *ctx.dim("X")[1:]))
        ctx.set_lod_level("Out", ctx.lod_level("X"))


class SequenceExpandGrad(GradOpDef, of=SequenceExpand, shape_of="X Y", grads_of="X", linear=True):
    """Sums the gradients of all repeats of a row."""


class SequenceExpandAs(OpDef, type="sequence_expand_as"):
    r"""$$Out_r = X_{i}$$ for each row r of sequence i of Y (innermost level), so that Out has Y's sequences."""

    X = Input("[number of sequences of Y, ...].")
    Y = Input("Its LoD tells how often; its data is not read.")
    Out = Output("[rows of Y, ...] with the LoD of Y.")
    no_need_buffer_vars = ("Y",)
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Y"), ("Out",), ("X",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Y")
        ctx.set_dim("Out", (ctx.dim("Y")[0], *ctx.dim("X")[1:]))
        ctx.share_lod("Y", "Out")


class SequenceExpandAsGrad(GradOpDef, of=SequenceExpandAs, shape_of="X Y", grads_of="X", linear=True):
    """Sums the gradients of all repeats of a row."""
