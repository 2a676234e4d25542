"""AdamW: op adamw, also for SelectedRows gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oprack_optimizer.optimizers.adam import Adam

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class AdamW(Adam):
    r"""Adam with decoupled weight decay (Loshchilov and Hutter, 2019): op adamw.

    First $$w \leftarrow w (1 - lr \cdot weight\_decay)$$, then the step of Adam.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running mean of squares.
        epsilon: Added to the root against division by zero.
        weight_decay: The coefficient of the decay.
        lr_ratio: Called with each Parameter, returns a factor of its learning rate; None: 1.
        apply_decay_param_fun: Called with the name of each parameter, returns whether it decays; None: all do.
        lazy_mode: Whether a SelectedRows gradient changes the moments of its rows only; False: it counts as 0 in the
            others.
    """

    op_type = "adamw"

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.01,
        lr_ratio: Callable[[Any], float] | None = None,
        apply_decay_param_fun: Callable[[str], bool] | None = None,
        lazy_mode: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, lazy_mode, **options)
        self.weight_decay, self.lr_ratio, self.apply_decay_param_fun = weight_decay, lr_ratio, apply_decay_param_fun

    def attrs(self, parameter: Parameter) -> dict[str, bool | float]:
        decays = self.apply_decay_param_fun is None or bool(self.apply_decay_param_fun(parameter.name))
        return super().attrs(parameter) | {
            "coeff": float(self.weight_decay),
            "with_decay": decays,
            "lr_ratio": 1.0 if self.lr_ratio is None else float(self.lr_ratio(parameter)),
        }
