"""Boxes [xmin, ymin, xmax, ymax]: areas and overlaps of many pairs at once."""

from __future__ import annotations


def areas(boxes, pixel, xp):
    """Areas [...] of boxes [..., 4]; 0 for a box whose corners are the wrong way round."""
    width = boxes[..., 2] - boxes[..., 0]
    height = boxes[..., 3] - boxes[..., 1]
    proper = (width >= 0) & (height >= 0)
    return xp.where(proper, (width + pixel) * (height + pixel), boxes.dtype.type(0))


def overlaps(a, b, pixel, xp):
    """Intersection over union of boxes [..., 4], which broadcast; pixel: 1 for inclusive corners, else 0."""
    zero = a.dtype.type(0)
    offset = a.dtype.type(pixel)
    width = xp.minimum(a[..., 2], b[..., 2]) - xp.maximum(a[..., 0], b[..., 0])
    height = xp.minimum(a[..., 3], b[..., 3]) - xp.maximum(a[..., 1], b[..., 1])
    inside = xp.where((width >= 0) & (height >= 0), (width + offset) * (height + offset), zero)
    union = areas(a, offset, xp) + areas(b, offset, xp) - inside
    return xp.where(union > 0, inside / xp.where(union > 0, union, a.dtype.type(1)), zero)
