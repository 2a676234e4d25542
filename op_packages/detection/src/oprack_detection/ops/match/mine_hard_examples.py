"""mine_hard_examples: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of, empty_grad


class MineHardExamples(OpDef, type="mine_hard_examples"):
    r"""$$negatives_n = \operatorname{top}_k \{m : MatchIndices_{n,m} = -1, \; MatchDist_{n,m} <
    neg\_dist\_threshold\}$$ by ClsLoss, with k = neg_pos_ratio times the priors that have a match

    With mining_type hard_example the sample_size priors of the greatest ClsLoss + LocLoss learn: those without a match
    are negatives, and matches of the others are taken back (SSD, Liu et al., 2016).
    """

    ClsLoss = Input("Loss of the class of each prior [N, priors].")
    LocLoss = Input("Loss of its box [N, priors].", dispensable=True)
    MatchIndices = Input("Matches of the priors [N, priors], int32; -1: none.")
    MatchDist = Input("How near the matches are [N, priors].")
    NegIndices = Output("Negatives [K, 1], int32; LoD: those of each image.")
    UpdatedMatchIndices = Output("Matches that stay [N, priors].")
    neg_pos_ratio = Attr(1.0, "Negatives for each match.")
    neg_dist_threshold = Attr(0.5, "Negatives are less near to any box than this.")
    sample_size = Attr(0, "Priors of each image that learn, for hard_example.")
    mining_type = Attr("max_negative", "max_negative or hard_example.").in_set(("max_negative", "hard_example"))
    make_grad = empty_grad
    expected_kernel_type = dtype_of("ClsLoss")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.require_rank("ClsLoss", 2)
        for slot in ("LocLoss", "MatchIndices", "MatchDist"):
            ctx.require_dims(slot, dims, why="the shape of ClsLoss")
        hard = ctx.attr("mining_type") == "hard_example"
        name = "sample_size" if hard else "neg_pos_ratio"
        value = ctx.attr(name)
        ctx.require(value > 0, f"{name} is {value}; expected more than 0 for mining_type {ctx.attr('mining_type')!r}")
        ctx.set_dim("NegIndices", (-1, 1))
        ctx.set_lod_level("NegIndices", 1)
        ctx.set_dim("UpdatedMatchIndices", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("NegIndices", "UpdatedMatchIndices"):
            ctx.set_dtype(slot, "int32")
