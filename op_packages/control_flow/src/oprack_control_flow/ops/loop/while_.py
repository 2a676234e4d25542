"""while: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.errors import NotDifferentiableError
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
)
from oprack.types import AttrType, VarType


class While(OpDef, type="while"):
    r"""$$\text{while } Condition: \quad Out = block(X)$$

    The block reads and writes outer variables by name, Condition among them.
    """

    X = Input("Variables that the block reads.", duplicable=True)
    Condition = Input("One bool; the block writes it.", duplicable=True)
    Out = Output(
        "Variables that the block writes; they keep their values from before when it never runs.", duplicable=True
    )
    StepScopes = Output("A scope for each round, for the gradient.")
    sub_block = Attr(REQUIRED, "The block.", type=AttrType.BLOCK)
    is_test = Attr(False, "No gradient follows, so that rounds may share a scope.")
    skip_eager_deletion_vars = Attr([], "Variables that the gradient needs.", type=AttrType.STRINGS, extra=True)

    def infer_shape(ctx: InferShapeContext) -> None:
        """The block's own ops set the shapes of what it writes."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("StepScopes", VarType.STEP_SCOPES)

    def make_grad(fwd: ForwardOp) -> GradOp:
        if fwd.attrs["is_test"]:
            raise NotDifferentiableError(
                "op while: is_test is true, so that its rounds keep nothing for a gradient; build the loop with "
                "is_test=False, or name its outputs in no_grad_set"
            )
        return GradOp(
            "while_grad",
            X=fwd.input("X"),
            Out=fwd.output("Out"),
            StepScopes=fwd.output("StepScopes"),
            Out_grad=fwd.output_grad("Out"),
            X_grad=fwd.input_grad("X"),
            attrs=fwd.attrs,
            block=GradBlock(out_slot="Out", in_slots=("X",), repeats=True, keeps="X", names="original_output_grad"),
        )


class WhileGrad(
    GradOpDef,
    of=While,
    reads="X Out StepScopes Out@GRAD?",
    grads_of="X",
    lod=False,
    attrs="sub_block is_test",
):
    """Runs the gradient block once for each round, last round first.

    The gradient of a variable that a round reads and writes flows from round to round; that of one that is only read
    adds up.
    """

    original_output_grad_ = Attr(
        [],
        "Names by which the gradient block knows Out@GRAD; empty: the same names.",
        type=AttrType.STRINGS,
        name="original_output_grad",
    )
    skip_eager_deletion_vars = While.declared["skip_eager_deletion_vars"]
