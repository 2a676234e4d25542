"""Blocks that run again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
    SlotRef,
    dtype_of,
)
from oprack.op.families import out_like_x
from oprack.types import AttrType, VarType

# recurrent (StaticRNN): its definition; the operator is in the file of this name below operators.
_BLOCK = "The block of one time step."

_EX_STATES = "Names by which the block reads the states of the step before, one for each of initial_states."

_STATES = "Names by which the block writes the new states."


class Recurrent(OpDef, type="recurrent"):
    r"""$$(outputs_t, states_t) = block(inputs_t, states_{t-1}, parameters), \quad states_{-1} = initial\_states$$

    for each place t along the first dim of inputs, from the last one with `reverse`. The block sees inputs[t] under the
    names of the inputs, and the states of the step before as ex_states. What it writes under the names of the outputs
    is stacked along a new first dim.
    """

    inputs_ = Input("[steps, ...] each.", duplicable=True, name="inputs")
    initial_states = Input("States before the first step.", duplicable=True)
    parameters = Input("Other variables that the block reads.", duplicable=True)
    outputs_ = Output("[steps, ...] each.", duplicable=True, name="outputs")
    step_scopes = Output("A scope for each step, for the gradient.")
    has_states = Attr(False, "Whether there are states.")
    ex_states = Attr(REQUIRED, _EX_STATES, type=AttrType.STRINGS)
    states = Attr(REQUIRED, _STATES, type=AttrType.STRINGS)
    sub_block = Attr(REQUIRED, _BLOCK, type=AttrType.BLOCK)
    reverse = Attr(False, "From the last place to the first.")
    is_train = Attr(True, "A gradient may follow.")
    skip_eager_deletion_vars = Attr([], "Variables that the gradient needs.", type=AttrType.STRINGS)

    def infer_shape(ctx: InferShapeContext) -> None:
        """The program declares the shapes of the outputs, as the block's own ops set them."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("step_scopes", VarType.STEP_SCOPES)

    def make_grad(fwd: ForwardOp) -> GradOp:
        def named(slots: tuple[str, ...], ref: Callable[..., Any]) -> dict[str, SlotRef]:
            return {slot: ref(slot) for slot in slots}

        read = ("inputs", "initial_states", "parameters")
        slots = named(read, fwd.input) | named(("outputs", "step_scopes"), fwd.output)
        slots["outputs@GRAD"] = fwd.output_grad("outputs")
        slots |= {slot + "@GRAD": fwd.input_grad(slot) for slot in read}
        return GradOp(
            "recurrent_grad",
            slots=slots,
            # Paddle wants the scopes under this name as well
            inputs={"step_scopes@GRAD": fwd.output("step_scopes")},
            attrs=fwd.attrs,
            block=GradBlock(
                out_slot="outputs",
                in_slots=("inputs", "parameters"),
                carried=tuple(zip(fwd.attrs["states"], fwd.attrs["ex_states"], strict=True)),
                initial="initial_states",
                repeats=True,
                shadows_outer=True,
            ),
        )


class RecurrentGrad(
    GradOpDef,
    of=Recurrent,
    reads="inputs initial_states? parameters? outputs step_scopes outputs@GRAD step_scopes@GRAD?",
    grads_of="inputs? initial_states? parameters?",
    lod=False,
):
    """Runs the gradient block once for each step, last step first; the gradients of parameters add up."""


class RnnMemoryHelper(OpDef, type="rnn_memory_helper"):
    r"""$$Out = X$$: gives the new state of a StaticRNN a name of its own (programs of 1.x)."""

    X = Input("Tensor of any shape.")
    Out = Output("Shape, type and LoD of X.")
    dtype = Attr(5, "dtype of X.")
    infer_shape = out_like_x


class RnnMemoryHelperGrad(GradOpDef, of=RnnMemoryHelper, reads="X Out? Out@GRAD?", shape_of="X Out"):
    """X@GRAD is Out@GRAD, or 0 where no later step used the state."""

    expected_kernel_type = dtype_of("X")


# while: its definition; the operator is in the file of this name below operators.
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
