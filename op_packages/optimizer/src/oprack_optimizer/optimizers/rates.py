"""What may be given to an optimizer as its learning rate."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack import initializer
from oprack.autodiff import OpRole
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.layers import LayerHelper, Parameter, Variable, append_op, name_scope, op_role_guard, unique_name
from oprack.runtime import global_scope
from oprack.tensor import Scope


class Rates:
    """Base of Optimizer: its learning rate, as a number, as a variable of a program, and times factors."""

    _kind: str
    _learning_rate: Any
    _rate_var: Any
    _rates: dict[float, Variable]
    _program: Any
    _factor = 1.0  # that of the group of a parameter

    def _make_rate(self, helper: LayerHelper, dtype: str) -> None:
        if self._rate_var is not None:
            return
        rate = self._learning_rate
        if isinstance(rate, Variable):
            self._rate_var = rate
            return
        self._rate_var = helper.create_global_variable(
            [],
            "float64" if dtype == "float64" else "float32",
            name=unique_name.generate("learning_rate"),
            persistable=True,
            initializer=initializer.Constant(self.get_lr()),
        )
        if callable(rate):
            self._program.schedules[self._rate_var.name] = rate

    def _rate_of(self, block: Any, parameter: Parameter) -> Variable:
        """The learning rate, times the parameter's own factor."""
        rate, factor = self._rate_var, float(parameter.info.learning_rate) * self._factor
        assert rate is not None
        if factor == 1.0:
            return rate
        if factor not in self._rates:
            with op_role_guard(OpRole.OPTIMIZE | OpRole.LR_SCHED), name_scope("scale_with_param_lr"):
                out = Variable(self._program, block, block.create_var(unique_name.generate(f"{rate.name}.scaled")))
                append_op("scale", {"X": rate}, {"Out": out}, {"scale": factor}, program=self._program, block=block)
            self._rates[factor] = out
        return self._rates[factor]

    # The learning rate ----------------------------------------------------------------------------------------------
    def get_lr(self) -> float:
        """The learning rate of the next step. Raises PreconditionNotMetError when a Variable holds it."""
        if isinstance(self._learning_rate, Variable):
            raise PreconditionNotMetError(
                f"{self._kind}: the learning rate is variable {self._learning_rate.name!r}; fetch it from a run"
            )
        return float(self._learning_rate() if callable(self._learning_rate) else self._learning_rate)

    def set_lr(self, value: float, scope: Scope | None = None) -> None:
        """Change a learning rate that is a number, from the next run on. scope: of the runs; default: the global one.

        Raises PreconditionNotMetError when a scheduler or a Variable gives the learning rate.
        """
        if not isinstance(self._learning_rate, float):
            raise PreconditionNotMetError(
                f"{self._kind}: set_lr can't change a learning rate that {self._learning_rate!r} gives; change that"
            )
        self._learning_rate = checked_rate(value, self._kind)
        if self._rate_var is not None:
            array = np.full(self._rate_var.shape, self._learning_rate, self._rate_var.dtype)
            (global_scope() if scope is None else scope).var(self._rate_var.name).set(array)


def checked_rate(rate: Any, owner: str) -> Any:
    """A learning rate as an optimizer keeps it: a float, a scheduler or a Variable.

    Args:
        rate: What the user gave.
        owner: The optimizer, for messages.

    Raises:
        InvalidArgumentError: It is none of these, or no finite number.
    """
    if isinstance(rate, Variable) or (callable(rate) and hasattr(rate, "state_dict")):
        return rate
    if isinstance(rate, list | tuple) or hasattr(rate, "__next__"):
        raise InvalidArgumentError(
            f"{owner}: learning_rate is a list of parameters; the learning rate comes first: write "
            f"oprack.optimizer.{owner}(0.001, parameters=net.parameters())"
        )
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate):
        raise InvalidArgumentError(
            f"{owner}: learning_rate is {rate!r}; expected a finite number, a scheduler of oprack.optimizer.lr or a "
            "Variable"
        )
    return float(rate)
