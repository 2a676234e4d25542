"""shard_index: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


class ShardIndex(OpDef, type="shard_index"):
    r"""$$Out = X \bmod s \text{ where } \lfloor X / s \rfloor = shard\_id, \text{ else } ignore\_value,\quad
    s = \lceil index\_num / nshards \rceil$$"""

    X = Input("int32 or int64 [..., 1], at least 0 and below index_num.")
    Out = Output("Shape and LoD of X.")
    index_num = Attr(REQUIRED, "How many indices there are.", type=AttrType.INT).at_least(1)
    nshards = Attr(REQUIRED, "How many shards there are.", type=AttrType.INT).at_least(1)
    shard_id = Attr(REQUIRED, "Which shard this is.", type=AttrType.INT).at_least(0)
    ignore_value = Attr(-1, "What stands for an index of another shard.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, shard, shards = ctx.dim("X"), ctx.attr("shard_id"), ctx.attr("nshards")
        ctx.require(shard < shards, f"shard_id is {shard} and nshards {shards}; expected a shard_id below nshards")
        ctx.require(len(dims) >= 2 and dims[-1] in (1, -1), f"X has shape {list(dims)}; expected [..., 1]")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
