"""Momentum: op momentum, also for SelectedRows gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer
from oprack_optimizer.regularizer import L2Decay, WeightDecay

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class Momentum(Optimizer):
    r"""Gradient descent with momentum (Polyak, 1964): op momentum, also for SelectedRows gradients.

    $$v \leftarrow momentum \cdot v + g$$, $$w \leftarrow w - lr \cdot v$$; with use_nesterov $$w \leftarrow w - lr (g +
    momentum \cdot v)$$. The op itself adds the gradient of L2Decay.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        momentum: Decay of the velocity.
        use_nesterov: Whether to step as Nesterov's accelerated gradient.
    """

    op_type = "momentum"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        momentum: float = 0.9,
        use_nesterov: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.momentum, self.use_nesterov = momentum, use_nesterov

    def accumulators(self) -> tuple[Accumulator]:
        return (Accumulator("Velocity", "velocity"),)

    def decays_itself(self, regularizer: WeightDecay) -> bool:
        return isinstance(regularizer, L2Decay)

    def attrs(self, parameter: Parameter) -> dict[str, bool | float | str]:
        regularizer = self._regularizer(parameter)
        decay = regularizer.coeff if isinstance(regularizer, L2Decay) else None
        return {
            "mu": float(self.momentum),
            "use_nesterov": bool(self.use_nesterov),
            "regularization_method": "" if decay is None else "l2_decay",
            "regularization_coeff": decay or 0.0,
        }
