"""fake_quantize_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack_quantization.ops.fake._family import AbsMax


class FakeQuantizeAbsMax(AbsMax, type="fake_quantize_abs_max"):
    r"""$$OutScale = \max |X|,\quad Out = \operatorname{round}(B X / OutScale)$$"""
