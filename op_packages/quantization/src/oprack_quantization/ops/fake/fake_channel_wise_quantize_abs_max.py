"""fake_channel_wise_quantize_abs_max: all of the op but its kernels."""

from __future__ import annotations

from oprack.op import Attr, OpDef, OpVersion, Output, empty_grad

from oprack_quantization.ops._attrs import BIT_LENGTH, ROUND_TYPE
from oprack_quantization.ops._rules import out_and_channel_scales
from oprack_quantization.ops.fake import _family


class FakeChannelWiseQuantizeAbsMax(OpDef, type="fake_channel_wise_quantize_abs_max"):
    r"""$$OutScale_c = \max |X_c|,\quad Out_c = \operatorname{round}(B X_c / OutScale_c)$$"""

    X = _family.X
    Out = _family.OUT
    OutScale = Output("[C]: the greatest absolute value of each channel.")
    quant_axis = Attr(0, "The axis of the channels: 0 or 1.").in_set({0, 1})
    bit_length = BIT_LENGTH
    is_test = Attr(False, "No difference: the scales follow from X.")
    round_type = ROUND_TYPE
    infer_shape = out_and_channel_scales
    make_grad = empty_grad
    versions = OpVersion("fake_channel_wise_quantize_abs_max").checkpoint(
        "Channels along another axis.", ("new_attr", "quant_axis", 0)
    )
