"""onednn_fc_gru and onednn_fc_lstm: all of the ops but their kernels."""

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
