"""Weight decay: adds the gradient of a penalty to the gradient of each parameter."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from oprack.autodiff import OpAppender
from oprack.desc import BlockDesc
from oprack.errors import InvalidArgumentError
from oprack.types import VarType


class WeightDecay(ABC):
    """A penalty on parameters.

    Args:
        coeff: Its weight.

    Raises:
        InvalidArgumentError: `coeff` is not a finite number.
    """

    def __init__(self, coeff: float = 0.0) -> None:
        if isinstance(coeff, bool) or not isinstance(coeff, int | float) or not math.isfinite(coeff):
            raise InvalidArgumentError(f"{type(self).__name__}: coeff is {coeff!r}; expected a finite number")
        self.coeff = float(coeff)

    @abstractmethod
    def __call__(self, ops: OpAppender, parameter: str, gradient: str) -> str:
        """Append the ops that compute the gradient of the penalty on `parameter`; returns its name."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.coeff})"


class L2Decay(WeightDecay):
    r"""Penalty $$\tfrac{1}{2} coeff \|w\|^2$$, gradient $$coeff \cdot w$$: op scale."""

    def __call__(self, ops: OpAppender, parameter: str, gradient: str) -> str:
        pair = (parameter, gradient)
        return ops.apply("scale", {"X": [parameter]}, {"scale": self.coeff}, name=f"{parameter}@DECAY", pair=pair)


class L1Decay(WeightDecay):
    r"""Penalty $$coeff \sum |w|$$, gradient $$coeff \cdot \operatorname{sign}(w)$$: ops sign and scale."""

    def __call__(self, ops: OpAppender, parameter: str, gradient: str) -> str:
        pair = (parameter, gradient)
        sign = ops.apply("sign", {"X": [parameter]}, name=f"{parameter}@SIGN", pair=pair)
        return ops.apply("scale", {"X": [sign]}, {"scale": self.coeff}, name=f"{parameter}@DECAY", pair=pair)


def append_regularization(
    block: BlockDesc, pairs: Sequence[tuple[str, str]], regularizers: Mapping[str, WeightDecay | None]
) -> list[tuple[str, str]]:
    """Append ops that add the gradient of each parameter's penalty to its gradient.

    A SelectedRows gradient is replaced by a dense one of another name, since the penalty applies to all rows.

    Args:
        block: The block that holds the gradients.
        pairs: Names of (parameter, gradient).
        regularizers: Parameter -> its penalty; None for none.

    Returns:
        The (parameter, gradient) pairs to train with.
    """
    ops = OpAppender(block, scope="/regularization/")
    regularized = []
    for parameter, gradient in pairs:
        regularizer, total = regularizers.get(parameter), gradient
        if regularizer is not None:
            decay = regularizer(ops, parameter, gradient)
            if block.var(gradient).type is VarType.SELECTED_ROWS:
                source = block.var(parameter)
                total = ops.new_name(f"{gradient}@NEWGRAD@")
                block.create_var(total, dtype=source.dtype, shape=source.shape)
            ops.append(
                "sum",
                {"X": [gradient, decay]},
                {"Out": [total]},
                {"use_mkldnn": False},
                pair=(parameter, gradient),
            )
        regularized.append((parameter, total))
    return regularized


L1DecayRegularizer = L1Decay
L2DecayRegularizer = L2Decay
