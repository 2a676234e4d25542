"""conditional_block: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import Attr, ForwardOp, GradBlock, GradOp, GradOpDef, Output
from oprack.types import AttrType

from oprack_control_flow.ops.branch._conditional import ConditionalOp


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
