"""beam_search_decode: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


class BeamSearchDecode(OpDef, type="beam_search_decode"):
    r"""$$w_{t-1} = Ids_{t-1}[prefix(w_t)]$$, from the last word of each sentence back to the first.

    Whole sentences from the steps of beam_search, best first for each source. Each step has two LoD levels: prefixes of
    each source, and the ids selected after each prefix, which are the prefixes of the next step. A repeated end_id at
    the end of a sentence is listed once.
    """

    Ids = Input("LoDTensorArray: selected_ids of every step.")
    Scores = Input("LoDTensorArray: selected_scores of every step.")
    SentenceIds = Output("int64 [words of all sentences]; LoD: sentences of each source, words of each sentence.")
    SentenceScores = Output("Score after each word, with the LoD of SentenceIds.")
    beam_size = Attr(REQUIRED, "Sentences of a source at most.", type=AttrType.INT)
    end_id = Attr(REQUIRED, "Id that ends a sentence.", type=AttrType.INT)
    expected_kernel_type = dtype_of("Scores")

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("SentenceIds", "SentenceScores"):
            ctx.set_dim(slot, (-1,))
            ctx.set_lod_level(slot, 2)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("SentenceIds", VarType.LOD_TENSOR)
        ctx.set_dtype("SentenceIds", ctx.dtype("Ids"))
        ctx.set_kind("SentenceScores", VarType.LOD_TENSOR)
        ctx.set_dtype("SentenceScores", ctx.dtype("Scores"))
