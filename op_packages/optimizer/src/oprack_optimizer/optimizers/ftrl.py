"""Ftrl: op ftrl, also for SelectedRows gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class Ftrl(Optimizer):
    r"""Follows the regularized leader (McMahan et al., 2013): op ftrl, also for SelectedRows gradients.

    With $$n' = n + g^2$$, $$f(a) = a^{-lr\_power} / lr$$ and $$z \leftarrow z + g - (f(n') - f(n)) w$$, $$w \leftarrow
    (l1 \cdot \operatorname{sign}(z) - z) / (f(n') + 2 l2)$$ where $$|z| > l1$$, else 0.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        l1: Coefficient of the L1 penalty.
        l2: Coefficient of the L2 penalty.
        lr_power: Exponent of the sum of squares in the learning rate, at most 0.
    """

    op_type = "ftrl"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        l1: float = 0.0,
        l2: float = 0.0,
        lr_power: float = -0.5,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.l1, self.l2, self.lr_power = l1, l2, lr_power

    def accumulators(self) -> tuple[Accumulator, Accumulator]:
        return (
            Accumulator("SquaredAccumulator", "squared", out="SquaredAccumOut"),
            Accumulator("LinearAccumulator", "linear", out="LinearAccumOut"),
        )

    def attrs(self, parameter: Parameter) -> dict[str, float]:
        return {"l1": float(self.l1), "l2": float(self.l2), "lr_power": float(self.lr_power)}
