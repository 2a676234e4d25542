"""Methods of optimizers and their schedules that Paddle's have."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import oprack
from oprack.optimizer import Optimizer

_own = {name: getattr(Optimizer, name) for name in ("clear_grad", "minimize", "state_dict", "set_state_dict")}
_TABLES = frozenset(["LR_Scheduler", "StructuredToParameterName@@", "master_weights"])
"""Keys of a state that are no arrays of parameters."""


def clear_grad(self: Any, set_to_zero: bool = True) -> None:
    """The gradients of all parameters are gone."""
    _own["clear_grad"](self)


def minimize(self: Any, loss: Any, startup_program: Any = None, parameters: Any = None, no_grad_set: Any = None) -> Any:
    """Append the gradients and the updates to the program; of tensors, update by the gradients that there are."""
    if isinstance(loss, oprack.Tensor):
        self.step()
        return [], []
    return _own["minimize"](self, loss, startup_program, parameters, no_grad_set)


def _variables(self: Any) -> dict[str, str]:
    """The keys of oprack's state -> the names of Paddle's variables: `linear_0.w_0_moment1_0` for `0.moment1`."""
    names = self._eager()._names
    label = f"{self.name}_" if getattr(self, "name", None) else ""
    return {k: f"{names.parameters[e.position].name}_{label}{e.accumulator}_0" for k, e in names.entries().items()}


def state_dict(self: Any) -> dict[str, Any]:
    """What the optimizer keeps, by the names of Paddle's variables, and the state of its schedule."""
    names = _variables(self)
    found = {names.get(k, k): v for k, v in _own["state_dict"](self).items() if k != "not_updated"}
    return {k: _as_tensor(k, v) if isinstance(v, np.ndarray) else v for k, v in found.items()}


def _as_tensor(name: str, array: np.ndarray) -> Any:
    found = oprack.to_tensor(array)
    found.name = name
    return found


def set_state_dict(self: Any, state_dict: dict[str, Any]) -> None:
    """Take a state, of this process or of Paddle's, where layers may have been numbered otherwise.

    The arrays of an accumulator are then those of the parameters in their order.
    """
    names = _variables(self)
    arrays = {k: v for k, v in state_dict.items() if k not in _TABLES}
    if not set(arrays) <= {*names, *names.values()}:
        arrays = _in_order(self, arrays)
    own = {variable: key for key, variable in names.items()}
    found = {own.get(k, k): np.asarray(v) if isinstance(v, oprack.Tensor) else v for k, v in arrays.items()}
    schedule = {k: state_dict[k] for k in ("LR_Scheduler",) if k in state_dict}
    _own["set_state_dict"](self, {**found, **schedule}, strict=False)


def _in_order(self: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """A state of other names: the arrays of each accumulator for the parameters in their order."""
    entries = self._eager()._names.entries().values()
    found = dict[str, Any]()
    for accumulator in dict.fromkeys(e.accumulator for e in entries):
        theirs = [v for k, v in arrays.items() if re.search(rf"_{re.escape(accumulator)}_\d+$", k)]
        ours = [e.key for e in entries if e.accumulator == accumulator]
        if len(theirs) != len(ours):
            raise ValueError(
                f"set_state_dict: the state has {len(theirs)} arrays {accumulator}, of {len(ours)} parameters here; "
                "build the network and the optimizer as where it was saved"
            )
        found.update(zip(ours, theirs, strict=True))
    return found


def set_lr_scheduler(self: Any, scheduler: Any) -> None:
    """Let another schedule say the learning rate."""
    self.schedule = scheduler


def get_opti_var_name_list(self: Any) -> list[str]:
    """The names of what the optimizer keeps."""
    return list(self.state_dict())


def install() -> None:
    """Give oprack's Optimizer these methods."""
    for function in (
        clear_grad, minimize, set_lr_scheduler, get_opti_var_name_list, state_dict, set_state_dict,
    ):  # fmt: skip
        setattr(Optimizer, function.__name__, function)
    Optimizer.clear_gradients = clear_grad
    Optimizer.set_dict = set_state_dict
