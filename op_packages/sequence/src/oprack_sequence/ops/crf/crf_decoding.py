"""crf_decoding: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
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
    sbp = sequences(("Emission", "Label", "Length"), ("ViterbiPath",), ("Length",))

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
