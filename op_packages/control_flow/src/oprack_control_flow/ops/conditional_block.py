"""conditional_block and conditional_block_infer: definitions; the operators are in operators.conditional_block."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradBlock, GradOp, GradOpDef, Input, OpDef, Output, empty_grad
from oprack.types import AttrType, VarType


def _infer_var_type(ctx):
    ctx.set_kind("Scope", VarType.STEP_SCOPES)


def _infer_shape(ctx):
    """The block's own ops set the shapes of what it writes."""


class ConditionalBlock(OpDef, type="conditional_block"):
    """Runs a block when Cond is true, or, without is_scalar_condition, when no tensor of Input is empty."""

    Cond = Input("One bool.", duplicable=True)
    Input_ = Input("Variables that the block reads.", duplicable=True)
    Out = Output("Variables that the block writes; left alone when it does not run.", duplicable=True)
    Scope = Output("The scope of the block, for the gradient.")
    sub_block = Attr(REQUIRED, "The block.", type=AttrType.BLOCK)
    is_scalar_condition = Attr(False, "Cond decides, not Input.")
    skip_eager_deletion_vars = Attr([], "Variables that the gradient needs.", type=AttrType.STRINGS, extra=True)
    infer_shape = _infer_shape
    infer_var_type = _infer_var_type

    def make_grad(fwd):
        return GradOp(
            "conditional_block_grad",
            Cond=fwd.input("Cond"),
            Input=fwd.input("Input"),
            Out=fwd.output("Out"),
            Scope=fwd.output("Scope"),
            Out_grad=fwd.output_grad("Out"),
            Input_grad=fwd.input_grad("Input"),
            attrs=fwd.attrs,
            block=GradBlock(out_slot="Out", in_slots=("Input",), keeps="Input"),
        )


class ConditionalBlockInfer(OpDef, type="conditional_block_infer"):
    """conditional_block without a gradient."""

    Cond = Input("One bool.", duplicable=True)
    Input_ = Input("Variables that the block reads.", duplicable=True)
    Out = Output("Variables that the block writes; left alone when it does not run.", duplicable=True)
    Scope = Output("Not used.")
    sub_block = Attr(REQUIRED, "The block.", type=AttrType.BLOCK)
    is_scalar_condition = Attr(False, "Cond decides, not Input.")
    infer_shape = _infer_shape
    infer_var_type = _infer_var_type
    make_grad = empty_grad


class ConditionalBlockGrad(
    GradOpDef, of=ConditionalBlock, reads="Cond Input Out? Out@GRAD? Scope", grads_of="Input", lod=False
):
    """Runs the gradient block when the block ran; else the gradients are 0."""
