"""paddle.callbacks: what is told how training goes."""

from __future__ import annotations

import os
from typing import Any

import numpy as np


class Callback:
    """Is told when training, evaluation, prediction, epochs and batches begin and end, by methods to override."""

    def __init__(self) -> None:
        self.model: Any = None
        self.params: dict[str, Any] = {}

    def set_params(self, params: dict[str, Any]) -> None:
        """What fit was called with."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """The model that is trained."""
        self.model = model


def _silent(self: Any, *args: Any, **kwargs: Any) -> None:
    """Does nothing, unless it is overridden."""


for _when in ("begin", "end"):
    for _what in ("train", "eval", "predict", "epoch", "train_batch", "eval_batch", "predict_batch"):
        setattr(Callback, f"on_{_what}_{_when}", _silent)


class ProgBarLogger(Callback):
    """Prints losses and metrics."""

    def __init__(self, log_freq: int = 1, verbose: int = 2) -> None:
        super().__init__()
        self.log_freq, self.verbose, self.epoch = log_freq, verbose, 0

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        """Print the number of the epoch."""
        self.epoch = epoch
        if self.verbose:
            print(f"Epoch {epoch + 1}/{self.params.get('epochs')}")

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """Print what was measured, every log_freq steps."""
        if self.verbose and (step + 1) % self.log_freq == 0:
            print(f"step {step + 1}/{self.params.get('steps')} - {_shown(logs)}")

    def on_eval_end(self, logs: Any = None) -> None:
        """Print what was measured."""
        if self.verbose:
            print(f"Eval - {_shown(logs)}")


def _shown(logs: Any) -> str:
    return " - ".join(
        f"{k}: {np.ravel(v)[0]:.4f}" for k, v in (logs or {}).items() if np.size(v) and not isinstance(v, str)
    )


class ModelCheckpoint(Callback):
    """Saves the model after epochs, and at the end as "final"."""

    def __init__(self, save_freq: int = 1, save_dir: Any = None) -> None:
        super().__init__()
        self.save_freq, self.save_dir = save_freq, save_dir

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Save the model, every save_freq epochs."""
        if self.save_dir and epoch % self.save_freq == 0:
            self.model.save(os.path.join(self.save_dir, str(epoch)))

    def on_train_end(self, logs: Any = None) -> None:
        """Save the model."""
        if self.save_dir:
            self.model.save(os.path.join(self.save_dir, "final"))


class LRScheduler(Callback):
    """Moves the learning rate on after each step, or after each epoch."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False) -> None:
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("LRScheduler: by_step and by_epoch are both True; expected one of them")
        self.by_step, self.by_epoch = by_step, by_epoch

    def _move(self) -> None:
        schedule = getattr(self.model._optimizer, "schedule", None)
        if schedule is not None and hasattr(schedule, "step"):
            schedule.step()

    def on_train_batch_end(self, step: int, logs: Any = None) -> None:
        """After a step."""
        if self.by_step:
            self._move()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """After an epoch."""
        if self.by_epoch:
            self._move()


class EarlyStopping(Callback):
    """Ends training when what is watched gets no better."""

    def __init__(
        self, monitor: str = "loss", mode: str = "auto", patience: int = 0, verbose: int = 1, min_delta: float = 0,
        baseline: Any = None,
        save_best_model: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        grows = mode == "max" or (mode == "auto" and "acc" in monitor)
        self.monitor, self.patience, self.verbose, self.sign = monitor, patience, verbose, 1.0 if grows else -1.0
        self.min_delta, self.save_best_model, self.waited = abs(min_delta), save_best_model, 0
        self.best = -np.inf if baseline is None else self.sign * baseline

    def on_eval_end(self, logs: Any = None) -> None:
        """Compare with the best value so far."""
        if self.monitor not in (logs or {}):
            return
        value = self.sign * float(np.ravel(logs[self.monitor])[0])
        if value - self.min_delta > self.best:
            self.best, self.waited = value, 0
            if self.save_best_model and self.params.get("save_dir"):
                self.model.save(os.path.join(self.params["save_dir"], "best_model"))
            return
        self.waited += 1
        if self.waited >= self.patience:
            self.model.stop_training = True


class ReduceLROnPlateau(Callback):
    """Lowers the learning rate when what is watched gets no better."""

    def __init__(
        self, monitor: str = "loss", factor: float = 0.1, patience: int = 10, verbose: int = 1, mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0, min_lr: float = 0,
    ) -> None:  # fmt: skip
        super().__init__()
        self.monitor, self.factor, self.patience, self.min_lr = monitor, factor, patience, min_lr
        self.sign = 1.0 if mode == "max" or (mode == "auto" and "acc" in monitor) else -1.0
        self.min_delta, self.cooldown, self.cooling, self.waited, self.best = min_delta, cooldown, 0, 0, -np.inf

    def on_eval_end(self, logs: Any = None) -> None:
        """Compare with the best value so far."""
        if self.monitor not in (logs or {}):
            return
        value = self.sign * float(np.ravel(logs[self.monitor])[0])
        if self.cooling:
            self.cooling, self.waited = self.cooling - 1, 0
        if value > self.best + self.min_delta:
            self.best, self.waited = value, 0
        elif not self.cooling:
            self.waited += 1
            if self.waited >= self.patience:
                optimizer = self.model._optimizer
                optimizer.set_lr(max(optimizer.get_lr() * self.factor, self.min_lr))
                self.cooling, self.waited = self.cooldown, 0
