"""Conditional random fields: the loss, and the best path."""

from __future__ import annotations

from oprack.op import (
    Attr,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import sequences
from oprack.types import VarType


class CrfDecoding(OpDef, type="crf_decoding"):
    r"""$$ViterbiPath = \arg\max_s \; a_{s_1} + b_{s_L} + \sum_l x_{l, s_l} + \sum_{l>1} w_{s_{l-1}, s_l}$$

    Most likely label path of every sequence in a linear-chain CRF (see linear_chain_crf), by Viterbi's algorithm. With
    Label, Out tells where the path agrees with it: 1, else 0. Of equally good labels the lowest wins.
    """

    Emission = Input("[N, D] with LoD, or [B, T, D] with Length.")
    Transition = Input("[D + 2, D]: start, stop, and from row to column.")
    Label = Input("int64 [N, 1] with LoD, or [B, T] with Length.", dispensable=True)
    Length = Input("int64 [B] or [B, 1].", dispensable=True)
    ViterbiPath = Output("int64 [N, 1] with the LoD of Emission, or [B, T] with 0 past the end.")
    expected_kernel_type = dtype_of("Emission")
    make_grad = empty_grad
    sbp = sequences(("Emission", "Label", "Length"), ("ViterbiPath",), ("Length",), same_lod=("Emission", "Label"))

    def infer_shape(ctx: InferShapeContext) -> None:
        padded = ctx.has_input("Length")
        if not padded:
            ctx.require_lod("Emission")
        emission = ctx.require_rank("Emission", 3 if padded else 2)
        tags = emission[-1]
        states = tags + 2 if tags >= 0 else -1
        ctx.require_dims("Transition", (states, tags), why=f"for the {tags} columns of Emission")
        ctx.set_dim("ViterbiPath", emission[:2] if padded else (emission[0], 1))
        ctx.share_lod("Emission", "ViterbiPath")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("ViterbiPath", VarType.INT64)


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
        ("Emission", "Label", "Length"),
        ("Alpha", "EmissionExps", "LogLikelihood"),
        ("LogLikelihood", "Length"),
        same_lod=("Emission", "Label"),
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


class ViterbiDecode(OpDef, type="viterbi_decode"):
    r"""$$Path = \arg\max_s \; a_{s_1} + b_{s_L} + \sum_l x_{l, s_l} + \sum_{l>1} Transition_{s_{l-1}, s_l}$$, Scores
    the maximum.

    Best tag path of every padded sequence x. With include_bos_eos_tag the last row of Transition holds the scores a of
    starting with a tag, the row before it those of stopping, b; both rows and columns take part as tags, too. Without
    it a and b are 0. Of equally good tags the lowest wins. An empty sequence scores 0; Paddle scores the first row of
    its padding.
    """

    Input_ = Input("Unnormalised scores [B, T, C].")
    Transition = Input("[C, C], from row to column.")
    Length = Input("int64 [B], each from 0 to T.")
    Scores = Output("[B]: score of the path.")
    Path = Output("int64 [B, largest Length], 0 past the end.")
    include_bos_eos_tag = Attr(True, "Add scores of starting and stopping.")
    expected_kernel_type = dtype_of("Input")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, _, tags = ctx.require_rank("Input", 3)
        ctx.require_dims("Transition", (tags, tags), why=f"for the {tags} tags of Input")
        ctx.set_dim("Scores", (batch,))
        ctx.set_dim("Path", (batch, -1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Scores", ctx.dtype("Input"))
        ctx.set_dtype("Path", VarType.INT64)
