"""What definitions of losses share."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.op import Attr, InferShapeContext

IGNORE_INDEX = Attr(-100, "Rows with this hard label have loss 0.")


def require_labels(ctx: InferShapeContext, x: Sequence[int], label: Sequence[int], slots: str, axis: int = -1) -> None:
    """Labels must have the shape of x with 1 instead of the classes at `axis`, or without that dim."""
    axis %= len(x)
    kept = [n for i, n in enumerate(x) if i != axis]
    given = [n for i, n in enumerate(label) if i != axis] if len(label) == len(x) else list(label)
    fits = len(given) == len(kept) and all(a == b or a < 0 or b < 0 for a, b in zip(given, kept, strict=True))
    if len(label) == len(x):
        fits = fits and label[axis] in (1, -1)
    expected = [1 if i == axis else n for i, n in enumerate(x)]
    ctx.require(fits, f"{slots} have shapes {list(x)} and {list(label)}; expected labels of shape {expected}")


def loss_dims(x: Sequence[int], label: Sequence[int], axis: int = -1) -> list[int]:
    """Shape of x with 1 at `axis`, or without that dim when the labels have none."""
    axis %= len(x)
    if len(label) == len(x):
        return [1 if i == axis else n for i, n in enumerate(x)]
    return [n for i, n in enumerate(x) if i != axis]
