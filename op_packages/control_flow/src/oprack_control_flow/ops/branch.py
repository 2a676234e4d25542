"""Blocks that a condition runs or passes over, and what their results are joined by."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradBlock,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    empty_grad,
)
from oprack.types import AttrType, VarType


# What conditional_block and conditional_block_infer share.
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


# conditional_block: its definition; the operator is in the file of this name below operators.
class ConditionalBlock(ConditionalOp, type="conditional_block"):
    r"""$$Out = block(Input)$$ where Cond is true, or, without is_scalar_condition, where no tensor of Input is empty.

    Otherwise the block does not run, and the variables of Out are left alone.
    """

    Scope = Output("The scope of the block, for the gradient.")
    skip_eager_deletion_vars = Attr([], "Variables that the gradient needs.", type=AttrType.STRINGS, extra=True)

    def make_grad(fwd: ForwardOp) -> GradOp:
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


class ConditionalBlockGrad(
    GradOpDef, of=ConditionalBlock, reads="Cond Input Out? Out@GRAD? Scope", grads_of="Input", lod=False
):
    """Runs the gradient block when the block ran; else the gradients are 0."""


# conditional_block_infer: its definition; the operator is in the file of this name below operators.
class ConditionalBlockInfer(ConditionalOp, type="conditional_block_infer"):
    r"""conditional_block without a gradient: $$Out = block(Input)$$ where Cond is true."""

    Scope = Output("Not used.")
    make_grad = empty_grad


# select_input: its definition; the operator is in the file of this name below operators.
class SelectInput(OpDef, type="select_input"):
    r"""$$Out = X_{Mask}$$: joins branches of which only one ran."""

    X = Input("One variable of each branch.", duplicable=True)
    Mask = Input("One integer: the branch.")
    Out = Output("The variable of the branch, of any kind.")

    def infer_shape(ctx: InferShapeContext) -> None:
        if ctx.is_runtime or any(ctx.kind("X", i) != VarType.LOD_TENSOR for i in range(ctx.input_count("X"))):
            return
        shapes = ctx.dims("X")
        same_rank = len({len(s) for s in shapes}) == 1
        merged = [d[0] if len(set(d)) == 1 else -1 for d in zip(*shapes, strict=True)] if same_rank else shapes[0]
        ctx.set_dim("Out", merged)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("select_output", X=fwd.output_grad("Out"), Mask=fwd.input("Mask"), Out=fwd.input_grad("X"))


# select_output: its definition; the operator is in the file of this name below operators.
class SelectOutput(OpDef, type="select_output"):
    r"""$$Out_{Mask} = X$$; the other outputs are left alone."""

    X = Input("Variable of any kind.")
    Mask = Input("One integer: the branch.")
    Out = Output("One variable of each branch.", duplicable=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        if not ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR:
            ctx.set_dims("Out", [ctx.dim("X")] * ctx.output_count("Out"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("select_input", X=fwd.output_grad("Out"), Mask=fwd.input("Mask"), Out=fwd.input_grad("X"))
