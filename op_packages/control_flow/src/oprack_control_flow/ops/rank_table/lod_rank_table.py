"""lod_rank_table: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import VarType


class LoDRankTableDef(OpDef, type="lod_rank_table"):
    r"""$$\ell_{Out_0} \ge \ell_{Out_1} \ge \ldots$$: the sequences of X by their lengths l, longest first; equals keep
    their order.
    """

    X = Input("Tensor with LoD.")
    Out = Output("Rank table.")
    level = Attr(0, "The LoD level to rank.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        """A rank table has no shape."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.LOD_RANK_TABLE)
