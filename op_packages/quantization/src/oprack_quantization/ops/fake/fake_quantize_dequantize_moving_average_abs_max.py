"""fake_quantize_dequantize_moving_average_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack_quantization.ops._rules import straight_through
from oprack_quantization.ops.fake._family import RESTORED, MovingAverage


class FakeQuantizeDequantizeMovingAverageAbsMax(MovingAverage, type="fake_quantize_dequantize_moving_average_abs_max"):
    r"""$$OutScale = OutAccum / OutState,\quad Out = \operatorname{round}(B X / OutScale) \cdot OutScale / B$$

    With `is_test` InScale takes the place of OutScale.
    """

    Out = RESTORED
    make_grad = straight_through
