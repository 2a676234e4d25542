"""fake_quantize_dequantize_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack_quantization.ops._rules import straight_through
from oprack_quantization.ops.fake._family import RESTORED, AbsMax


class FakeQuantizeDequantizeAbsMax(AbsMax, type="fake_quantize_dequantize_abs_max"):
    r"""$$OutScale = \max |X|,\quad Out = \operatorname{round}(B X / OutScale) \cdot OutScale / B$$"""

    Out = RESTORED
    make_grad = straight_through
