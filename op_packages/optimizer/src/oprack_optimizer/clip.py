"""Gradient clipping: ops between the backward pass and the updates (Fluid's `GradientClipBy...`)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from oprack.autodiff import OpAppender
from oprack.desc import BlockDesc
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.types import VarType

Pairs = Sequence[tuple[str, str]]


class GradientClip(ABC):
    """Called with a block and (parameter, gradient) names of it; appends ops and returns the pairs to train with.

    elementwise: whether it looks at each element alone, so that parts of gradients may be clipped one by one.
    """

    elementwise: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, block: BlockDesc, pairs: Pairs) -> list[tuple[str, str]]:
        """Append the ops."""

    def factors(self, squares: np.ndarray) -> np.ndarray:
        """What each gradient is multiplied by, from the sums of their squares, where ranks have parts of gradients.

        Raises UnimplementedError for a clip that does not say so.
        """
        raise UnimplementedError(
            f"{type(self).__name__}: it has no factors(squares) of its own, by which gradients are clipped that lie in "
            "parts on several ranks; call oprack.parallel.clip_grad_norm(parameters, norm) before step()"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in vars(self).items())})"


def _number(owner: object, name: str, value: float, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < least:
        floor = "" if least == -math.inf else f" of at least {least:g}"
        raise InvalidArgumentError(f"{type(owner).__name__}: {name} is {value!r}; expected a finite number{floor}")
    return float(value)


class ClipGradByValue(GradientClip):
    """Clips every element of gradients to [min, max]: ops clip, which merge the rows of a SelectedRows first.

    Args:
        max: The upper bound.
        min: The lower bound; None: -max.

    Raises:
        InvalidArgumentError: min is greater than max.
    """

    elementwise = True

    def __init__(self, max: float, min: float | None = None) -> None:
        self.max = _number(self, "max", max, -math.inf)
        self.min = _number(self, "min", -self.max if min is None else min, -math.inf)
        if self.min > self.max:
            raise InvalidArgumentError(f"ClipGradByValue: min is {self.min} and max is {self.max}; expected min <= max")

    def __call__(self, block: BlockDesc, pairs: Pairs) -> list[tuple[str, str]]:
        ops = OpAppender(block, scope="/gradient_clip/")
        attrs = {"min": self.min, "max": self.max}
        return [(p, ops.apply("clip", {"X": [g]}, attrs, name=f"{g}@CLIP", pair=(p, g))) for p, g in pairs]


class ClipGradByNorm(GradientClip):
    r"""Clips the norm of each gradient by itself, $$g \cdot \min(1, clip\_norm / \|g\|)$$: ops clip_by_norm.

    The rows of a SelectedRows are merged first.

    Args:
        clip_norm: The largest norm.

    Raises:
        InvalidArgumentError: clip_norm is negative.
    """

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _number(self, "clip_norm", clip_norm, 0.0)

    def __call__(self, block: BlockDesc, pairs: Pairs) -> list[tuple[str, str]]:
        ops = OpAppender(block, scope="/gradient_clip/")
        attrs = {"max_norm": self.clip_norm}
        return [(p, ops.apply("clip_by_norm", {"X": [g]}, attrs, name=f"{g}@CLIP", pair=(p, g))) for p, g in pairs]

    def factors(self, squares: np.ndarray) -> np.ndarray:
        """clip_norm over each norm that is larger."""
        norms = np.sqrt(squares)
        return np.divide(self.clip_norm, norms, out=np.ones_like(norms), where=~(norms <= self.clip_norm))


class ClipGradByGlobalNorm(GradientClip):
    r"""Clips the norm of all gradients together, $$g_i \cdot clip\_norm / \max(clip\_norm, \sqrt{\sum_j \|g_j\|^2})$$.

    Rows that a SelectedRows lists twice are added before its norm is taken.

    Args:
        clip_norm: The largest norm.

    Raises:
        InvalidArgumentError: clip_norm is not positive.
    """

    def __init__(self, clip_norm: float) -> None:
        self.clip_norm = _number(self, "clip_norm", clip_norm, 0.0)
        if self.clip_norm == 0.0:
            raise InvalidArgumentError("ClipGradByGlobalNorm: clip_norm is 0; expected a number greater than 0")

    def __call__(self, block: BlockDesc, pairs: Pairs) -> list[tuple[str, str]]:
        if not pairs:
            return []
        ops = OpAppender(block, scope="/gradient_clip/")
        squares = [self._squared_norm(ops, p, g) for p, g in pairs]
        last = pairs[-1]
        total = ops.apply("sum", {"X": squares}, {"use_mkldnn": False}, name="global_norm@SQUARE", pair=last)
        norm = ops.apply("sqrt", {"X": [total]}, name="global_norm", pair=last)
        attrs = {
            "shape": [1],
            "dtype": int(block.var(norm).dtype or VarType.FP32),
            "value": self.clip_norm,
            "str_value": repr(self.clip_norm),
        }
        limit = ops.apply("fill_constant", {}, attrs, name="global_norm@LIMIT", pair=last)
        larger = ops.apply("elementwise_max", {"X": [limit], "Y": [norm]}, name="global_norm@MAX", pair=last)
        factor = ops.apply("elementwise_div", {"X": [limit], "Y": [larger]}, name="global_norm@FACTOR", pair=last)
        for p, g in pairs:
            ops.append("elementwise_mul", {"X": [g], "Y": [factor]}, {"Out": [g]}, pair=(p, g))
        return list(pairs)

    def factors(self, squares: np.ndarray) -> np.ndarray:
        """One factor for all, from the norm of all of them together."""
        norm = np.sqrt(squares.sum())
        return np.full_like(squares, self.clip_norm / np.maximum(self.clip_norm, norm))

    def _squared_norm(self, ops: OpAppender, parameter: str, gradient: str) -> str:
        pair, values = (parameter, gradient), gradient
        if ops.block.var(gradient).type is VarType.SELECTED_ROWS:
            merged = ops.apply("merge_selected_rows", {"X": [gradient]}, name=f"{gradient}@MERGED", pair=pair)
            values = ops.apply("get_tensor_from_selected_rows", {"X": [merged]}, name=f"{gradient}@ROWS", pair=pair)
        return ops.apply("squared_l2_norm", {"X": [values]}, name=f"{gradient}@SQUARE", pair=pair)


GradientClipByValue = ClipGradByValue
GradientClipByNorm = ClipGradByNorm
GradientClipByGlobalNorm = ClipGradByGlobalNorm
