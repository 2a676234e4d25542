"""Adamax: op adamax, and op scale for the powers of beta1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.autodiff.appender import OpRole
from oprack.layers import append_op, op_role_guard

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter, Variable

    from oprack_optimizer.optimizers.lr import LRScheduler


class Adamax(Optimizer):
    r"""Adam with the running maximum of gradients in place of squares (Kingma and Ba, 2015): op adamax.

    $$m \leftarrow beta1 \cdot m + (1 - beta1) g$$, $$u \leftarrow \max(|g|, beta2 \cdot u + epsilon)$$, $$w \leftarrow
    w - \frac{lr}{1 - beta1^t} m / u$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running maximum.
        epsilon: Added to the running maximum against division by zero.
    """

    op_type = "adamax"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def accumulators(self) -> tuple[Accumulator, Accumulator, Accumulator]:
        return (
            Accumulator("Moment", "moment"),
            Accumulator("InfNorm", "inf_norm"),
            Accumulator("Beta1Pow", "beta1_pow_acc", self.beta1, (1,), out=""),
        )

    def attrs(self, parameter: Parameter) -> dict[str, float]:
        return {"beta1": float(self.beta1), "beta2": float(self.beta2), "epsilon": float(self.epsilon)}

    def finish(self, pairs: Sequence[tuple[Parameter, Variable]]) -> None:
        for p, g in pairs:
            power = self.state(p, "beta1_pow_acc")
            with op_role_guard(OpRole.OPTIMIZE, [p, g]):
                append_op(
                    "scale", {"X": power}, {"Out": power}, {"scale": self.beta1}, program=g.program, block=g.block
                )
