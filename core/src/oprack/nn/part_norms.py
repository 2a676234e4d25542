"""Clipping by norms where each rank has a part of the gradients: squares are summed over ranks before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from oprack.errors import UnimplementedError
from oprack.parallel.training.modules import square
from oprack.tensor import LoDTensor, SelectedRows
from oprack.tensor.eager_tensor import Tensor


def norm_clips(optimizer: Any) -> list[Any]:
    """The clips of an optimizer that go by norms; those that go element by element need no other rank."""
    clips = getattr(optimizer, "clips", None) or [getattr(optimizer, "grad_clip", None)]
    return [clip for clip in clips if clip is not None and not getattr(clip, "elementwise", False)]


def clip_factors(optimizer: Any, parameters: Sequence[Tensor], squares: np.ndarray) -> np.ndarray:
    """What the gradient of each parameter is multiplied by.

    Args:
        optimizer: The optimizer, which knows the clip of each parameter.
        parameters: Its parameters.
        squares: The sum of the squares of each gradient, over all ranks.

    Returns:
        A factor for each parameter.

    Raises:
        UnimplementedError: A clip can't say its factors.
    """
    found = np.ones(len(parameters))
    for clip in norm_clips(optimizer):
        if not hasattr(clip, "factors"):
            raise UnimplementedError(
                f"{type(optimizer).__name__}: {type(clip).__name__} has no method factors(squares), by which gradients "
                "are clipped that lie in parts on several ranks; call oprack.parallel.clip_grad_norm(parameters, norm) "
                "before step()"
            )
        chosen = [
            k
            for k, p in enumerate(parameters)
            if getattr(getattr(p, "attr", None), "need_clip", True) and optimizer.clip_of(p) is clip
        ]
        found[chosen] = clip.factors(squares[chosen])
    return found


def square_of(gradient: LoDTensor | SelectedRows) -> float:
    """The sum of the squares of a gradient; rows that are listed twice count as their sum."""
    return square(gradient.to_dense() if isinstance(gradient, SelectedRows) else gradient.array)


def scaled(gradient: LoDTensor | SelectedRows, factor: float) -> Any:
    """A gradient times a factor."""
    if factor == 1.0:
        return gradient
    if isinstance(gradient, SelectedRows):
        value = gradient.value * gradient.value.dtype.type(factor)
        return SelectedRows(gradient.rows, value, gradient.height, place=gradient.place, check=False)
    return LoDTensor(gradient.array * gradient.array.dtype.type(factor), place=gradient.place)
