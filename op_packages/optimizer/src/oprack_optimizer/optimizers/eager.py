"""The eager side of optimizers: steps on tensors, by the ops that `minimize` appends to programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack.errors import PreconditionNotMetError


class EagerSteps:
    """Base of Optimizer: `loss.backward(); optimizer.step(); optimizer.clear_grad()`."""

    parameter_list: Sequence[Any] | None
    _learning_rate: Any
    _rate_var: Any
    _updates: Any = None

    def _eager(self) -> Any:
        from oprack.interpreter import Updates

        if self._updates is None:
            if not self.parameter_list:
                raise PreconditionNotMetError(
                    f"{type(self).__name__}: there is nothing to step; pass parameter_list=module.parameters()"
                )
            self._updates = Updates(self, self.parameter_list)
        return self._updates

    def step(self) -> None:
        """Update the parameters that have a gradient, in their own memory.

        Raises PreconditionNotMetError when none has, or when no parameter_list was given.
        """
        self._eager().step()

    def clear_grad(self) -> None:
        """Let go of the gradients of all parameters."""
        self._eager().clear_grad()

    def state_dict(self) -> dict[str, Any]:
        """Arrays of the state by name, as they are named in a program, and the schedule's state as "LR_Scheduler"."""
        found: dict[str, Any] = self._eager().state_dict()
        return found

    def set_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state_dict. Raises NotFoundError when it has no part for the schedule."""
        self._eager().set_state_dict(state)

    # For oprack.interpreter ---------------------------------------------------------------------------------------
    @property
    def schedule(self) -> Any:
        """The scheduler of the learning rate; None when it is a number."""
        return self._learning_rate if callable(self._learning_rate) else None

    @property
    def rate_variable(self) -> Any:
        """The variable of the learning rate in the program that was written last."""
        return self._rate_var

    def forget_program(self) -> None:
        """Start over with a program that nothing was appended to."""
        self._program: Any = None
        self._rate_var = None
        self._rates: dict[float, Any] = {}
        self._state: dict[tuple[str, str], Any] = {}
        self._updates = None
