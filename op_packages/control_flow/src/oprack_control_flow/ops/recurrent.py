"""recurrent (StaticRNN): its definition; the operator is oprack_control_flow.operators.recurrent."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradBlock, GradOp, GradOpDef, Input, OpDef, Output
from oprack.types import AttrType, VarType

_BLOCK = "The block of one time step."
_EX_STATES = "Names by which the block reads the states of the step before, one for each of initial_states."
_STATES = "Names by which the block writes the new states."


class Recurrent(OpDef, type="recurrent"):
    """Runs a block once for each place t along the first dim of inputs.

    The block sees inputs[t] under the names of the inputs, and the states of the step before as ex_states. What it
    writes under the names of the outputs is stacked along a new first dim.
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

    def infer_shape(ctx):
        """The program declares the shapes of the outputs, as the block's own ops set them."""

    def infer_var_type(ctx):
        ctx.set_kind("step_scopes", VarType.STEP_SCOPES)

    def make_grad(fwd):
        def named(slots, ref):
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
                given="outputs",
                taken=("inputs", "parameters"),
                carried=tuple(zip(fwd.attrs["states"], fwd.attrs["ex_states"], strict=True)),
                initial="initial_states",
                repeats=True,
                own=True,
            ),
        )


class RecurrentGrad(GradOpDef, type="recurrent_grad"):
    """Runs the gradient block once for each step, last step first; the gradients of parameters add up."""

    inputs_ = Input("As in recurrent.", duplicable=True, name="inputs")
    initial_states = Input("As in recurrent.", duplicable=True, dispensable=True)
    parameters = Input("As in recurrent.", duplicable=True, dispensable=True)
    outputs_ = Input("As in recurrent.", duplicable=True, name="outputs")
    step_scopes = Input("Scopes of the steps.")
    outputs_grad = Input("Gradients of outputs.", duplicable=True)
    step_scopes_grad = Input("The scopes again; not read.", dispensable=True)
    inputs_grad = Output("Gradients of inputs.", duplicable=True, dispensable=True)
    initial_states_grad = Output("Gradients of initial_states.", duplicable=True, dispensable=True)
    parameters_grad = Output("Gradients of parameters.", duplicable=True, dispensable=True)
    has_states = Attr(False, "As in recurrent.")
    ex_states = Attr(REQUIRED, _EX_STATES, type=AttrType.STRINGS)
    states = Attr(REQUIRED, _STATES, type=AttrType.STRINGS)
    sub_block = Attr(REQUIRED, "The gradient block.", type=AttrType.BLOCK)
    reverse = Attr(False, "As in recurrent.")
    is_train = Attr(True, "As in recurrent.")
    skip_eager_deletion_vars = Attr([], "As in recurrent.", type=AttrType.STRINGS)

    def infer_shape(ctx):
        for slot in ("inputs", "initial_states", "parameters"):
            for i, name in enumerate(ctx.output_names(slot + "@GRAD")):
                if name != "@EMPTY@":
                    ctx.set_dim(slot + "@GRAD", ctx.dim(slot, i), i)

    def infer_var_type(ctx):
        for slot in ("inputs", "initial_states", "parameters"):
            for i, name in enumerate(ctx.output_names(slot + "@GRAD")):
                if name != "@EMPTY@":
                    ctx.set_kind(slot + "@GRAD", ctx.kind(slot, i), i)
                    ctx.set_dtype(slot + "@GRAD", ctx.dtype(slot, i), i)
