"""Images: resizing, padding, rearranging channels and pixels."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import LayerHelper, check_variable, generated_layers, int_list

__getattr__ = generated_layers(
    pad=("pad", {}),
    pixel_shuffle=("pixel_shuffle", {}),
    shuffle_channel=("shuffle_channel", {}),
    temporal_shift=("temporal_shift", {}),
    affine_channel=("affine_channel", {}),
    grid_sampler=("grid_sampler", {}),
)
_OPS = {
    "BILINEAR": "bilinear_interp",
    "NEAREST": "nearest_interp",
    "BICUBIC": "bicubic_interp",
    "TRILINEAR": "trilinear_interp",
    "LINEAR": "linear_interp",
}


def image_resize(
    input,
    out_shape=None,
    scale=None,
    name=None,
    resample="BILINEAR",
    align_corners=True,
    align_mode=1,
    data_format="NCHW",
):
    """Images in another size: [N, C, H, W] to [N, C, *out_shape] (with "TRILINEAR" 5 dims, with "LINEAR" 3).

    out_shape: ints, or Variables of one element among them; else scale, a factor or a Variable of one element.
    align_corners: the corners' centres meet, else edges; then align_mode 0 counts places from pixels' centres, 1 from
    their corners. Ops bilinear_interp, nearest_interp, bicubic_interp, trilinear_interp, linear_interp. Raises
    InvalidArgumentError.
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
    inputs = {"X": input}
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


def resize_bilinear(input, out_shape=None, scale=None, name=None, align_corners=True, align_mode=1, data_format="NCHW"):
    """image_resize by bilinear interpolation."""
    return image_resize(input, out_shape, scale, name, "BILINEAR", align_corners, align_mode, data_format)


def resize_nearest(input, out_shape=None, scale=None, name=None, align_corners=True, data_format="NCHW"):
    """image_resize that takes the nearest pixel."""
    return image_resize(input, out_shape, scale, name, "NEAREST", align_corners, 1, data_format)


def pad2d(input, paddings=(0, 0, 0, 0), mode="constant", pad_value=0.0, data_format="NCHW", name=None):
    """[N, C, H, W] (or NHWC) with [top, bottom, left, right] more rows and columns.

    mode: "constant" (pad_value), "reflect" or "edge". Op pad2d. Raises InvalidArgumentError.
    """
    check_variable(input, "input", "pad2d")
    attrs = {"mode": mode, "pad_value": float(pad_value), "data_format": data_format, "paddings": [0, 0, 0, 0]}
    inputs = {"X": input}
    if hasattr(paddings, "desc"):
        inputs["Paddings"] = check_variable(paddings, "paddings", "pad2d", {"int32"})
    else:
        attrs["paddings"] = list(paddings)
    return LayerHelper("pad2d", name=name).apply("pad2d", inputs, attrs)


def unfold(x, kernel_sizes, strides=1, paddings=0, dilations=1, name=None):
    """[N, C * h * w, L]: the windows of [N, C, H, W] as columns; sizes are ints or [h, w]. Op unfold."""
    check_variable(x, "x", "unfold")
    pads = [paddings] * 4 if isinstance(paddings, int) else list(paddings)
    attrs = {
        "kernel_sizes": [kernel_sizes] * 2 if isinstance(kernel_sizes, int) else list(kernel_sizes),
        "strides": [strides] * 2 if isinstance(strides, int) else list(strides),
        "paddings": pads * 2 if len(pads) == 2 else pads,
        "dilations": [dilations] * 2 if isinstance(dilations, int) else list(dilations),
    }
    return LayerHelper("unfold", name=name).apply("unfold", {"X": x}, attrs)
