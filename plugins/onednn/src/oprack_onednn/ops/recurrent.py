"""Recurrent layers that passes make, and a step of one: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, InferShapeContext, OpDef, empty_grad
from oprack.types import AttrType


def _infer_shape(ctx: InferShapeContext, gates: int) -> None:
    rows, inputs = ctx.require_rank("X", 2)
    reversals = ctx.attr("is_reverse")
    total = 0
    for slot in ("WeightX", "Weight", "Bias"):
        count = ctx.input_count(slot)
        ctx.require(
            count == len(reversals), f"{slot} has {count} tensors; expected one per entry of is_reverse {reversals}"
        )
    for i in range(len(reversals)):
        size = ctx.dim("Weight", i)[0]
        wide = ctx.dim("WeightX", i)
        ctx.require(
            wide[1] == gates * size and inputs in (-1, wide[0]),
            f"WeightX[{i}] has shape {list(wide)}; expected {[inputs, gates * size]}: a row for each column of X, and "
            f"{gates} columns for each row of Weight[{i}]",
        )
        total += size
    ctx.set_dim("Out", (rows, total))
    ctx.share_lod("X", "Out")


class OneDNNFcGru(OpDef, type="onednn_fc_gru"):
    r"""For each direction d $$Out_d = gru(X WeightX_d + Bias_d, Weight_d)$$, side by side.

    Made by passes, for inference. The gates are those of gru with a sigmoid and tanh.
    """

    X = op.Input("[N, I] with LoD.")
    WeightX = op.Input("[I, 3 D] each: columns of u, r, c.", duplicable=True)
    Weight = op.Input("As of gru, [D, 3 D] each.", duplicable=True)
    Bias = op.Input("[3 D] each.", duplicable=True)
    Out = op.Output("[N, sum of D], with the LoD of X.")
    is_reverse = Attr([False], "Of each direction: walk every sequence from its last row.", type=AttrType.BOOLEANS)
    origin_mode = Attr(False, "As of gru.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        _infer_shape(ctx, 3)


class OneDNNFcLstm(OpDef, type="onednn_fc_lstm"):
    r"""For each direction d $$Out_d = lstm(X WeightX_d + Bias_d, Weight_d)$$, side by side.

    Made by passes, for inference. The gates are those of lstm with a sigmoid and tanh.
    """

    X = op.Input("[N, I] with LoD.")
    WeightX = op.Input("[I, 4 D] each: columns of c', i, f, o.", duplicable=True)
    Weight = op.Input("As of lstm, [D, 4 D] each.", duplicable=True)
    Bias = op.Input("[4 D] each, or with use_peepholes [7 D]: b, then p_i, p_f, p_o.", duplicable=True)
    Out = op.Output("[N, sum of D], with the LoD of X: h.")
    is_reverse = Attr([False], "Of each direction: walk every sequence from its last row.", type=AttrType.BOOLEANS)
    use_peepholes = Attr(False, "As of lstm.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        _infer_shape(ctx, 4)


class OneDNNLstmStep(OpDef, type="onednn_lstm_step"):
    r"""One step of one layer of rnn's LSTM: with $[i, f, g, o] = x W_x + h W_h + b$,
    $$c' = \sigma(f) c + \sigma(i) \tanh(g), \quad h' = \sigma(o) \tanh(c')$$

    Made by passes, for inference.
    """

    X = op.Input("[1, B, I].")
    PreviousH = op.Input("h, [1, B, D].")
    PreviousC = op.Input("c, [1, B, D].")
    WeightX = op.Input("W_x, [I, 4 D].")
    WeightH = op.Input("W_h, [D, 4 D].")
    Bias = op.Input("b, [4 D].")
    H = op.Output("h', [1, B, D].")
    C = op.Output("c', [1, B, D].")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        one, batch, inputs = ctx.require_rank("X", 3)
        ctx.require(one in (-1, 1), f"X has {one} steps; expected 1")
        size = ctx.require_rank("PreviousH", 3)[2]
        for slot in ("PreviousH", "PreviousC"):
            ctx.require_dims(slot, (1, batch, size))
        ctx.require_dims("WeightX", (inputs, 4 * size if size > 0 else -1))
        ctx.require_dims("WeightH", (size, 4 * size if size > 0 else -1))
        ctx.require_dims("Bias", (4 * size if size > 0 else -1,))
        ctx.set_dim("H", (1, batch, size))
        ctx.set_dim("C", (1, batch, size))


class OneDNNTake(OpDef, type="onednn_take"):
    r"""Parts of X along an axis: $$Out_{..., k, ...} = X_{..., places_k, ...}$$ Made by passes, for inference."""

    X = op.Input("Any shape.")
    Out = op.Output("Shape of X, but as many as places along the axis.")
    axis = Attr(0, "The axis, from 0 on.")
    places = Attr([0], "Positions along it.", type=AttrType.INTS)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axis, places = list(ctx.dim("X")), ctx.attr("axis"), ctx.attr("places")
        ctx.require(0 <= axis < len(dims), f"axis {axis} of X {dims}; expected 0 to {len(dims) - 1}")
        within = all(place >= 0 and (dims[axis] < 0 or place < dims[axis]) for place in places)
        ctx.require(within, f"places reach beyond dim {axis} of X {dims}; they are {places[:20]}")
        dims[axis] = len(places)
        ctx.set_dim("Out", dims)
