"""Lamb: op lamb, also for SelectedRows gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer, beta_powers

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class Lamb(Optimizer):
    r"""Adam's direction at the length of the parameter, for large batches (You et al., 2019): op lamb.

    $$u = \hat m / (\sqrt{\hat v} + epsilon) + lamb\_weight\_decay \cdot w$$, $$w \leftarrow w - lr \frac{\|w\|}{\|u\|}
    u$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        lamb_weight_decay: The coefficient of the decay.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running mean of squares.
        epsilon: Added to the root against division by zero.
        exclude_from_weight_decay_fn: Called with each Parameter, returns whether it does without decay; None: none
            does.
        always_adapt: Whether parameters without decay get the length of the parameter, too.
    """

    op_type = "lamb"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        lamb_weight_decay: float = 0.01,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-6,
        exclude_from_weight_decay_fn: Callable[[Any], bool] | None = None,
        always_adapt: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.lamb_weight_decay, self.beta1, self.beta2, self.epsilon = lamb_weight_decay, beta1, beta2, epsilon
        self.exclude_from_weight_decay_fn, self.always_adapt = exclude_from_weight_decay_fn, always_adapt

    def accumulators(self) -> tuple[Accumulator, Accumulator, Accumulator, Accumulator]:
        return (
            Accumulator("Moment1", "moment1"),
            Accumulator("Moment2", "moment2"),
            *beta_powers(self.beta1, self.beta2),
        )

    def attrs(self, parameter: Parameter) -> dict[str, bool | float]:
        without = self.exclude_from_weight_decay_fn is not None and self.exclude_from_weight_decay_fn(parameter)
        return {
            "weight_decay": 0.0 if without else float(self.lamb_weight_decay),
            "beta1": float(self.beta1),
            "beta2": float(self.beta2),
            "epsilon": float(self.epsilon),
            "always_adapt": bool(self.always_adapt),
        }
