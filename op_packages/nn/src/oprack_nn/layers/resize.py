"""Layers of resampling."""

from __future__ import annotations

from collections.abc import Sequence

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
    out_shape: Sequence[Variable | int] | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    resample: str = "BILINEAR",
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
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


# The layer resize_bilinear.
def resize_bilinear(
    input: Variable,
    out_shape: Sequence[Variable | int] | None = None,
    scale: float | Variable | None = None,
    name: str | None = None,
    align_corners: bool = True,
    align_mode: int = 1,
    data_format: str = "NCHW",
) -> Variable:
    """image_resize by bilinear interpolation."""
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
    """image_resize that takes the nearest pixel."""
    return image_resize(input, out_shape, scale, name, "NEAREST", align_corners, 1, data_format)
