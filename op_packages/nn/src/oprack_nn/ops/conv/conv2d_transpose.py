"""conv2d_transpose: all of the op but its kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import GradOpDef, OpVersion
from oprack.op.sbp import transposed_convolution

from oprack_nn.ops.conv._conv_transpose import (
    OUTPUT_PADDING_NOTE,
    ConvTranspose2DAttrs,
    ConvTransposeGrad,
    conv_transpose_dims,
    infer_conv_transpose,
)


class Conv2DTranspose(ConvTranspose2DAttrs, type="conv2d_transpose"):
    r"""$$Output_{n,k,y s_h + i d_h - p_t,x s_w + j d_w - p_l} \mathrel{+}= Input_{n,c,y,x} Filter_{c,k,i,j}$$

    The adjoint of conv2d with the same attributes; (H - 1) s - p_t - p_b + d (kh - 1) + 1 rows unless output_size or
    output_padding asks for more. Bias, one number per channel, is added.
    """

    Input = op.Input("[N, C, H, W], or [N, H, W, C] with data_format NHWC.")
    Filter = op.Input("[C, K / groups, kh, kw] in either layout.")
    Bias = op.Input("[K].", dispensable=True, extra=True)
    Output = op.Output("[N, K, H', W'] in the layout of Input.")
    versions = (
        OpVersion("conv2d_transpose")
        .checkpoint(OUTPUT_PADDING_NOTE, ("new_attr", "output_padding", []))
        .checkpoint(
            "New attributes force_fp32_output and mkldnn_data_type for oneDNN's bfloat16 kernel.",
            ("new_attr", "force_fp32_output", False),
            ("new_attr", "mkldnn_data_type", "float32"),
        )
    )
    infer_shape = infer_conv_transpose
    sbp = transposed_convolution


class Conv2DTransposeGrad(ConvTransposeGrad, of=Conv2DTranspose, reads="Input Filter Bias"):
    """Input@GRAD is the convolution of Output@GRAD with Filter; Filter@GRAD correlates Output@GRAD with Input."""

    Bias = op.Input("Bias of the forward op; gets no gradient.", dispensable=True)


class Conv2DTransposeGradGrad(
    GradOpDef,
    of=Conv2DTransposeGrad,
    reads="Input Filter Output@GRAD Input@GRAD@GRAD? Filter@GRAD@GRAD?",
    grads_of="Input? Filter? Output@GRAD?",
    names={"Output@GRAD": "grad_out", "Filter@GRAD": "grad_filter", "Input@GRAD": "grad_x"},
    dims={"Output@GRAD": conv_transpose_dims},
):
    """Gradient of conv2d_transpose_grad, which is linear in each of Input, Filter and Output@GRAD."""
