"""Gradients go straight through fake quantization, also the second ones."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import functional as F


@pytest.mark.parametrize(
    "op_type", ["fake_quantize_dequantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max"]
)
def test_gradient_of_a_rounded_number_is_that_of_the_number(op_type: str) -> None:
    x = oprack.to_tensor(np.array([[0.3, -1.0], [2.0, 0.7]], np.float32), requires_grad=True)
    out = getattr(F, op_type)(x, bit_length=3).out
    (out * out).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * out.numpy())


def test_what_is_missing_for_the_average_is_said() -> None:
    x, scale = (oprack.to_tensor(np.ones(n, np.float32)) for n in (3, 1))
    with pytest.raises(oprack.errors.OprackError, match="InState or InAccum is absent; expected both"):
        F.fake_quantize_moving_average_abs_max(x, scale)
    with pytest.raises(oprack.errors.OprackError, match="op quantize_linear: is_test is false, quant_axis is -1"):
        F.quantize_linear(x, scale, scale, quant_axis=-1, is_test=False)


def test_ids_beyond_the_table_are_refused() -> None:
    table, ids = np.zeros((4, 3), np.float32), np.array([[4]])
    with pytest.raises(oprack.errors.OprackError, match="Ids has numbers from 4 to 4; expected 0 to 3"):
        F.lookup_table_dequant(oprack.to_tensor(table), oprack.to_tensor(ids))
