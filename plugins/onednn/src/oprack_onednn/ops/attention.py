"""onednn_attention: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, OpDef, empty_grad


class OneDNNAttention(OpDef, type="onednn_attention"):
    r"""$$Out = softmax(alpha \cdot Q K^T + Mask) V$$ per head; heads lie side by side. Made by passes."""

    Q = op.Input("Queries [B, N, heads * D].")
    K = op.Input("Keys [B, M, heads * D].")
    V = op.Input("Values [B, M, heads * E].")
    Mask = op.Input("What is added before the softmax; it can be broadcast to [B, heads, N, M].", dispensable=True)
    Out = op.Output("[B, N, heads * E].")
    heads = Attr(1, "Parts of the last dim that attend on their own.").at_least(1)
    alpha = Attr(1.0, "Factor of the products.")
    make_grad = empty_grad

    def infer_shape(ctx):
        q, k, v = (ctx.require_rank(slot, 3) for slot in "QKV")
        heads = ctx.attr("heads")
        ctx.require(
            all(x[2] < 0 or x[2] % heads == 0 for x in (q, k, v)),
            f"the last dims of Q {list(q)}, K {list(k)} and V {list(v)} must be multiples of heads {heads}",
        )
        ctx.require(-1 in (q[2], k[2]) or q[2] == k[2], f"Q {list(q)} and K {list(k)} have other last dims")
        ctx.require(-1 in (k[1], v[1]) or k[1] == v[1], f"K {list(k)} and V {list(v)} have other lengths")
        ctx.set_dim("Out", (*q[:2], v[2]))
