"""Adadelta: op adadelta."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class Adadelta(Optimizer):
    r"""Scales steps by the sizes of past gradients and past steps (Zeiler, 2012): op adadelta.

    $$a \leftarrow rho \cdot a + (1 - rho) g^2$$, $$d = -\sqrt{(b + epsilon) / (a + epsilon)} \cdot g$$, $$b \leftarrow
    rho \cdot b + (1 - rho) d^2$$, $$w \leftarrow w + lr \cdot d$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        epsilon: Added to both means.
        rho: Decay of the running means of squares.
    """

    op_type = "adadelta"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        epsilon: float = 1e-6,
        rho: float = 0.95,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.epsilon, self.rho = epsilon, rho

    def accumulators(self) -> tuple[Accumulator, Accumulator]:
        return (
            Accumulator("AvgSquaredGrad", "_avg_squared_grad"),
            Accumulator("AvgSquaredUpdate", "_avg_squared_update"),
        )

    def attrs(self, parameter: Parameter) -> dict[str, float]:
        return {"epsilon": float(self.epsilon), "rho": float(self.rho)}
