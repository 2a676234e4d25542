"""Attention between the rows of sequences, without padding."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, split
from oprack.types import AttrType


def require_groups(ctx: InferShapeContext, q: str, heads: int, k: str, kv_heads: int) -> None:
    """Each head of keys serves as many heads of queries."""
    ctx.require(
        min(heads, kv_heads) < 0 or heads == kv_heads or (kv_heads > 0 and heads % kv_heads == 0),
        f"{q} has {heads} heads and {k} {kv_heads}; expected a number that divides {heads}",
    )


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
        require_groups(ctx, "Q", heads, "K", kv_heads)
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
        random = bool(ctx.attr("dropout_p")) and not ctx.attr("is_test")
        bias = {"RelativeBias": split(0)} if ctx.has("RelativeBias") else {}
        inputs, outputs = ("Q", "K", "V"), ("Out", "LogSumExp")
        of_sequences = dict.fromkeys(inputs, split(0)), dict.fromkeys(outputs, split(0))
        of_heads = dict.fromkeys(inputs, split(1)) | bias, dict.fromkeys(outputs, split(1))
        return [
            Signature(*of_sequences, random=random, by_sequence=(), same_lod=("K", "V")),
            Signature(*of_heads, random=random, shared=ctx.dim("K")[1]),
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


class SequenceAttentionGradGrad(
    GradOpDef,
    of=SequenceAttentionGrad,
    reads="Q K V RelativeBias? LogSumExp DropoutSeed? Out@GRAD "
    "Q@GRAD@GRAD K@GRAD@GRAD V@GRAD@GRAD RelativeBias@GRAD@GRAD?",
    grads_of="Q K V RelativeBias? Out@GRAD",
):
    r"""With the gradients a, b, c of Q@GRAD, K@GRAD and V@GRAD, $$T = scale (a K^T + Q b^T)$$, sums over a row of keys
    $$\langle x \rangle$$, $$P' = Out@GRAD\, V^T$$ and $$\bar S = P (P' - \langle P P' \rangle)$$:

    $$U = P (T - \langle P T \rangle),\quad W = T (P' - \langle P P' \rangle) - P' \langle P T \rangle + Out@GRAD\, c^T,
    \quad E = P (W - \langle P W \rangle)$$
    $$Q@GRAD = scale (E K + \bar S b),\quad K@GRAD = scale (E^T Q + \bar S^T a),\quad V@GRAD = U^T Out@GRAD,\quad
    Out@GRAD@GRAD = U V + P c$$ RelativeBias adds its gradient to T, and has the sums of E by distance.
    """

    expected_kernel_type = dtype_of("Q")


class FlashAttnUnpadded(OpDef, type="flash_attn_unpadded"):
    r"""$$out_i = \sum_j p_{ij} v_j, \quad p_{i} = softmax_j(scale \cdot q_i \cdot k_j + mask_{ij})$$ for the rows i and
    j of one sequence, in each head.

    As sequence_attention, with sequences given by offsets in tensors. With `causal` the last query of a sequence stands
    at its last key.
    """

    q = Input("Queries [rows, heads, dim].")
    k = Input("Keys [places, kv_heads, dim]; kv_heads divides heads.")
    v = Input("Values [places, kv_heads, vdim].")
    cu_seqlens_q = Input("int32 [batch + 1], where the sequences of q begin, and at last the number of rows.")
    cu_seqlens_k = Input("The same for k.")
    fixed_seed_offset = Input(
        "int64 [2], of which dropout draws with the first; default: it draws one.", dispensable=True
    )
    attn_mask = Input("Added to the scores, [batch or 1, heads or 1, max_seqlen_q, max_seqlen_k].", dispensable=True)
    out = Output("[rows, heads, vdim].")
    softmax = Output(
        "With return_softmax the weights of the values [batch, heads, max_seqlen_q, max_seqlen_k], else empty.",
        stop_gradient=True,
    )
    softmax_lse = Output(
        "float32 [batch, heads, max_seqlen_q], the logarithm of the sum of a query's e^score; 0 behind the end of a "
        "sequence, infinity for a query that sees no key.",
        intermediate=True,
    )
    seed_offset = Output("int64 [2], what dropout was drawn with.", intermediate=True)
    max_seqlen_q = Attr(REQUIRED, "Length of the longest sequence of q.", type=AttrType.LONG).at_least(0)
    max_seqlen_k = Attr(REQUIRED, "Length of the longest sequence of k.", type=AttrType.LONG).at_least(0)
    scale = Attr(REQUIRED, "Factor of the products.", type=AttrType.FLOAT)
    dropout = Attr(0.0, "Probability p of a weight of 0; others are divided by 1 - p.").between(0, 1)
    causal = Attr(False, "A query looks at no key behind its own position.")
    return_softmax = Attr(False, "Give softmax.")
    is_test = Attr(False, "Drop nothing.")
    rng_name = Attr("", "Paddle: which generator draws.")
    expected_kernel_type = dtype_of("q")

    def infer_shape(ctx: InferShapeContext) -> None:
        (rows, heads, _), (_, kv_heads, _), (_, _, vdim) = (ctx.require_rank(slot, 3) for slot in ("q", "k", "v"))
        ctx.require_dims("k", (-1, -1, ctx.dim("q")[2]), why="the width of q")
        ctx.require_dims("v", (*ctx.dim("k")[:2], -1), why="rows and heads of k")
        require_groups(ctx, "q", heads, "k", kv_heads)
        (offsets,), longest = ctx.require_rank("cu_seqlens_q", 1), (ctx.attr("max_seqlen_q"), ctx.attr("max_seqlen_k"))
        ctx.require_dims("cu_seqlens_k", (offsets,), why="as many sequences as q has")
        batch = -1 if offsets < 0 else offsets - 1
        if ctx.has_input("attn_mask"):
            dims = ctx.require_rank("attn_mask", 4)
            ctx.require(
                all(n in (1, whole) or min(n, whole) < 0 for n, whole in zip(dims, (batch, heads), strict=False))
                and all(n < 0 or n == whole for n, whole in zip(dims[2:], longest, strict=True)),
                f"attn_mask has shape {list(dims)}; expected [{batch} or 1, {heads} or 1, *{list(longest)}]",
            )
        ctx.set_dim("out", (rows, heads, vdim))
        ctx.set_dim("softmax", (batch, heads, *longest) if ctx.attr("return_softmax") else (0,))
        ctx.set_dim("softmax_lse", (batch, heads, longest[0]))
        ctx.set_dim("seed_offset", (2,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("out", "softmax"):
            ctx.set_dtype(slot, ctx.dtype("q"))
        ctx.set_dtype("softmax_lse", "float32")
        ctx.set_dtype("seed_offset", "int64")

    def sbp(ctx: SbpContext) -> list[Signature]:
        """Heads may be split; offsets count all rows."""
        rows, heads = dict.fromkeys(("q", "k", "v"), split(1)), ctx.dim("k")[1]
        if ctx.has("attn_mask") and ctx.dim("attn_mask")[1] > 1:
            rows["attn_mask"] = split(1)
        made = {"out": split(1), "softmax_lse": split(1)}
        if ctx.attr("return_softmax"):
            made["softmax"] = split(1)
        return [Signature(rows, made, random=bool(ctx.attr("dropout")) and not ctx.attr("is_test"), shared=heads)]


class FlashAttnUnpaddedGrad(
    GradOpDef,
    of=FlashAttnUnpadded,
    reads="q k v cu_seqlens_q cu_seqlens_k out softmax_lse seed_offset attn_mask? out@GRAD",
    grads_of="q k v",
):
    """As sequence_attention_grad; the mask has no gradient."""

    expected_kernel_type = dtype_of("q")
