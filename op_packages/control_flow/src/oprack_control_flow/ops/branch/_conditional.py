"""What conditional_block and conditional_block_infer share."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.types import AttrType, VarType


class ConditionalOp(OpDef):
    """Runs a block when Cond is true, or, without is_scalar_condition, when no tensor of Input is empty."""

    Cond = Input("One bool.", duplicable=True)
    Input_ = Input("Variables that the block reads.", duplicable=True)
    Out = Output("Variables that the block writes; left alone when it does not run.", duplicable=True)
    sub_block = Attr(REQUIRED, "The block.", type=AttrType.BLOCK)
    is_scalar_condition = Attr(False, "Cond decides, not Input.")

    def infer_shape(ctx: InferShapeContext) -> None:
        """The block's own ops set the shapes of what it writes."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Scope", VarType.STEP_SCOPES)
