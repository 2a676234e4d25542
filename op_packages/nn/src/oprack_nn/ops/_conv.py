"""Shape maths of convolution and pooling, and the attributes that their definitions share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, OpDef
from oprack.types import AttrType

LAYOUTS = ("NCHW", "NHWC", "NCDHW", "NDHWC", "AnyLayout")
ALGORITHMS = ("EXPLICIT", "SAME", "VALID")


def is_channel_last(layout: str) -> bool:
    """Whether the channels are the last dim: NHWC, NDHWC, NLC ..."""
    return layout in ("NHWC", "NDHWC", "NWC", "NLC")


def split_dims(dims: Sequence[int], layout: str) -> tuple[int, int, tuple[int, ...]]:
    """(N, C, spatial dims) of a shape."""
    if is_channel_last(layout):
        return dims[0], dims[-1], tuple(dims[1:-1])
    return dims[0], dims[1], tuple(dims[2:])


def join_dims(n: int, c: int, spatial: Sequence[int], layout: str) -> tuple[int, ...]:
    """The shape made of N, C and spatial dims."""
    return (n, *spatial, c) if is_channel_last(layout) else (n, c, *spatial)


def resolve_dilations(algorithm: str, dilations: Sequence[int]) -> list[int]:
    """Dilations in effect: 1 under SAME."""
    return [1] * len(dilations) if algorithm == "SAME" else list(dilations)


def conv_transpose_out(size: int, k: int, pad: tuple[int, int], stride: int, dilation: int) -> int:
    """Outputs of a transposed convolution along one dim; -1 when the input's size or the kernel's is not known."""
    return -1 if size < 0 or k < 0 else (size - 1) * stride - pad[0] - pad[1] + dilation * (k - 1) + 1


def positive(default: list[int], doc: str) -> Attr:
    """A list attribute of positive ints, one per spatial dim."""
    return Attr(default, doc).each(lambda v: v > 0, "greater than 0").size(len(default))


def paddings_attr(rank: int) -> Attr:
    """The attribute paddings of a convolution or pooling over `rank` dims."""
    doc = f"{rank} numbers, one per dim, or {2 * rank}: before and after each dim."
    return Attr([0] * rank, doc).size(rank, 2 * rank)


def algorithm_attr() -> Attr:
    return Attr("EXPLICIT", "EXPLICIT: use paddings. SAME: ceil(in / stride) outputs. VALID: none.").in_set(ALGORITHMS)


def layout_attr(default: str) -> Attr:
    return Attr(default, "Order of dims: channels first (NCHW, NCDHW) or last (NHWC, NDHWC).").in_set(LAYOUTS)


class CudnnExtras(OpDef):
    """Tuning hints of Paddle's GPU and oneDNN kernels, kept so that programs round-trip."""

    use_cudnn = Attr(True, "Paddle: prefer the cuDNN kernel.", extra=True)
    use_mkldnn = Attr(False, "Paddle: prefer the oneDNN kernel.", extra=True)
    workspace_size_MB = Attr(512, "Paddle: cuDNN workspace.", extra=True)


class MkldnnFuseExtras(CudnnExtras):
    """The same with the fusions of the oneDNN kernels."""

    force_fp32_output = Attr(False, "Paddle: oneDNN bfloat16 kernels return float32.", extra=True)
    is_test = Attr(False, "Inference.", extra=True)
    fuse_activation = Attr("", "Paddle: activation fused by oneDNN passes.", extra=True)
    fuse_alpha = Attr(0.0, "Parameter of fuse_activation.", extra=True)
    fuse_beta = Attr(0.0, "Parameter of fuse_activation.", extra=True)
    fuse_relu = Attr(False, "Paddle: ReLU fused by oneDNN passes.", extra=True)
    mkldnn_data_type = Attr("float32", "Paddle: dtype of the oneDNN kernel.", extra=True)


class ConvExtras(CudnnExtras):
    """Hints of conv2d."""

    exhaustive_search = Attr(False, "Paddle: try all cuDNN algorithms.", extra=True)
    force_fp32_output = Attr(False, "Paddle: oneDNN bfloat16 kernels return float32.", extra=True)
    is_test = Attr(False, "Inference.", extra=True)
    use_addto = Attr(False, "Paddle: add the gradient to what its variable holds.", extra=True)


class FusedConvExtras(MkldnnFuseExtras):
    """Hints of conv3d."""

    exhaustive_search = Attr(False, "Paddle: try all cuDNN algorithms.", extra=True)
    fuse_residual_connection = Attr(False, "Paddle: addition fused by oneDNN passes.", extra=True)
    use_addto = Attr(False, "Paddle: add the gradient to what its variable holds.", extra=True)


class DepthwiseExtras(FusedConvExtras):
    """Hints of depthwise_conv2d."""

    use_cudnn = Attr(False, "Paddle: prefer the cuDNN kernel.", extra=True)
    fuse_relu_before_depthwise_conv = Attr(False, "Paddle: ReLU of the input fused by a GPU pass.", extra=True)
    use_quantizer = Attr(False, "Paddle: int8 oneDNN kernel.", extra=True)
    Scale_in = Attr(1.0, "Paddle: int8 scale of the input.", extra=True)
    Scale_in_eltwise = Attr(1.0, "Paddle: int8 scale of the fused addend.", extra=True)
    Scale_out = Attr(1.0, "Paddle: int8 scale of the output.", extra=True)
    Scale_weights = Attr([1.0], "Paddle: int8 scales of the filter.", type=AttrType.FLOATS, extra=True)
