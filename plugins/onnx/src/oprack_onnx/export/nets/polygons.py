"""Overlaps of boxes that are turned."""

from __future__ import annotations

from oprack_onnx.export.expressions import Expr

_NEXT = [2, 4, 6, 0]


def _sides(corners: Expr) -> tuple[Expr, Expr, Expr, Expr]:
    """x and y [..., 4] of the corners, and the way from each to the next one."""
    x, y = corners.gather([0, 2, 4, 6], -1), corners.gather([1, 3, 5, 7], -1)
    return x, y, corners.gather(_NEXT, -1) - x, corners.gather([v + 1 for v in _NEXT], -1) - y


def _area(corners: Expr) -> Expr:
    x, y, dx, dy = _sides(corners)
    return abs((x * dy - y * dx).sum(-1)) * 0.5


def _within(a: Expr, b: Expr) -> Expr:
    """Whether the corners of a [..., 4] lie in b: on one side of all of its sides, whichever way round it goes."""
    (ax, ay, _, _), (bx, by, dx, dy) = (_sides(v) for v in (a, b))
    away = [p.unsqueeze(-1) - q.unsqueeze(-2) for p, q in ((ax, bx), (ay, by))]
    side = dx.unsqueeze(-2) * away[1] - dy.unsqueeze(-2) * away[0]
    return (side >= 0.0).all(-1) | (side <= 0.0).all(-1)


def _crossings(a: Expr, b: Expr) -> tuple[Expr, Expr, Expr]:
    """x and y [..., 4, 4] where the sides of a meet those of b, and whether they do."""
    ax, ay, adx, ady = (v.unsqueeze(-1) for v in _sides(a))
    bx, by, bdx, bdy = (v.unsqueeze(-2) for v in _sides(b))
    across = adx * bdy - ady * bdx
    parallel = abs(across) < 1e-12
    whole = parallel.select(across.like(1.0), across)
    x, y = bx - ax, by - ay
    on_a, on_b = (x * bdy - y * bdx) / whole, (x * ady - y * adx) / whole
    meets = ~parallel & (on_a >= 0.0) & (on_a <= 1.0) & (on_b >= 0.0) & (on_b <= 1.0)
    return ax + on_a * adx, ay + on_a * ady, meets


def polygon_overlaps(a: Expr, b: Expr) -> Expr:
    """Intersection over union of quadrangles without dents, corners [..., 8] each, which broadcast.

    What two share has as its corners those of each that lie in the other, and the crossings of their sides: 24 points,
    which are put in order by their direction from the middle.
    """
    x, y, meets = _crossings(a, b)
    shape = meets.shape(0, -2)
    four, sixteen = (shape.join(shape.ints([n]), axis=0) for n in (4, 16))
    ax, ay, _, _ = _sides(a)
    bx, by, _, _ = _sides(b)
    px, py = (
        p.op("Expand", four).join(q.op("Expand", four), r.op("Reshape", sixteen), axis=-1)
        for p, q, r in ((ax, bx, x), (ay, by, y))
    )
    there = (
        _within(a, b).op("Expand", four).join(_within(b, a).op("Expand", four), meets.op("Reshape", sixteen), axis=-1)
    )
    count = there.cast(px.dtype).sum(-1, keep=True).maximum(1.0)
    dx, dy = (v - there.select(v, 0).sum(-1, keep=True) / count for v in (px, py))
    # rises with the angle, as a cosine that needs no root: from 0 to 2 above, to 4 below
    cosine = dx / (abs(dx) + abs(dy)).maximum(1e-30)
    turn = (dy >= 0.0).select(1.0 - cosine, cosine + 3.0)
    _, order = there.select(turn, 9.0).top(24, -1, False)
    held = there.cast(px.dtype).op("GatherElements", order, axis=-1) > 0.5
    sx, sy = (v.op("GatherElements", order, axis=-1) for v in (dx, dy))
    # what is no corner stands behind, and is taken for the first one, so that it adds nothing
    sx, sy = (held.select(v, v.slice(0, 1, -1)) for v in (sx, sy))
    nx, ny = (v.slice(1, 24, -1).join(v.slice(0, 1, -1), axis=-1) for v in (sx, sy))
    shared = abs((sx * ny - sy * nx).sum(-1)) * 0.5
    shared = (there.cast(px.dtype).sum(-1) > 2.5).select(shared, 0)
    union = _area(a) + _area(b) - shared
    return (union > 0.0).select(shared / (union > 0.0).select(union, 1), 0)
