"""fake_channel_wise_quantize_dequantize_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, OpDef, Output

from oprack_quantization.ops._attrs import BIT_LENGTH, ROUND_TYPE
from oprack_quantization.ops._rules import out_and_channel_scales, straight_through
from oprack_quantization.ops.fake import _family


class FakeChannelWiseQuantizeDequantizeAbsMax(OpDef, type="fake_channel_wise_quantize_dequantize_abs_max"):
    r"""$$OutScale_c = \max |X_c|,\quad Out_c = \operatorname{round}(B X_c / OutScale_c) \cdot OutScale_c / B$$"""

    X = _family.X
    Out = _family.RESTORED
    OutScale = Output("[C]: the greatest absolute value of each channel.", stop_gradient=True)
    quant_axis = Attr(0, "The axis of the channels: 0 or 1.").in_set({0, 1})
    bit_length = BIT_LENGTH
    round_type = ROUND_TYPE
    infer_shape = out_and_channel_scales
    make_grad = straight_through
