"""Tensors sampled between their places: axis by axis for resize, by coordinates for grid_sample."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from oprack.kernel import Array


def _sources(place: str, new: int, old: int, scale: float, part: tuple[float, float]) -> Array:
    """For each of `new` places the place, a real number, among `old` ones.

    Args:
        place: The coordinate_transformation_mode.
        new: How many places there will be.
        old: How many there are.
        scale: New size over old size, as it was asked for.
        part: Start and end of what is resized, as shares of the old size.
    """
    x = np.arange(new, dtype=np.float64)
    if place == "asymmetric":
        return x / scale
    if place == "align_corners":
        real = scale * old
        return x * ((old - 1) / (real - 1)) if real > 1 else np.zeros(new)
    if place == "pytorch_half_pixel" and new == 1:
        return np.full(new, -0.5)
    if place == "tf_half_pixel_for_nn":
        return (x + 0.5) / scale
    if place == "tf_crop_and_resize":
        start, end = part
        if new == 1:
            return np.full(new, 0.5 * (start + end) * (old - 1))
        return start * (old - 1) + x * (end - start) * (old - 1) / (new - 1)
    if place == "half_pixel_symmetric":
        real = scale * old
        return old / 2 * (1 - new / real) + (x + 0.5) / scale - 0.5
    return (x + 0.5) / scale - 0.5


_ROUND: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda x: np.ceil(x - 0.5),
    "round_prefer_ceil": lambda x: np.floor(x + 0.5),
    "floor": np.floor,
    "ceil": np.ceil,
}


def _cubic(distance: Array, a: float) -> Array:
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def _filter(distance: Array, mode: str, coefficient: float) -> Array:
    return _cubic(distance, coefficient) if mode == "cubic" else np.maximum(1 - np.abs(distance), 0.0)


def _weights(sources: Array, old: int, mode: str, coefficient: float, exclude_outside: bool, stretch: float) -> Array:
    """[new, old]: how much each old place counts for each new one; stretch: how much wider the filter is."""
    reach = int(np.ceil((2 if mode == "cubic" else 1) * stretch)) + 1
    first = np.floor(sources).astype(np.int64)
    offsets = np.arange(-reach + 1, reach + 1)
    places = first[:, None] + offsets
    weights = _filter((places - sources[:, None]) / stretch, mode, coefficient)
    inside = (places >= 0) & (places < old)
    if exclude_outside:
        weights = np.where(inside, weights, 0.0)
    total = weights.sum(1, keepdims=True)
    if stretch > 1 or exclude_outside:
        weights = weights / np.where(total == 0, 1, total)
    table = np.zeros((sources.size, old))
    rows = np.broadcast_to(np.arange(sources.size)[:, None], places.shape)
    np.add.at(table, (rows, np.clip(places, 0, old - 1)), weights)
    return table


def resized(
    x: Array,
    axes: Sequence[int],
    sizes: Sequence[int],
    scales: Sequence[float],
    parts: Sequence[tuple[float, float]],
    *,
    mode: str,
    places: str,
    nearest: str,
    coefficient: float,
    exclude_outside: bool,
    outside: float,
    antialias: bool,
) -> Array:
    """A tensor with other sizes along some axes; see onnx_resize."""
    out = x
    beyond: list[tuple[int, Array]] = []
    for axis, new, scale, part in zip(axes, sizes, scales, parts, strict=True):
        old = x.shape[axis]
        sources = _sources(places, new, old, scale, part)
        if places == "tf_crop_and_resize":
            beyond.append((axis, (sources < 0) | (sources > old - 1)))
        if new == old and np.array_equal(sources, np.arange(old)):
            continue
        if mode == "nearest":
            found = np.clip(_ROUND[nearest](sources), 0, old - 1).astype(np.int64)
            out = np.take(out, found, axis)
        else:
            stretch = max(1.0, 1.0 / scale) if antialias else 1.0
            table = _weights(sources, old, mode, coefficient, exclude_outside, stretch)
            out = np.moveaxis(np.tensordot(out, table, (axis, 1)), -1, axis)
    for axis, mask in beyond:
        shape = [1] * x.ndim
        shape[axis] = mask.size
        out = np.where(mask.reshape(shape), outside, out)
    if x.dtype.kind in "iu" and out.dtype.kind == "f":
        limits = np.iinfo(x.dtype)
        out = np.clip(np.rint(out), limits.min, limits.max)
    return np.ascontiguousarray(out, x.dtype)


# grid_sample ----------------------------------------------------------------------------------------------------------
def _reflected(x: Array, low: float, high: float) -> Array:
    """Coordinates thrown back from two borders as often as it takes."""
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    away = np.abs(x - low) % (2 * span)
    return low + np.where(away > span, 2 * span - away, away)


def _inside(x: Array, size: int, padding: str, align_corners: bool) -> Array:
    if padding == "border":
        return np.clip(x, 0, size - 1)
    if padding == "reflection":
        return np.clip(_reflected(x, 0 if align_corners else -0.5, size - (1 if align_corners else 0.5)), 0, size - 1)
    return x


def _pick(x: Array, places: Sequence[Array], padding: str, align_corners: bool) -> Array:
    """x [N, C, *D] at whole places [N, *out], one array for each of D: [N, C, *out]."""
    keep = np.ones(places[0].shape, bool)
    found: list[Array] = []
    for place, size in zip(places, x.shape[2:], strict=True):
        at = _inside(place, size, padding, align_corners)
        keep &= (at >= 0) & (at <= size - 1)
        found.append(np.clip(at, 0, size - 1).astype(np.int64))
    batch = np.arange(x.shape[0]).reshape(-1, *(1,) * (places[0].ndim - 1))
    values = np.moveaxis(x, 1, -1)[(batch, *found)]
    return np.moveaxis(np.where(keep[..., None], values, 0), -1, 1)


def grid_sampled(x: Array, grid: Array, mode: str, padding: str, align_corners: bool) -> Array:
    """x [N, C, *D] at the places of grid [N, *out, rank of D], which count from -1 to 1, the last axis first."""
    sizes = x.shape[2:]
    coordinates: list[Array] = []
    for place, size in enumerate(sizes):
        g = grid[..., len(sizes) - 1 - place].astype(np.float64)
        real = (g + 1) / 2 * (size - 1) if align_corners else ((g + 1) * size - 1) / 2
        coordinates.append(_inside(real, size, padding, align_corners) if mode != "cubic" else real)
    if mode == "nearest":
        return _pick(x, [np.rint(c) for c in coordinates], padding, align_corners).astype(x.dtype)
    reach = [0, 1] if mode == "linear" else [-1, 0, 1, 2]
    base = [np.floor(c) for c in coordinates]
    out = np.zeros((*x.shape[:2], *grid.shape[1:-1]))
    for corner in np.ndindex(*(len(reach),) * len(sizes)):
        places = [b + reach[k] for b, k in zip(base, corner, strict=True)]
        weight = np.ones(grid.shape[:-1])
        for p, c in zip(places, coordinates, strict=True):
            weight = weight * (_cubic(p - c, -0.75) if mode == "cubic" else np.maximum(1 - np.abs(p - c), 0))
        out += weight[:, None] * _pick(x, places, padding, align_corners)
    return out.astype(x.dtype)
