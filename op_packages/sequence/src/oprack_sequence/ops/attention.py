"""Attention between the rows of sequences, without padding."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, broadcast, split
from oprack.types import AttrType


class SequenceAttention(OpDef, type="sequence_attention"):
    r"""$$Out_i = \sum_j p_{ij} V_j, \quad p_{ij} = \frac{e^{s_{ij}}}{\sum_{j'} e^{s_{ij'}}}, \quad s_{ij} = scale \cdot
    Q_i \cdot K_j + RelativeBias_{clip(j - i, -R, R) + R}$$ for the rows i of a sequence of Q and j of the same sequence
    of K, in each head.

    Positions i and j count from the start of each sequence. With `causal` they are aligned at its end: the a queries
    belong to the last a of the b keys, so that i counts from b - a, and a query looks at no key behind it. A query
    that sees no key gives 0. Where there are more heads than kv_heads, heads / kv_heads of them in a row share keys
    and values. The innermost levels of Q and K have as many sequences; levels above them stay as they are.
    """

    Q = Input("Queries [N, heads, dim] with LoD.")
    K = Input("Keys [M, kv_heads, dim] with LoD of as many sequences; kv_heads divides heads.")
    V = Input("Values [M, kv_heads, vdim], row by row those of K.")
    RelativeBias = Input("Added to the scores by distance, [heads, 2 R + 1].", dispensable=True)
    Out = Output("[N, heads, vdim] with the LoD of Q.")
    LogSumExp = Output(
        "[N, heads], the logarithm of the sum of a query's e^s; infinity where it sees no key.", intermediate=True
    )
    DropoutSeed = Output("int64 [1], what dropout was drawn with.", intermediate=True)
    scale = Attr(0.0, "Factor of the products; 0: 1 / sqrt(dim).")
    causal = Attr(False, "A query looks at its own position and those before it.")
    window = Attr([-1, -1], "How many positions before and behind its own a query sees; -1: all.", type=AttrType.INTS)
    dropout_p = Attr(0.0, "Probability p of a weight of 0 in training; others are divided by 1 - p.").between(0, 1)
    is_test = Attr(False, "Drop nothing.")
    seed = Attr(0, "Seed of the draws; 0: the program's.")
    expected_kernel_type = dtype_of("Q")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("Q")
        ctx.require_lod("K")
        (rows, heads, _), (_, kv_heads, _), (_, _, vdim) = (ctx.require_rank(slot, 3) for slot in ("Q", "K", "V"))
        ctx.require_dims("K", (-1, -1, ctx.dim("Q")[2]), why="the width of Q")
        ctx.require_dims("V", (*ctx.dim("K")[:2], -1), why="rows and heads of K")
        ctx.require(
            min(heads, kv_heads) < 0 or heads == kv_heads or (kv_heads > 0 and heads % kv_heads == 0),
            f"Q has {heads} heads and K {kv_heads}; expected a number that divides {heads}",
        )
        ctx.require(
            len(ctx.attr("window")) == 2 and min(ctx.attr("window")) >= -1,
            f"window is {list(ctx.attr('window'))}; expected two numbers of positions, or -1 for all",
        )
        if ctx.has_input("RelativeBias"):
            width = ctx.require_rank("RelativeBias", 2)[1]
            ctx.require_dims("RelativeBias", (heads, -1), why="a row for each head of Q")
            ctx.require(
                width < 0 or width % 2 == 1,
                f"RelativeBias has {width} columns; expected an odd number, for the distances from -R to R",
            )
        ctx.set_dim("Out", (rows, heads, vdim))
        ctx.set_dim("LogSumExp", (rows, heads))
        for slot in ("Out", "LogSumExp"):
            ctx.share_lod("Q", slot)
        if ctx.attr("dropout_p") and not ctx.attr("is_test"):
            ctx.set_dim("DropoutSeed", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("Q"))
        ctx.set_dtype("LogSumExp", ctx.dtype("Q"))
        if ctx.has_output("DropoutSeed"):
            ctx.set_dtype("DropoutSeed", "int64")

    def sbp(ctx: SbpContext) -> list[Signature]:
        """Whole sequences may be split, or heads."""
        bias = {"RelativeBias": split(0)} if ctx.has("RelativeBias") else {}
        whole = dict.fromkeys(bias, broadcast)
        random = bool(ctx.attr("dropout_p")) and not ctx.attr("is_test")

        def signature(dim: int, more: dict, **settings: object) -> Signature:
            outputs = {"Out": split(dim), "LogSumExp": split(dim)}
            return Signature(dict.fromkeys(("Q", "K", "V"), split(dim)) | more, outputs, random=random, **settings)

        return [
            signature(0, whole, by_sequence=(), same_lod=("K", "V")),
            signature(1, bias, shared=ctx.dim("K")[1]),
        ]


class SequenceAttentionGrad(
    GradOpDef,
    of=SequenceAttention,
    reads="Q K V RelativeBias? Out LogSumExp DropoutSeed?",
    grads_of="Q K V RelativeBias?",
    when={"DropoutSeed": lambda fwd: fwd.attrs["dropout_p"] > 0 and not fwd.attrs["is_test"]},
):
    r"""With $$\bar s_{ij} = p_{ij} (\bar{Out}_i \cdot V_j - \bar{Out}_i \cdot Out_i)$$: V@GRAD sums p Out@GRAD, Q@GRAD
    scale s@GRAD K, K@GRAD scale s@GRAD Q, and RelativeBias@GRAD s@GRAD by distance.

    The weights p are computed again from LogSumExp, so that no matrix of scores is kept.
    """

    expected_kernel_type = dtype_of("Q")
