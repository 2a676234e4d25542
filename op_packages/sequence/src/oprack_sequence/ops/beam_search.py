"""Search for the best sentences: one step, and the way back."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad
from oprack.types import AttrType, VarType

from oprack_sequence.ops._infer import same_dim


class BeamSearch(OpDef, type="beam_search"):
    r"""$$s_{p,k} = scores_{p,k}$$ or, without is_accumulated, $$pre\_scores_p + \log scores_{p,k}$$

    One step of beam search: of all candidates k of the prefixes p of a source sentence the beam_size with the largest s
    go on.

    Each row is a prefix with K candidates. A prefix that has ended (its last id is end_id) has itself as its only
    candidate; a source whose selected prefixes have all ended is dropped. Candidates of equal score: the later prefix
    goes first; within a prefix the first, but the last of them takes the last place of a full beam, as in Paddle.
    """

    pre_ids = Input("Last id of each prefix, int64 [N, 1].")
    pre_scores = Input("Score of each prefix, [N, 1].")
    ids = Input("Candidates, int64 [N, K]; 0 .. K - 1 when absent.", dispensable=True)
    scores = Input("Their scores, [N, K], with two LoD levels: prefixes of each source, and one row per prefix.")
    selected_ids = Output("int64 [M, 1]; LoD: prefixes of each source, and selected ids of each prefix.")
    selected_scores = Output("[M, 1] with the LoD of selected_ids.")
    parent_idx = Output("int32 [M]: the prefix that each one goes on from.", dispensable=True)
    level = Attr(REQUIRED, "LoD level of the sources.", type=AttrType.INT)
    beam_size = Attr(REQUIRED, "How many go on.", type=AttrType.INT).at_least(1)
    end_id = Attr(REQUIRED, "Id that ends a sentence.", type=AttrType.INT)
    is_accumulated = Attr(True, "scores are of whole prefixes; else probabilities, whose log is added to pre_scores.")
    expected_kernel_type = dtype_of("scores")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("scores", 2)
        ctx.require_lod("scores", max(ctx.attr("level"), 0) + 1)
        for slot in ("selected_ids", "selected_scores"):
            ctx.set_dim(slot, (-1, 1))
            ctx.set_lod_level(slot, 2)
        ctx.set_dim("parent_idx", (-1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("selected_ids", VarType.INT64)
        ctx.set_dtype("selected_scores", ctx.dtype("pre_scores"))
        if ctx.has_output("parent_idx"):
            ctx.set_dtype("parent_idx", VarType.INT32)


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


class GatherTree(OpDef, type="gather_tree"):
    r"""Whole beams from the ids and parents of each step: $$Out_t = Ids_t[p_t], \quad p_{t-1} = Parents_t[p_t]$$

    for each beam, from the last step back, which starts with its own number.
    """

    Ids = Input("[T, B, beams].")
    Parents = Input("Beam of the step before that each one goes on from; shape and dtype of Ids.")
    Out = Output("Shape of Ids.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_rank("Ids", 3)
        ctx.same_dims("Ids", "Parents")
        same_dim(ctx, "Ids", "Out")
