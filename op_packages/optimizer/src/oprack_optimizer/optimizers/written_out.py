"""NAdam and RAdam: updates that are written out in elementwise ops, since Fluid has no op for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack.autodiff import OpAppender
from oprack.layers import Variable, append_op
from oprack.types import VarType

from oprack_optimizer.optimizers.base import Accumulator, Optimizer

if TYPE_CHECKING:
    from oprack.layers import Parameter

    from oprack_optimizer.optimizers.lr import LRScheduler


class _WrittenOut(Optimizer):
    """The moments of Adam, a counter of steps, and a subclass's step."""

    def __init__(
        self,
        learning_rate: LRScheduler | float,
        beta1: float,
        beta2: float,
        epsilon: float,
        options: dict[str, Any],
    ) -> None:
        super().__init__(learning_rate, **options)
        self.beta1, self.beta2, self.epsilon = float(beta1), float(beta2), float(epsilon)

    def accumulators(self) -> Sequence[Accumulator]:
        return (
            Accumulator("Moment1", "moment1"),
            Accumulator("Moment2", "moment2"),
            Accumulator("Beta2Pow", "beta2_pow", 1.0, (1,)),
        )

    @abstractmethod
    def direction(self, gradient: Variable, state: dict[str, Variable], new: dict[str, Any]) -> Variable:
        """What is subtracted, times the learning rate; `new` has the state after the step, and takes more of it."""

    def _update(self, block: Any, parameter: Parameter, gradient: Variable, rate: Variable) -> Any:
        settings = self._of(parameter)
        state = {a.name: self._state[a.name, parameter.name] for a in settings.accumulators()}
        g = _dense(block, parameter, gradient)
        new: dict[str, Any] = {
            "moment1": state["moment1"] * settings.beta1 + g * (1 - settings.beta1),
            "moment2": state["moment2"] * settings.beta2 + g * g * (1 - settings.beta2),
            "beta2_pow": state["beta2_pow"] * settings.beta2,
        }
        updated = parameter - settings.direction(g, state, new) * rate
        for name, value in new.items():
            append_op("assign", {"X": value}, {"Out": state[name]}, {}, program=self._program, block=block)
        return append_op("assign", {"X": updated}, {"Out": parameter}, {}, program=self._program, block=block)


class NAdam(_WrittenOut):
    r"""Adam with Nesterov's momentum (Dozat, 2016).

    $$w \leftarrow w - lr \frac{\mu_{t+1} m / (1 - \prod_{i \le t+1} \mu_i) + (1 - \mu_t) g / (1 - \prod_{i \le t}
    \mu_i)}{\sqrt{v / (1 - beta2^t)} + epsilon}$$ for $$\mu_t = beta1 (1 - 0.5 \cdot 0.96^{t \cdot momentum\_decay})$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running mean of squares.
        epsilon: Added to the root against division by zero.
        momentum_decay: How fast the momentum approaches beta1.
    """

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.002,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        momentum_decay: float = 0.004,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, options)
        self.momentum_decay = float(momentum_decay)

    def accumulators(self) -> Sequence[Accumulator]:
        more = Accumulator("DecayPow", "decay_pow", 1.0, (1,)), Accumulator("MuProduct", "mu_product", 1.0, (1,))
        return (*super().accumulators(), *more)

    def direction(self, gradient: Variable, state: dict[str, Variable], new: dict[str, Any]) -> Variable:
        factor = 0.96**self.momentum_decay
        new["decay_pow"] = state["decay_pow"] * factor
        now = new["decay_pow"] * (-0.5 * self.beta1) + self.beta1
        then = new["decay_pow"] * (-0.5 * self.beta1 * factor) + self.beta1
        new["mu_product"] = state["mu_product"] * now
        momentum = new["moment1"] * (then / (1.0 - new["mu_product"] * then))
        momentum = momentum + gradient * ((1.0 - now) / (1.0 - new["mu_product"]))
        return momentum / ((new["moment2"] / (1.0 - new["beta2_pow"])) ** 0.5 + self.epsilon)


class RAdam(_WrittenOut):
    r"""Adam that waits until the variance of its rate is known (Liu et al., 2020).

    With $$\rho = 2 / (1 - beta2) - 1$$ and $$\rho_t = \rho - 2 t \, beta2^t / (1 - beta2^t)$$: where the latter is
    above 5, $$w \leftarrow w - lr \frac{m}{1 - beta1^t} \sqrt{\frac{(\rho_t - 4)(\rho_t - 2) \rho}{(\rho - 4)(\rho - 2)
    \rho_t}} \frac{\sqrt{1 - beta2^t}}{\sqrt v + epsilon}$$, else $$w \leftarrow w - lr \frac{m}{1 - beta1^t}$$.

    Args:
        learning_rate: A number, or a scheduler of oprack.optimizer.lr.
        beta1: Decay of the running mean of gradients.
        beta2: Decay of the running mean of squares.
        epsilon: Added to the root against division by zero.
    """

    def __init__(
        self,
        learning_rate: LRScheduler | float = 0.001,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        **options: Any,
    ) -> None:
        super().__init__(learning_rate, beta1, beta2, epsilon, options)

    def accumulators(self) -> Sequence[Accumulator]:
        more = Accumulator("Beta1Pow", "beta1_pow", 1.0, (1,)), Accumulator("Step", "step", 0.0, (1,))
        return (*super().accumulators(), *more)

    def direction(self, gradient: Variable, state: dict[str, Variable], new: dict[str, Any]) -> Variable:
        new["beta1_pow"], new["step"] = state["beta1_pow"] * self.beta1, state["step"] + 1.0
        most = 2 / (1 - self.beta2) - 1
        length = new["step"] * new["beta2_pow"] / (1.0 - new["beta2_pow"]) * -2.0 + most
        known = (length > 5.0).astype(length.dtype)
        length = (length - 5.0) * known + 5.0  # where it counts; elsewhere a root of what is negative
        share = (most / ((most - 4) * (most - 2))) * (length - 4.0) * (length - 2.0) / length
        scale = (share * (1.0 - new["beta2_pow"])) ** 0.5
        factor = scale * known / (new["moment2"] ** 0.5 + self.epsilon) + (1.0 - known)
        return new["moment1"] / (1.0 - new["beta1_pow"]) * factor


def _dense(block: Any, parameter: Parameter, gradient: Variable) -> Variable:
    """The gradient with all rows, where it is SelectedRows."""
    if block.var(gradient.name).type is not VarType.SELECTED_ROWS:
        return gradient
    ops, pair = OpAppender(block, scope="/optimizer/"), (parameter.name, gradient.name)
    merged = ops.apply("merge_selected_rows", {"X": [gradient.name]}, name=f"{gradient.name}@MERGED", pair=pair)
    rows = ops.apply("get_tensor_from_selected_rows", {"X": [merged]}, name=f"{gradient.name}@ROWS", pair=pair)
    return Variable(gradient.program, block, block.var(rows))
