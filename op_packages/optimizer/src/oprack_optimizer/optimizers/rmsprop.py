"""RMSProp: op rmsprop, also for SelectedRows gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class RMSProp(Optimizer):
    r"""Divides gradients by the root of a running mean of their squares (Hinton, 2012): op rmsprop.

    $$s \leftarrow rho \cdot s + (1 - rho) g^2$$, $$u \leftarrow momentum \cdot u + lr \cdot g / \sqrt{s - c +
    epsilon}$$, $$w \leftarrow w - u$$ where c is 0, or with centered $$a^2$$ of $$a \leftarrow rho \cdot a + (1 - rho)
    g$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        rho: Decay of the running means.
        epsilon: Added below the root against division by zero.
        momentum: Decay of the velocity; 0: no momentum.
        centered: Whether to divide by the running standard deviation instead.
    """

    op_type = "rmsprop"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        rho: float = 0.95,
        epsilon: float = 1e-6,
        momentum: float = 0.0,
        centered: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.rho, self.epsilon, self.momentum, self.centered = rho, epsilon, momentum, centered

    def accumulators(self) -> tuple[Accumulator, Accumulator, Accumulator]:
        return (
            Accumulator("Moment", "momentum"),
            Accumulator("MeanSquare", "mean_square"),
            Accumulator("MeanGrad", "mean_grad"),
        )

    def attrs(self, parameter: Parameter) -> dict[str, bool | float]:
        return {
            "decay": float(self.rho),
            "epsilon": float(self.epsilon),
            "momentum": float(self.momentum),
            "centered": bool(self.centered),
        }
