"""fake_quantize_moving_average_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack_quantization.ops.fake._family import MovingAverage


class FakeQuantizeMovingAverageAbsMax(MovingAverage, type="fake_quantize_moving_average_abs_max"):
    r"""$$OutScale = OutAccum / OutState,\quad Out = \operatorname{round}(B X / OutScale)$$

    With `is_test` InScale takes the place of OutScale.
    """
