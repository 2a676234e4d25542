"""Layers of resampling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, Variable, check_variable, int_list

# The layer image_resize.
_OPS = {
    "BILINEAR": "bilinear_interp",
    "NEAREST": "nearest_interp",
    "BICUBIC": "bicubic_interp",
    "TRILINEAR": "trilinear_interp",
    "LINEAR": "linear_interp",
}


def image_resize(
    input: Variable,
    out_shape: Sequence[Variable | int] | Variable | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Resizes images: op bilinear_interp, nearest_interp, bicubic_interp, trilinear_interp or linear_interp.

    One of out_shape and scale has to be given.

    Args:
        input: Images [N, C, H, W]; with "TRILINEAR" of 5 dims, with "LINEAR" of 3.
        out_shape: The new size: ints, among which may be Variables of one element, or one Variable.
        scale: A factor instead, a number or a Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        resample: "BILINEAR", "NEAREST", "BICUBIC", "TRILINEAR" or "LINEAR".
        align_corners: Whether the corners' centres meet; False: their edges.
        align_mode: 0 counts places from pixels' centres, 1 from their corners, if align_corners is False.
        data_format: "NCHW" or "NHWC" and the like.

    Returns:
        Variable [N, C, *out_shape], in the order of dims of input.

    Raises:
        InvalidArgumentError: resample is none of these, or not exactly one of out_shape and scale is given.
    """
    check_variable(input, "input", "image_resize")
    op_type = _OPS.get(str(resample).upper())
    if op_type is None or (out_shape is None) == (scale is None):
        raise InvalidArgumentError(
            f"image_resize: resample is {resample!r}, out_shape {out_shape!r}, scale {scale!r}; expected one of "
            f"{', '.join(_OPS)}, and one of out_shape and scale"
        )
    helper = LayerHelper(op_type, name=name)
    attrs = {
        "interp_method": op_type.removesuffix("_interp"),
        "align_corners": align_corners,
        "align_mode": align_mode,
        "data_layout": data_format,
    }
    inputs: dict[str, Any] = {"X": input}
    if scale is not None:
        if isinstance(scale, int | float):
            attrs["scale"] = float(scale)
        else:
            inputs["Scale"] = check_variable(scale, "scale", "image_resize")
        return helper.apply(op_type, inputs, attrs)
    sizes = int_list(helper, out_shape, "out_shape")
    if sizes.tensor is None and len(sizes.values) != len(input.shape) - 2:
        raise InvalidArgumentError(
            f"image_resize: out_shape is {out_shape!r}; expected {len(input.shape) - 2} sizes for input of shape "
            f"{list(input.shape)}"
        )
    inputs |= {"OutSize": sizes.tensor, "SizeTensor": sizes.tensors or None}
    names = ("out_d", "out_h", "out_w")[-len(sizes.values) :] if sizes.values else ()
    return helper.apply(op_type, inputs, attrs | dict(zip(names, sizes.values, strict=True)))


# The layer resize_bilinear.
def resize_bilinear(
    input: Variable,
    out_shape: Sequence[Variable | int] | Variable | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """Resizes images by bilinear interpolation; see image_resize.

    Args:
        input: Images [N, C, H, W].
        out_shape: The new size: ints, among which may be Variables of one element, or one Variable.
        scale: A factor instead, a number or a Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        align_corners: Whether the corners' centres meet; False: their edges.
        align_mode: 0 counts places from pixels' centres, 1 from their corners, if align_corners is False.
        data_format: "NCHW" or "NHWC".

    Returns:
        Variable [N, C, *out_shape], in the order of dims of input.
    """
    return image_resize(input, out_shape, scale, name, "BILINEAR", align_corners, align_mode, data_format)


# The layer resize_nearest.
def resize_nearest(
    input: Variable,
    out_shape: Sequence[int | Variable] | Variable | None = None,
    scale: float | None = None,
    name: str | None = None,
    align_corners: bool = True,
    data_format: str = "NCHW",
) -> Variable:
    """Resizes images by their nearest pixels; see image_resize.

    Args:
        input: Images [N, C, H, W].
        out_shape: The new size: ints, among which may be Variables of one element, or one Variable.
        scale: A factor instead, a number or a Variable of one element.
        name: Prefix of the names of what the layer makes; None: that of the layer.
        align_corners: Whether the corners' centres meet; False: their edges.
        data_format: "NCHW" or "NHWC".

    Returns:
        Variable [N, C, *out_shape], in the order of dims of input.
    """
    return image_resize(input, out_shape, scale, name, "NEAREST", align_corners, 1, data_format)
