"""bipartite_match: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad


class BipartiteMatch(OpDef, type="bipartite_match"):
    r"""$$(r, c) = \arg\max DistMat$$ over rows and columns that have no partner yet, until every row or column has one

    Greedy matching of boxes to find (rows) with priors (columns), image by image. With per_prediction, a column that is
    left gets the row that is nearest to it, where that is at least dist_threshold.
    """

    DistMat = Input("Nearness [rows, columns]; LoD: the rows of each image. Without LoD there is one image.")
    ColToRowMatchIndices = Output("Row of each column [images, columns], int32, counted within its image; -1: none.")
    ColToRowMatchDist = Output("How near it is [images, columns]; 0: none.")
    match_type = Attr("bipartite", "bipartite, or per_prediction.").in_set(("bipartite", "per_prediction"))
    dist_threshold = Attr(0.5, "Least nearness for per_prediction.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        columns = ctx.require_rank("DistMat", 2)[1]
        lod = ctx.lod("DistMat")
        images = len(lod[-1]) - 1 if lod else 1 if ctx.is_runtime else -1
        for slot in ("ColToRowMatchIndices", "ColToRowMatchDist"):
            ctx.set_dim(slot, (images, columns))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("ColToRowMatchIndices", "int32")
        ctx.set_dtype("ColToRowMatchDist", ctx.dtype("DistMat"))
