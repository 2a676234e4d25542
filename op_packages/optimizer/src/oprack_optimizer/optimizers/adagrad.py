"""Adagrad and DecayedAdagrad: the ops of these names; adagrad takes SelectedRows gradients, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class Adagrad(Optimizer):
    r"""Divides gradients by the root of the sum of their squares (Duchi et al., 2011): op adagrad.

    $$m \leftarrow m + g^2$$, $$w \leftarrow w - lr \cdot g / (\sqrt m + epsilon)$$. Gradients may be SelectedRows.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        epsilon: Added to the root against division by zero.
        initial_accumulator_value: What the sum of squares m starts from.
    """

    op_type = "adagrad"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        epsilon: float = 1e-6,
        initial_accumulator_value: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.epsilon, self.initial_accumulator_value = epsilon, initial_accumulator_value

    def accumulators(self) -> tuple[Accumulator]:
        return (Accumulator("Moment", "moment", float(self.initial_accumulator_value)),)

    def attrs(self, parameter: Parameter) -> dict[str, float]:
        return {"epsilon": float(self.epsilon)}


class DecayedAdagrad(Optimizer):
    r"""Divides gradients by the root of a running mean of their squares: op decayed_adagrad.

    $$m \leftarrow decay \cdot m + (1 - decay) g^2$$, $$w \leftarrow w - lr \cdot g / (\sqrt m + epsilon)$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        decay: Decay of the running mean.
        epsilon: Added to the root against division by zero.
    """

    op_type = "decayed_adagrad"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        decay: float = 0.95,
        epsilon: float = 1e-6,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.decay, self.epsilon = decay, epsilon

    def accumulators(self) -> tuple[Accumulator]:
        return (Accumulator("Moment", "moment"),)

    def attrs(self, parameter: Parameter) -> dict[str, float]:
        return {"decay": float(self.decay), "epsilon": float(self.epsilon)}
