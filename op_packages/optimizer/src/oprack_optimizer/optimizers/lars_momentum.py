"""LarsMomentum: op lars_momentum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class LarsMomentum(Optimizer):
    r"""Momentum with a learning rate per parameter, for large batches (You et al., 2017): op lars_momentum.

    $$r = lr \cdot \frac{lars\_coeff \|w\|}{\|g\| + d \|w\| + epsilon}$$, $$v \leftarrow momentum \cdot v + r (g + d
    \cdot w)$$, $$w \leftarrow w - v$$, where d is lars_weight_decay.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        momentum: Decay of the velocity.
        lars_coeff: The factor of the learning rate of each parameter.
        lars_weight_decay: The coefficient of the decay.
        exclude_from_weight_decay: Parts of the names of parameters that do without decay.
        epsilon: Added to the norms against division by zero.
        rescale_grad: A factor by which gradients are multiplied first.
    """

    op_type = "lars_momentum"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        momentum: float = 0.9,
        lars_coeff: float = 0.001,
        lars_weight_decay: float = 0.0005,
        exclude_from_weight_decay: Sequence[str] = (),
        epsilon: float = 0.0,
        rescale_grad: float = 1.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.lars_coeff, self.lars_weight_decay = momentum, lars_coeff, lars_weight_decay
        self.exclude_from_weight_decay = tuple(exclude_from_weight_decay)
        self.epsilon, self.rescale_grad = epsilon, rescale_grad

    def accumulators(self) -> tuple[Accumulator]:
        return (Accumulator("Velocity", "velocity"),)

    def attrs(self, parameter: Parameter) -> dict[str, float | list[float]]:
        without = any(part in parameter.name for part in self.exclude_from_weight_decay)
        return {
            "mu": float(self.momentum),
            "lars_coeff": float(self.lars_coeff),
            "lars_weight_decay": [0.0 if without else float(self.lars_weight_decay)],
            "epsilon": float(self.epsilon),
            "rescale_grad": float(self.rescale_grad),
        }
