"""Kernel of box_decoder_and_assign."""

from __future__ import annotations

from oprack.kernel import Array, ArrayModule, kernel
from oprack.types import FLOATS


@kernel("box_decoder_and_assign", place=("cpu", "cuda"), dtypes=FLOATS)
def box_decoder_and_assign(
    PriorBox: Array,
    TargetBox: Array,
    BoxScore: Array,
    PriorBoxVar: Array | None = None,
    *,
    box_clip: float,
    xp: ArrayModule,
) -> tuple[Array, Array]:
    kind, rows, classes = PriorBox.dtype.type, *BoxScore.shape
    size = PriorBox[:, None, 2:] - PriorBox[:, None, :2] + kind(1)
    center = PriorBox[:, None, :2] + size * kind(0.5)
    codes = TargetBox.reshape(rows, classes, 4)
    codes = codes if PriorBoxVar is None else codes * PriorBoxVar
    middle = codes[..., :2] * size + center
    half = xp.exp(xp.minimum(codes[..., 2:], kind(box_clip))) * size * kind(0.5)
    boxes = xp.concatenate([middle - half, middle + half - kind(1)], axis=2)
    if classes < 2:
        return boxes.reshape(TargetBox.shape), PriorBox.copy()
    best = BoxScore[:, 1:].argmax(axis=1)
    found = BoxScore[xp.arange(rows), best + 1] > -1
    assigned = xp.where(found[:, None], boxes[xp.arange(rows), best + 1], PriorBox)
    return boxes.reshape(TargetBox.shape), assigned
