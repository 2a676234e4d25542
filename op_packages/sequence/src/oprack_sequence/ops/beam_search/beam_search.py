"""beam_search: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


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
