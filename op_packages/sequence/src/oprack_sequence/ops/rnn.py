"""rnn: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.op.sbp import SbpContext, Signature, split
from oprack.types import VarType

MODES = ("RNN_TANH", "RNN_RELU", "LSTM", "GRU")
_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


class Rnn(OpDef, type="rnn"):
    r"""Stack of recurrent layers over a padded, time-major batch, with cells as cuDNN has them.

    With $a = x_t W_{ih}^T + b_{ih}$ and $b = h_{t-1} W_{hh}^T + b_{hh}$, columns in the order of the gates:
    RNN $h_t = \tanh(a + b)$ (or relu); LSTM $[i, f, g, o] = a + b$, $c_t = \sigma(f) c_{t-1} + \sigma(i) \tanh(g)$,
    $h_t = \sigma(o) \tanh(c_t)$; GRU $r = \sigma(a_r + b_r)$, $z = \sigma(a_z + b_z)$, $n = \tanh(a_n + r b_n)$,
    $h_t = (1 - z) n + z h_{t-1}$. Past the end of a sequence Out is zero and the state stays.
    """

    Input_ = Input("[T, B, input_size].")
    PreState = Input("Initial h, and for LSTM c: [layers times directions, B, hidden_size] each.", duplicable=True)
    WeightList = Input(
        "For each layer and direction W_ih, W_hh; then, in the same order, all b_ih, b_hh.", duplicable=True
    )
    SequenceLength = Input("int32 [B]; all T when absent.", dispensable=True)
    Out = Output("[T, B, directions times hidden_size].")
    DropoutState = Output("uint8 mask [T, B, directions times hidden_size], shared by all layers.", dispensable=True)
    State = Output("Final states, as PreState.", duplicable=True)
    Reserve = Output("Gates and states of all layers, for the gradient.", intermediate=True)
    dropout_prob = Attr(0.0, "Of elements between layers, while training.").between(0, 1)
    is_bidirec = Attr(False, "Add a second direction that runs from the last row.")
    input_size = Attr(10, "Columns of Input.")
    hidden_size = Attr(100, "Units of a layer.")
    num_layers = Attr(1, "Layers of the stack.").at_least(1)
    mode = Attr("RNN_TANH", "Kind of cell.").in_set(MODES)
    seed = Attr(0, "Of the dropout mask.")
    is_test = Attr(False, "No dropout, and nothing is kept for a gradient.")
    expected_kernel_type = dtype_of("Input")

    def sbp(ctx: SbpContext) -> list[Signature]:
        inputs = {"Input": split(1), "PreState": split(1)} | (
            {"SequenceLength": split(0)} if ctx.has("SequenceLength") else {}
        )
        draws = ctx.attr("dropout_prob", 0.0) > 0 and not ctx.attr("is_test", False)
        return [Signature(inputs, {"Out": split(1), "State": split(1), "DropoutState": split(1)}, random=draws)]

    def infer_shape(ctx: InferShapeContext) -> None:
        steps, batch, inputs = ctx.require_rank("Input", 3)
        directions = 2 if ctx.attr("is_bidirec") else 1
        cells = ctx.attr("num_layers") * directions
        states = 2 if ctx.attr("mode") == "LSTM" else 1
        given, weights = ctx.input_count("PreState"), ctx.input_count("WeightList")
        ctx.require(given == states, f"PreState has {given} tensors; expected {states} in mode {ctx.attr('mode')}")
        ctx.require(
            weights == 4 * cells,
            f"WeightList has {weights} tensors; expected {4 * cells} for {ctx.attr('num_layers')} layers and "
            f"{directions} directions",
        )
        size = ctx.attr("hidden_size")
        rows = _GATES[ctx.attr("mode")] * size
        for k in range(cells):
            # a layer reads the states of both directions of the layer below
            read = inputs if k < directions else directions * size
            source = "the features of Input" if k < directions else "the states of the layer below"
            ctx.require_dims("WeightList", (rows, read), 2 * k, why=source)
            ctx.require_dims("WeightList", (rows, size), 2 * k + 1)
            for i in (2 * k, 2 * k + 1):
                ctx.require_dims("WeightList", (rows,), 2 * cells + i)
        ctx.require_dims("SequenceLength", (batch,), why="one length for each of the batch")
        ctx.set_dim("Out", (steps, batch, directions * size))
        for i in range(states):
            ctx.require_dims("PreState", (cells, batch, size), i)
            ctx.set_dim("State", ctx.dim("PreState", i), i)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Out", "State", "Reserve"):
            if ctx.has_output(slot):
                ctx.set_dtype(slot, ctx.dtype("Input"))
        if ctx.has_output("DropoutState"):
            ctx.set_dtype("DropoutState", VarType.UINT8)


class RnnGrad(
    GradOpDef,
    of=Rnn,
    reads="Input PreState WeightList SequenceLength DropoutState Reserve Out Out@GRAD State@GRAD?",
    grads_of="Input PreState WeightList",
):
    """Gradient of rnn: the layers from the last to the first, each walked against its direction."""

    def infer_shape(ctx: InferShapeContext) -> None:
        layers, dropout = ctx.attr("num_layers"), ctx.attr("dropout_prob")
        ctx.require(
            layers < 2 or dropout == 0 or ctx.has_input("DropoutState"),
            f"DropoutState is absent, with {layers} layers and dropout_prob {dropout}; expected DropoutState of rnn, "
            "which says what was dropped between them",
        )
        for slot in ("Input", "PreState", "WeightList"):
            for i in range(ctx.input_count(slot)):
                ctx.set_dim(f"{slot}@GRAD", ctx.dim(slot, i), i)
                ctx.share_lod(slot, f"{slot}@GRAD", i, i)

    expected_kernel_type = dtype_of("Input")
