"""linear_chain_crf: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import GradOpDef, InferShapeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import sequences


class LinearChainCrf(OpDef, type="linear_chain_crf"):
    r"""Negative log-likelihood of a label path in a linear-chain conditional random field.

    With a_l, b_l the weights of starting and ending at label l and w those of following: the score of a path s is
    $$a_{s_1} + b_{s_L} + \sum_l x_{l, s_l} + \sum_{l>1} w_{s_{l-1}, s_l}$$
    and the loss the log of the sum of exp(score) over all paths minus the score of Label. An empty sequence costs 0.
    """

    Emission = Input("Unnormalised weights x: [N, D] with LoD, or [B, T, D] with Length.")
    Transition = Input("[D + 2, D]: row 0 holds a, row 1 holds b, the others w (from row to column).")
    Label = Input("int64 [N, 1] with LoD, or [B, T] (or [B, T, 1]) with Length.")
    Length = Input("int64 [B] or [B, 1].", dispensable=True)
    Alpha = Output("Forward probabilities, normalised in each row; shape of Emission.", intermediate=True)
    EmissionExps = Output("exp(x - largest of its row).", intermediate=True)
    TransitionExps = Output("exp(Transition).", intermediate=True)
    LogLikelihood = Output("[number of sequences, 1].")
    expected_kernel_type = dtype_of("Emission")
    sbp = sequences(
        ("Emission", "Label", "Length"), ("Alpha", "EmissionExps", "LogLikelihood"), ("LogLikelihood", "Length")
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.has_input("Length"):
            ctx.require_lod("Emission")
        emission = ctx.require_rank("Emission", *((3,) if ctx.has_input("Length") else (2,)))
        tags = emission[-1]
        states = tags + 2 if tags >= 0 else -1
        ctx.require_dims("Transition", (states, tags), why=f"for the {tags} columns of Emission")
        ctx.set_dim("Alpha", emission)
        ctx.set_dim("EmissionExps", emission)
        ctx.set_dim("TransitionExps", ctx.dim("Transition"))
        ctx.set_dim("LogLikelihood", (emission[0] if ctx.has_input("Length") else -1, 1))


class LinearChainCrfGrad(
    GradOpDef,
    of=LinearChainCrf,
    reads="Label Length Alpha EmissionExps TransitionExps",
    shape_of="Emission Transition",
    grads_of="Emission Transition",
):
    """Marginal probabilities of labels and of pairs of labels, minus what Label has."""
