"""Methods of optimizers and their schedules that Paddle's have."""

from __future__ import annotations

from typing import Any

import oprack
from oprack.optimizer import Optimizer

_own = {name: getattr(Optimizer, name) for name in ("clear_grad", "minimize")}


def clear_grad(self: Any, set_to_zero: bool = True) -> None:
    """The gradients of all parameters are gone."""
    _own["clear_grad"](self)


def minimize(self: Any, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
    """Append the gradients and the updates to the program; of tensors, update by the gradients that there are."""
    if isinstance(loss, oprack.Tensor):
        self.step()
        return [], []
    return _own["minimize"](self, loss, startup_program, parameters, no_grad_set)


def set_lr_scheduler(self: Any, scheduler: Any) -> None:
    """Let another schedule say the learning rate."""
    self.schedule = scheduler


def get_opti_var_name_list(self: Any) -> list[str]:
    """The names of what the optimizer keeps."""
    return list(self.state_dict())


def install() -> None:
    """Give oprack's Optimizer these methods."""
    for function in (clear_grad, minimize, set_lr_scheduler, get_opti_var_name_list):
        setattr(Optimizer, function.__name__, function)
    Optimizer.clear_gradients = clear_grad
