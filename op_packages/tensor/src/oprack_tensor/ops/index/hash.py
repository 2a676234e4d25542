"""hash: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class Hash(OpDef, type="hash"):
    r"""$$Out_{i, h, 0} = \operatorname{XXH64}_{h}(X_i) \bmod mod\_by$$ of the bytes of each row, with h as the seed."""

    X = Input("int32 or int64 [n, k]")
    Out = Output("[n, num_hash, 1]; LoD of X.")
    num_hash = Attr(1, "How many hashes of each row.").at_least(1)
    mod_by = Attr(100000, "Hashes are below this.", type=AttrType.LONG).at_least(1)
    runtime_shape = Attr(
        True, "Paddle: the shape rule runs with the kernel.", name="@ALL_KERNELS_MUST_COMPUTE_RUNTIME_SHAPE@"
    )
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, _ = ctx.require_rank("X", 2)
        ctx.set_dim("Out", (rows, ctx.attr("num_hash"), 1))
        ctx.share_lod("X", "Out")
