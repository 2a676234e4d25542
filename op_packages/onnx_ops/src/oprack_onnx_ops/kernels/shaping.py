"""Kernels of ops.shaping."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from oprack.kernel import Array, KernelContext, kernel
from oprack.tensor import ShapeOnly, numpy_dtype

from oprack_onnx_ops.kernels._interpolation import resized


@kernel("onnx_reshape", place="cpu")
def reshape(data: Array, shape: Array, *, allowzero: bool) -> Array:
    dims = [int(d) for d in shape.reshape(-1)]
    if not allowzero:
        dims = [data.shape[i] if d == 0 else d for i, d in enumerate(dims)]
    return data.reshape(dims).copy()


@kernel("onnx_expand", place="cpu")
def expand(input: Array, shape: Array) -> Array:
    dims = np.broadcast_shapes(input.shape, tuple(int(d) for d in shape.reshape(-1)))
    return np.broadcast_to(input, dims).copy()


@kernel("onnx_split", place="cpu")
def split(input: Array, split: Array | None = None, *, axis: int, ctx: KernelContext) -> list[Array]:
    if split is None:
        count = ctx.output_count("outputs")
        part = -(-input.shape[axis] // count)
        cuts = part * np.arange(1, count)
    else:
        cuts = np.cumsum(split.reshape(-1))[:-1]
    return [part.copy() for part in np.split(input, cuts, axis)]


def pad_array(
    data: Array, before: Sequence[int], behind: Sequence[int], mode: str, value: Array | float | None
) -> Array:
    """A padded array; negative numbers take elements away."""
    kept = tuple(
        slice(max(-b, 0), n - max(-e, 0) if e < 0 else None) for b, e, n in zip(before, behind, data.shape, strict=True)
    )
    data = data[kept]
    widths = [(max(b, 0), max(e, 0)) for b, e in zip(before, behind, strict=True)]
    if mode == "constant":
        filled = np.full(
            [n + b + e for n, (b, e) in zip(data.shape, widths, strict=True)], 0 if value is None else value, data.dtype
        )
        filled[tuple(slice(b, b + n) for n, (b, _) in zip(data.shape, widths, strict=True))] = data
        return filled
    return np.pad(data, widths, mode=mode)  # type: ignore[call-overload]


@kernel("onnx_pad", place="cpu")
def pad(
    data: Array, pads: Array, constant_value: Array | None = None, axes: Array | None = None, *, mode: str
) -> Array:
    before, behind = [0] * data.ndim, [0] * data.ndim
    along = range(data.ndim) if axes is None else axes.reshape(-1)
    for axis, first, last in zip(along, *pads.reshape(2, -1), strict=True):
        before[axis], behind[axis] = int(first), int(last)
    value = None if constant_value is None or not constant_value.size else constant_value.reshape(-1)[0]
    return pad_array(data, before, behind, mode, value)


@kernel("onnx_resize", place="cpu")
def resize(
    X: Array,
    roi: Array | None = None,
    scales: Array | None = None,
    sizes: Array | None = None,
    *,
    mode: str,
    coordinate_transformation_mode: str,
    nearest_mode: str,
    keep_aspect_ratio_policy: str,
    cubic_coeff_a: float,
    exclude_outside: bool,
    extrapolation_value: float,
    antialias: bool,
    axes: list[int],
) -> Array:
    along = [axis % X.ndim for axis in axes] if axes else list(range(X.ndim))
    old = np.array([X.shape[axis] for axis in along])
    if sizes is not None and sizes.size:
        wanted = sizes.reshape(-1)
        factors = wanted / old
        if keep_aspect_ratio_policy != "stretch":
            one = min(factors) if keep_aspect_ratio_policy == "not_larger" else max(factors)
            factors = np.full(len(along), one)
            wanted = np.floor(one * old + 0.5).astype(np.int64)
    elif scales is not None and scales.size:
        # the sizes that are given are rounded down, but places are found by the scales as they are
        factors = scales.reshape(-1).astype(np.float64)
        wanted = np.floor(factors * old).astype(np.int64)
    else:
        return X.copy()
    parts: list[tuple[float, float]] = [(0.0, 1.0)] * len(along)
    if coordinate_transformation_mode == "tf_crop_and_resize" and roi is not None:
        parts = [(float(a), float(b)) for a, b in roi.reshape(2, -1).T]
    return resized(
        X,
        along,
        [int(w) for w in wanted],
        [float(f) for f in factors],
        parts,
        mode=mode,
        places=coordinate_transformation_mode,
        nearest=nearest_mode,
        coefficient=cubic_coeff_a,
        exclude_outside=exclude_outside,
        outside=extrapolation_value,
        antialias=antialias,
    )


@kernel("onnx_trilu", place="cpu")
def trilu(input: Array, k: Array | None = None, *, upper: bool) -> Array:
    diagonal = 0 if k is None else int(k.reshape(-1)[0])
    return np.triu(input, diagonal) if upper else np.tril(input, diagonal)


@kernel("onnx_eye_like", place="cpu")
def eye_like(input: ShapeOnly, *, k: int, dtype: int) -> Array:
    return np.eye(input.shape[0], input.shape[1], k, dtype=input.dtype if dtype < 0 else numpy_dtype(dtype))


@kernel("onnx_col2im", place="cpu")
def col2im(
    input: Array, image_shape: Array, block_shape: Array, *, dilations: list[int], pads: list[int], strides: list[int]
) -> Array:
    image, block = [int(v) for v in image_shape], [int(v) for v in block_shape]
    rank = len(image)
    dilations, strides, pads = dilations or [1] * rank, strides or [1] * rank, pads or [0] * (2 * rank)
    padded = [image[i] + pads[i] + pads[rank + i] for i in range(rank)]
    counts = [(padded[i] - dilations[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    columns = input.reshape(input.shape[0], -1, *block, *counts)
    out = np.zeros((*columns.shape[:2], *padded), input.dtype)
    whole = (slice(None), slice(None))
    for place in np.ndindex(*block):
        at = tuple(
            slice(p * d, min(p * d + n * s, m), s)
            for p, d, n, s, m in zip(place, dilations, counts, strides, padded, strict=True)
        )
        out[whole + at] += columns[whole + place]
    return out[whole + tuple(slice(pads[i], pads[i] + image[i]) for i in range(rank))].copy()


@kernel("onnx_bit_cast", place="cpu")
def bit_cast(input: Array, *, to: int) -> Array:
    return np.ascontiguousarray(input).reshape(input.shape).view(numpy_dtype(to)).copy()


@kernel("onnx_dropout", place="cpu")
def dropout(
    data: Array, ratio: Array | None = None, training_mode: Array | None = None, *, seed: int, ctx: KernelContext
) -> tuple[Array, Array]:
    share = 0.5 if ratio is None else float(ratio.reshape(-1)[0])
    if training_mode is None or not bool(training_mode.reshape(-1)[0]) or share == 0:
        return data.copy(), np.ones(data.shape, bool)
    kept: Array = np.asarray(ctx.generator(seed).random(data.shape) >= share)
    return (data * kept / (1 - share)).astype(data.dtype), kept
