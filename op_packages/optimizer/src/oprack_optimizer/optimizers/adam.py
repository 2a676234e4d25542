"""Adam: op adam, also for SelectedRows gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer, beta_powers

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class Adam(Optimizer):
    r"""Steps by running means of gradients and of their squares (Kingma and Ba, 2015): op adam.

    $$m \leftarrow beta1 \cdot m + (1 - beta1) g$$, $$v \leftarrow beta2 \cdot v + (1 - beta2) g^2$$, $$w \leftarrow w -
    lr \frac{\sqrt{1 - beta2^t}}{1 - beta1^t} \cdot \frac{m}{\sqrt v + epsilon \sqrt{1 - beta2^t}}$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running mean of squares.
        epsilon: Added to the root against division by zero.
        lazy_mode: Whether a SelectedRows gradient changes the moments of its rows only; False: it counts as 0 in the
            others.
    """

    op_type = "adam"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        lazy_mode: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta1, self.beta2, self.epsilon, self.lazy_mode = beta1, beta2, epsilon, lazy_mode

    def accumulators(self) -> tuple[Accumulator, Accumulator, Accumulator, Accumulator]:
        return (
            Accumulator("Moment1", "moment1"),
            Accumulator("Moment2", "moment2"),
            *beta_powers(self.beta1, self.beta2),
        )

    def attrs(self, parameter: Parameter) -> dict[str, bool | float]:
        return {
            "beta1": float(self.beta1),
            "beta2": float(self.beta2),
            "epsilon": float(self.epsilon),
            "lazy_mode": bool(self.lazy_mode),
        }
