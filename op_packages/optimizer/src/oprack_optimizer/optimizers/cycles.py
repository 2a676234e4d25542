"""Learning rates that go up and down; found in oprack.optimizer.lr."""

from __future__ import annotations

import math
from collections.abc import Callable

from oprack.errors import InvalidArgumentError

from oprack_optimizer.optimizers.scheduler import LRScheduler, require_positive


class OneCycleLR(LRScheduler):
    r"""From max_learning_rate / divide_factor up to max_learning_rate, and down to end_learning_rate (Smith 2018).

    total_steps: of the whole cycle. phase_pct: the part in which the rate rises. anneal_strategy: "cos" for halves of
    a cosine, $$b + \frac{1}{2} (a - b) (1 + \cos \pi p)$$ from a to b, or "linear". three_phase: down to the start in
    as many steps as up, and only then to the end.
    """

    def __init__(
        self,
        max_learning_rate: float,
        total_steps: int,
        divide_factor: float = 25.0,
        end_learning_rate: float = 0.0001,
        phase_pct: float = 0.3,
        anneal_strategy: str = "cos",
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_positive(
            self, max_learning_rate=max_learning_rate, total_steps=total_steps, divide_factor=divide_factor
        )
        if anneal_strategy not in ("cos", "linear") or not 0 <= phase_pct <= 1:
            raise InvalidArgumentError(
                f"OneCycleLR: anneal_strategy is {anneal_strategy!r} and phase_pct {phase_pct!r}; expected cos or "
                "linear, and a number from 0 to 1"
            )
        self.max_lr, self.end_lr, self.total_steps = max_learning_rate, end_learning_rate, total_steps
        self.anneal_strategy = anneal_strategy
        start, up = max_learning_rate / divide_factor, phase_pct * total_steps - 1
        if three_phase:
            self.phases = [(0.0, up, start, max_learning_rate), (up, 2 * up, max_learning_rate, start)]
            self.phases.append((2 * up, total_steps - 1.0, start, end_learning_rate))
        else:
            self.phases = [
                (0.0, up, start, max_learning_rate),
                (up, total_steps - 1.0, max_learning_rate, end_learning_rate),
            ]
        super().__init__(start, last_epoch)

    def get_lr(self) -> float:
        n = self.last_epoch
        if n > self.total_steps:
            raise InvalidArgumentError(f"OneCycleLR: step {n} is beyond total_steps={self.total_steps}")
        for first, last, a, b in self.phases:
            if n <= last or (first, last, a, b) == self.phases[-1]:
                share = (n - first) / (last - first) if last > first else 1.0
                if self.anneal_strategy == "linear":
                    return a + (b - a) * share
                return b + (a - b) / 2.0 * (1.0 + math.cos(math.pi * share))
        return self.end_lr


class CyclicLR(LRScheduler):
    """Between base_learning_rate and max_learning_rate, up in step_size_up steps and down in step_size_down.

    mode: "triangular"; "triangular2" with half the height in each new cycle; "exp_range" with exp_gamma ** step of it.
    scale_fn: a function of the cycle, counted from 1, or with scale_mode="iterations" of the step, instead of a mode.
    """

    def __init__(
        self,
        base_learning_rate: float,
        max_learning_rate: float,
        step_size_up: int,
        step_size_down: int | None = None,
        mode: str = "triangular",
        exp_gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        require_positive(self, step_size_up=step_size_up, max_learning_rate=max_learning_rate)
        if mode not in ("triangular", "triangular2", "exp_range") or scale_mode not in ("cycle", "iterations"):
            raise InvalidArgumentError(
                f"CyclicLR: mode is {mode!r} and scale_mode {scale_mode!r}; expected triangular, triangular2 or "
                "exp_range, and cycle or iterations"
            )
        down = step_size_up if step_size_down is None else step_size_down
        self.height, self.cycle, self.up_share = (
            max_learning_rate - base_learning_rate,
            float(step_size_up + down),
            step_size_up / (step_size_up + down),
        )
        self.by_step = mode == "exp_range" if scale_fn is None else scale_mode == "iterations"
        if scale_fn is None:
            modes = {"triangular": lambda _: 1.0, "triangular2": lambda n: 0.5 ** (n - 1)}
            scale_fn = modes.get(mode, lambda n: exp_gamma**n)
        self.scale_fn = scale_fn
        super().__init__(base_learning_rate, last_epoch)

    def get_lr(self) -> float:
        number = 1 + math.floor(self.last_epoch / self.cycle)
        share = 1.0 + self.last_epoch / self.cycle - number
        up = share / self.up_share if share <= self.up_share else (1 - share) / (1 - self.up_share)
        return self.base_lr + self.height * up * self.scale_fn(self.last_epoch if self.by_step else number)


class CosineAnnealingWarmRestarts(LRScheduler):
    r"""$$eta\_min + \frac{1}{2} (lr - eta\_min) (1 + \cos \pi \frac{t}{T})$$ with t steps since the last restart.

    T_0: steps to the first restart. T_mult: how many times as long each period is as the one before.
    """

    def __init__(
        self, learning_rate: float, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        require_positive(self, T_0=T_0, T_mult=T_mult)
        self.first, self.growth, self.eta_min = T_0, T_mult, eta_min
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        at, period = float(self.last_epoch), self.first
        if self.growth == 1:
            at %= period
        else:
            while at >= period:
                at, period = at - period, period * self.growth
        return self.eta_min + (self.base_lr - self.eta_min) * (1 + math.cos(math.pi * at / period)) / 2


class LinearLR(LRScheduler):
    """learning_rate times a factor that goes from start_factor to end_factor in total_steps, and stays there."""

    def __init__(
        self,
        learning_rate: float,
        total_steps: int,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        require_positive(self, total_steps=total_steps, start_factor=start_factor)
        self.total_steps, self.start_factor, self.end_factor = total_steps, start_factor, end_factor
        super().__init__(learning_rate, last_epoch)

    def get_lr(self) -> float:
        share = min(self.last_epoch, self.total_steps) / self.total_steps
        return self.base_lr * (self.start_factor + (self.end_factor - self.start_factor) * share)
