"""gather_tree: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import InferShapeContext, Input, OpDef, Output, empty_grad

from oprack_sequence.ops._infer import same_dim


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
