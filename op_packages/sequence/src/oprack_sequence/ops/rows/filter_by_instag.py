"""filter_by_instag (Paddle 1.x) and its gradient: all of the ops but their kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType


class FilterByInstag(OpDef, type="filter_by_instag"):
    r"""$$Out = (Ins^{(i)} : Ins\_tag^{(i)} \cap Filter\_tag \ne \emptyset)$$: the instances that carry a tag that is
    asked for.

    Where none does, Out is one row of out_val_if_empty with LossWeight 0, so that a loss over Out is 0.
    """

    Ins = Input("[N, D]; an instance is a sequence, or a row without is_lod.")
    Ins_tag = Input("int64 tags of each instance, with LoD.")
    Filter_tag = Input("int64, the tags that are asked for.")
    Out = Output("[rows, D] with LoD.")
    LossWeight = Output("1 for each instance of Out [instances, 1]; 0 where there is none.", stop_gradient=True)
    IndexMap = Output("int64 [instances, 3]: first row in Out, first row in Ins, rows.")
    is_lod = Attr(REQUIRED, "Whether an instance is a sequence.", type=AttrType.BOOLEAN)
    out_val_if_empty = Attr(0, "Value of Out where no instance is left.", type=AttrType.LONG)
    expected_kernel_type = dtype_of("Ins")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.attr("is_lod"):
            ctx.require_lod("Ins")
        ctx.require_lod("Ins_tag")
        dims = ctx.require_rank("Ins", 2)
        for slot, width in (("Out", dims[1]), ("LossWeight", 1), ("IndexMap", 3)):
            ctx.set_dim(slot, (-1, width))
            ctx.set_lod_level(slot, 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("Ins"))
        ctx.set_dtype("LossWeight", "float32")
        ctx.set_dtype("IndexMap", "int64")


class FilterByInstagGrad(
    GradOpDef, of=FilterByInstag, reads="IndexMap LossWeight Ins Out@GRAD", shape_of="Ins", grads_of="Ins"
):
    """Out@GRAD in the rows that were kept, 0 in the others."""

    expected_kernel_type = dtype_of("Out@GRAD")
