"""Layer of lstm_unit."""

from __future__ import annotations

from oprack.layers import LayerHelper, ParamAttrLike, Variable, check_variable
from oprack.types import FLOATS


def lstm_unit(
    x_t: Variable,
    hidden_t_prev: Variable,
    cell_t_prev: Variable,
    forget_bias: float = 0.0,
    param_attr: ParamAttrLike = None,
    bias_attr: ParamAttrLike = None,
    name: str | None = None,
) -> tuple[Variable, Variable]:
    """One step of an LSTM; returns (hidden, cell), [B, D] each.

    x_t: [B, M], hidden_t_prev and cell_t_prev: [B, D]. param_attr: of the weight [M + D, 4 D]; bias_attr: of [4 D].
    forget_bias: added to the forget gate. Ops concat, mul, elementwise_add, lstm_unit. Raises InvalidArgumentError.
    """
    parts = {"x_t": x_t, "hidden_t_prev": hidden_t_prev, "cell_t_prev": cell_t_prev}
    for argument, value in parts.items():
        check_variable(value, argument, "lstm_unit", FLOATS)
    helper = LayerHelper("lstm_unit", bias_attr=bias_attr, name=name)
    width = cell_t_prev.shape[1]
    joined = helper.apply("concat", {"X": [x_t, hidden_t_prev]}, {"axis": 1})
    w = helper.create_parameter(param_attr, [joined.shape[1], 4 * width], x_t.dtype)
    gates = helper.append_bias_op(helper.apply("mul", {"X": joined, "Y": w}))
    cell, hidden = helper.apply("lstm_unit", {"X": gates, "C_prev": cell_t_prev}, {"forget_bias": float(forget_bias)})
    return hidden, cell
