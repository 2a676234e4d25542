"""Boxes [xmin, ymin, xmax, ymax]: areas and overlaps of many pairs at once."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule


def areas(boxes: Array, pixel: float, xp: ArrayModule) -> Array:
    """Areas [...] of boxes [..., 4]; 0 for a box whose corners are the wrong way round."""
    width = boxes[..., 2] - boxes[..., 0]
    height = boxes[..., 3] - boxes[..., 1]
    proper = (width >= 0) & (height >= 0)
    return xp.where(proper, (width + pixel) * (height + pixel), boxes.dtype.type(0))


def overlaps(a: Array, b: Array, pixel: int, xp: ArrayModule) -> Array:
    """Intersection over union of boxes [..., 4], which broadcast; pixel: 1 for inclusive corners, else 0."""
    kind = a.dtype.type
    width = xp.minimum(a[..., 2], b[..., 2]) - xp.maximum(a[..., 0], b[..., 0])
    height = xp.minimum(a[..., 3], b[..., 3]) - xp.maximum(a[..., 1], b[..., 1])
    if pixel:
        inside = xp.where((width >= 0) & (height >= 0), (width + kind(pixel)) * (height + kind(pixel)), kind(0))
    else:
        inside = xp.maximum(width, kind(0)) * xp.maximum(height, kind(0))
    union = areas(a, kind(pixel), xp) + areas(b, kind(pixel), xp)
    union = union - inside
    return inside / xp.where(union > 0, union, kind(1))
