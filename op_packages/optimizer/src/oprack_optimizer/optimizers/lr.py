"""Learning rates that change: schedulers, found as `oprack.optimizer.lr`. n is the step, the calls of `step` so far.

    scheduler = oprack.optimizer.lr.CosineAnnealingDecay(0.1, T_max=100)
    oprack.optimizer.SGD(scheduler).minimize(loss)
    ...
    exe.run(program, feed, scope=scope)      # writes scheduler() into the learning rate's variable first
    scheduler.step()

Checkpoints keep the state of the schedulers of a program.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from oprack.errors import InvalidArgumentError, did_you_mean
from oprack.names.spellings import ABSENT, instead, same

from oprack_optimizer.optimizers.cycles import CosineAnnealingWarmRestarts, CyclicLR, LinearLR, OneCycleLR
from oprack_optimizer.optimizers.scheduler import LRScheduler, require_positive

__all__ = [
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearLR",
    "LinearWarmup",
    "MultiStepDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "OneCycleLR",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and (other := same("lr", name)) is not ABSENT:
        return other
    known = "" if name.startswith("_") else instead("lr", name) or did_you_mean(name, __all__)
    raise AttributeError(f"module 'oprack.optimizer.lr' has no attribute {name!r}{known}")


class NoamDecay(LRScheduler):
    r"""$$learning\_rate \cdot d\_model^{-1/2} \min(n^{-1/2}, n \cdot warmup\_steps^{-3/2})$$ (Vaswani et al. 2017)."""

    def __init__(self, d_model: int, warmup_steps: int, learning_rate: float = 1.0, last_epoch: int = -1) -> None:
        require_positive(self, d_model=d_model, warmup_steps=warmup_steps)
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        n = self.last_epoch
        after = 1.0 if n == 0 else n**-0.5
        return self.base_lr * self.d_model**-0.5 * min(after, n * self.warmup_steps**-1.5)


class ExponentialDecay(LRScheduler):
    r"""$$learning\_rate \cdot gamma^n$$."""

    def __init__(self, learning_rate: float, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma**self.last_epoch)


class NaturalExpDecay(ExponentialDecay):
    r"""$$learning\_rate \cdot e^{-gamma \cdot n}$$."""

    def get_lr(self) -> float:
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)


class InverseTimeDecay(ExponentialDecay):
    r"""$$learning\_rate / (1 + gamma \cdot n)$$."""

    def get_lr(self) -> float:
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class PolynomialDecay(LRScheduler):
    r"""$$(learning\_rate - end\_lr) (1 - n / decay\_steps)^{power} + end\_lr$$, and end_lr from decay_steps on.

    cycle: instead of staying there, decay again in multiples of decay_steps.
    """

    def __init__(
        self,
        learning_rate: float,
        decay_steps: int,
        end_lr: float = 0.0001,
        power: float = 1.0,
        cycle: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_positive(self, decay_steps=decay_steps)
        self.decay_steps, self.end_lr, self.power, self.cycle = decay_steps, end_lr, power, cycle
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        n, steps = self.last_epoch, self.decay_steps
        if self.cycle:
            steps *= max(math.ceil(n / steps), 1)
        else:
            n = min(n, steps)
        return float((self.base_lr - self.end_lr) * (1 - n / steps) ** self.power + self.end_lr)


class CosineAnnealingDecay(LRScheduler):
    r"""$$eta\_min + \tfrac{1}{2} (learning\_rate - eta\_min) (1 + \cos(\pi n / T\_max))$$."""

    def __init__(self, learning_rate: float, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        require_positive(self, T_max=T_max)
        self.T_max, self.eta_min = T_max, float(eta_min)
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        wave = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        return self.eta_min + (self.base_lr - self.eta_min) * wave / 2


class PiecewiseDecay(LRScheduler):
    """values[i] while n < boundaries[i], then the last value. values has one element more than boundaries."""

    def __init__(self, boundaries: Sequence[int], values: Sequence[float], last_epoch: int = -1) -> None:
        if len(values) != len(boundaries) + 1 or list(boundaries) != sorted(boundaries):
            raise InvalidArgumentError(
                f"PiecewiseDecay: boundaries {list(boundaries)} and values {list(values)}; expected ascending "
                "boundaries and one value more than there are boundaries"
            )
        self.boundaries, self.values = list(boundaries), [float(v) for v in values]
        super().__init__(self.values[0], last_epoch)

    def get_lr(self) -> float:
        return self.values[sum(self.last_epoch >= b for b in self.boundaries)]


class StepDecay(LRScheduler):
    r"""$$learning\_rate \cdot gamma^{\lfloor n / step\_size \rfloor}$$."""

    def __init__(self, learning_rate: float, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        require_positive(self, step_size=step_size)
        self.step_size, self.gamma = step_size, gamma
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma ** (self.last_epoch // self.step_size))


class MultiStepDecay(LRScheduler):
    r"""$$learning\_rate \cdot gamma^k$$, where k is how many of the milestones n has reached."""

    def __init__(
        self, learning_rate: float, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        if not milestones or any(a >= b for a, b in itertools.pairwise(milestones)):
            raise InvalidArgumentError(
                f"MultiStepDecay: milestones are {milestones!r}; expected steps in ascending order"
            )
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        return float(self.base_lr * self.gamma ** sum(self.last_epoch >= m for m in self.milestones))


class LambdaDecay(LRScheduler):
    r"""$$learning\_rate \cdot lr\_lambda(n)$$."""

    def __init__(self, learning_rate: float, lr_lambda: Callable[[int], float], last_epoch: int = -1) -> None:
        if not callable(lr_lambda):
            raise InvalidArgumentError(
                f"LambdaDecay: lr_lambda is {lr_lambda!r}; expected a function of the step that gives a factor"
            )
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        return self.base_lr * self.lr_lambda(self.last_epoch)


class LinearWarmup(LRScheduler):
    r"""$$start\_lr + (end\_lr - start\_lr) n / warmup\_steps$$ for the first warmup_steps, then learning_rate: a
    number, or a scheduler that begins then."""

    def __init__(
        self,
        learning_rate: float | LRScheduler,
        warmup_steps: int,
        start_lr: float,
        end_lr: float,
        last_epoch: int = -1,
    ) -> None:
        require_positive(self, warmup_steps=warmup_steps)
        if not start_lr <= end_lr:
            raise InvalidArgumentError(f"LinearWarmup: start_lr {start_lr} is greater than end_lr {end_lr}")
        self.learning_rate, self.warmup_steps = learning_rate, warmup_steps
        self.start_lr, self.end_lr = start_lr, end_lr
        super().__init__(start_lr, last_epoch)

    def get_lr(self) -> float:
        n = self.last_epoch
        if n < self.warmup_steps:
            return (self.end_lr - self.start_lr) * n / self.warmup_steps + self.start_lr
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(n - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["learning_rate"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state: dict[str, Any]) -> None:
        if isinstance(self.learning_rate, LRScheduler):
            if "learning_rate" not in state:
                raise InvalidArgumentError(
                    "LinearWarmup: the state has no learning_rate, that of the scheduler which follows the warmup"
                )
            self.learning_rate.set_state_dict(state["learning_rate"])
        super().set_state_dict(state)


class ReduceOnPlateau(LRScheduler):
    """Multiply by factor when the metric that `step` gets has not improved for more than patience steps.

    mode: "min" or "max", which is better. threshold, threshold_mode: an improvement is more than threshold, as a share
    of the best ("rel") or by itself ("abs"). cooldown: steps after a reduction that do not count. min_lr: the least.
    epsilon: smaller changes are not made.
    """

    state_names = ("last_epoch", "last_lr", "best", "num_bad_epochs", "cooldown_counter")

    def __init__(
        self,
        learning_rate: float,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        epsilon: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise InvalidArgumentError(
                f"ReduceOnPlateau: mode is {mode!r} and threshold_mode {threshold_mode!r}; expected 'min' or 'max', "
                "and 'rel' or 'abs'"
            )
        if not factor < 1.0:
            raise InvalidArgumentError(f"ReduceOnPlateau: factor is {factor}; expected less than 1")
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.epsilon = cooldown, min_lr, epsilon
        self.best: float | None = None
        self.num_bad_epochs = self.cooldown_counter = 0
        super().__init__(learning_rate)

    def get_lr(self) -> float:
        return self.last_lr

    def step(self, metrics: float, epoch: int | None = None) -> None:
        """Go on after a step whose metric (a number, or an array of one element) was `metrics`."""
        value = float(metrics.item() if hasattr(metrics, "item") else metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._improves(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            new = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - new > self.epsilon:
                self.last_lr = new

    def _improves(self, value: float, best: float) -> bool:
        margin = best * self.threshold if self.threshold_mode == "rel" else self.threshold
        return value < best - margin if self.mode == "min" else value > best + margin
