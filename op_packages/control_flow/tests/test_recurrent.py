"""recurrent against a loop, and recurrent_grad against central differences."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.types import VarType

T, N, D = 4, 2, 3
rng = np.random.default_rng(0)
FEED = {"x": rng.standard_normal((T, N, D)), "h0": rng.standard_normal((N, D)), "w": rng.standard_normal((N, D))}
COTANGENT = rng.standard_normal((T, N, D))


def static_rnn(builder, reverse, own_name):
    """h = tanh(x + w * h_before), y = 3 h. own_name: the new state has a name of its own, as in programs of 1.x."""
    b = builder()
    b.var("x", "h0", "w", "y", "y@GRAD")
    b.var("scopes", kind=VarType.STEP_SCOPES)
    state = "h_out" if own_name else "h"
    with b.inside() as body:
        b.var("x", "y", "before", "h")
        b.op("elementwise_mul", X="before", Y="w", Out="wh")
        b.op("elementwise_add", X="x", Y="wh", Out="sum")
        b.op("tanh", X="sum", Out="h")
        b.op("scale", X="h", Out="y", scale=3.0)
        if own_name:
            b.op("rnn_memory_helper", X="h", Out="h_out")
    common = {"ex_states": ["before"], "states": [state], "has_states": True, "reverse": reverse}
    slots = {"inputs": ["x"], "initial_states": ["h0"], "parameters": ["w"], "outputs": ["y"], "step_scopes": "scopes"}
    b.op("recurrent", **slots, sub_block=body, **common)
    with b.inside() as grad:
        b.var("h_a@GRAD", "h_b@GRAD", "h@GRAD", "sum@GRAD", "x@GRAD", "wh@GRAD", "before@GRAD", "w@GRAD", "h_out@GRAD")
        if own_name:
            b.op("scale", X="y@GRAD", Out="h_a@GRAD", scale=3.0)
            b.op("rnn_memory_helper_grad", X="h", Out="h_out", Out_grad="h_out@GRAD", X_grad="h_b@GRAD")
            b.op("elementwise_add", X="h_a@GRAD", Y="h_b@GRAD", Out="h@GRAD")
        else:
            b.op("scale", X="y@GRAD", Out="h@GRAD", scale=3.0)
        b.op("tanh_grad", Out="h", Out_grad="h@GRAD", X_grad="sum@GRAD")
        b.op("elementwise_add_grad", X="x", Y="wh", Out_grad="sum@GRAD", X_grad="x@GRAD", Y_grad="wh@GRAD")
        b.op("elementwise_mul_grad", X="before", Y="w", Out_grad="wh@GRAD", X_grad="before@GRAD", Y_grad="w@GRAD")
    b.op(
        "recurrent_grad",
        **slots,
        outputs_grad=["y@GRAD"],
        inputs_grad=["x@GRAD"],
        initial_states_grad=["h0@GRAD"],
        parameters_grad=["w@GRAD"],
        sub_block=grad,
        **common,
    )
    return b


def by_hand(x, h0, w, reverse):
    y, h = np.zeros_like(x), h0
    for t in range(T)[:: -1 if reverse else 1]:
        h = np.tanh(x[t] + w * h)
        y[t] = 3 * h
    return y


@pytest.mark.parametrize("own_name", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrent(builder, reverse, own_name):
    b = static_rnn(builder, reverse, own_name)
    feed = {**FEED, "y@GRAD": COTANGENT}
    y, *grads = b.run(feed, ["y", "x@GRAD", "h0@GRAD", "w@GRAD"])
    assert np.allclose(y.array, by_hand(**FEED, reverse=reverse))
    for name, grad in zip(FEED, grads, strict=True):
        direction = rng.standard_normal(FEED[name].shape)
        losses = [
            (by_hand(**{**FEED, name: FEED[name] + sign * 1e-6 * direction}, reverse=reverse) * COTANGENT).sum()
            for sign in (1, -1)
        ]
        assert np.isclose((grad.array * direction).sum(), (losses[0] - losses[1]) / 2e-6, rtol=1e-6)
