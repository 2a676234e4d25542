"""The eager side of optimizers: steps on tensors, by the ops that `minimize` appends to programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oprack.errors import PreconditionNotMetError

if TYPE_CHECKING:
    from oprack.layers import Variable

    from oprack_optimizer.optimizers.lr import CosineAnnealingDecay


class EagerSteps:
    """Base of Optimizer: `loss.backward(); optimizer.step(); optimizer.clear_grad()`."""

    parameter_list: Sequence[Any] | None
    _paths: Sequence[str] | None = None
    _learning_rate: Any
    _rate_var: Any
    _updates: Any = None

    def _eager(self) -> Any:
        from oprack.nn import Updates

        if self._updates is None:
            if not self.parameter_list:
                raise PreconditionNotMetError(
                    f"{type(self).__name__}: it has no parameters of its own; make it with "
                    "parameter_list=net.parameters()"
                )
            self._updates = Updates(self, self.parameter_list, self._paths)
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
        """Arrays of the state as `<parameter>.<accumulator>`, such as "0.weight.moment1", and the schedule's state as
        "LR_Scheduler"; `oprack.io.save_state` writes it.

        A parameter goes by its path when parameter_list is `net.named_parameters()`, else by its position in the list:
        "0.moment1". "not_updated" lists parameters that no step has changed yet, if there are any. A learning rate that
        is a number is not part of the state.
        """
        found: dict[str, Any] = self._eager().state_dict()
        return found

    def set_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Take over a state_dict, in place of all state there is.

        strict: every name has to be on both sides; False takes what there is, and leaves the rest. States by the names
        of variables, as programs have them, are taken when all names are those of these parameters.
        Raises NotFoundError that lists the names that are missing or unknown, and InvalidArgumentError for another
        shape or dtype; then nothing is changed.
        """
        self._eager().set_state_dict(state, strict)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """The same as `set_state_dict`."""
        self.set_state_dict(state, strict)

    # For oprack.nn.Updates ----------------------------------------------------------------------------------------
    @property
    def schedule(self) -> CosineAnnealingDecay | None:
        """The scheduler of the learning rate; None when it is a number."""
        return self._learning_rate if callable(self._learning_rate) else None

    @property
    def rate_variable(self) -> Variable:
        """The variable of the learning rate in the program that was written last."""
        return self._rate_var

    def forget_program(self) -> None:
        """Start over with a program that nothing was appended to."""
        self._program: Any = None
        self._rate_var = None
        self._rates: dict[float, Any] = {}
        self._state: dict[tuple[str, str], Any] = {}
        self._updates = None
