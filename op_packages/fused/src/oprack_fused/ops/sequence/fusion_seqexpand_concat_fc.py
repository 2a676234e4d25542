"""fusion_seqexpand_concat_fc: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output

from oprack_fused.ops._shapes import dense_dims


class FusionSeqexpandConcatFc(OpDef, type="fusion_seqexpand_concat_fc"):
    r"""$$Out_i = a([X^0_i, X^1_{s(i)}, X^2_{s(i)}, \dots]\,FCWeight + FCBias)$$ for row $i$ of sequence $s(i)$.

    sequence_expand, concat and fc.
    """

    X = Input("First [N, M] with LoD; the others have one row for each of its sequences.", duplicable=True)
    FCWeight = Input("[columns of all X, K].")
    FCBias = Input("[1, K], or [K].", dispensable=True)
    Out = Output("[N, K], LoD of the first X.")
    FCOut = Output("Paddle's buffer; empty.", intermediate=True)
    fc_activation = Attr("identity", "Type of the activation's op.").in_set({"identity", "relu", "sigmoid", "tanh"})

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dims = [tuple(d) for d in ctx.dims("X")]
        ctx.require(
            len(dims) > 1 and all(len(d) == 2 for d in dims),
            f"X has shapes {[list(d) for d in dims]}; expected two matrices at least",
        )
        columns = -1 if any(d[1] < 0 for d in dims) else sum(d[1] for d in dims)
        bias = tuple(ctx.dim("FCBias")) if ctx.has_input("FCBias") else None
        ctx.set_dim("Out", dense_dims(ctx, (dims[0][0], columns), tuple(ctx.dim("FCWeight")), bias))
        ctx.set_dim("FCOut", (0,))
        ctx.share_lod("X", "Out")
