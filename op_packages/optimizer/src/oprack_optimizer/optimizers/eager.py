"""The eager interface of optimizers: steps on tensors, with the same ops that `minimize` appends to programs."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from oprack.errors import PreconditionNotMetError
from oprack.names.spellings import ABSENT, instead, same

if TYPE_CHECKING:
    from oprack.layers import Variable

    from oprack_optimizer.clip import GradientClip
    from oprack_optimizer.optimizers.lr import CosineAnnealingDecay


class ParameterGroup(dict[str, Any]):
    """One group of an optimizer's parameters: "params", "lr", and the settings of the group.

    Args:
        owner: The optimizer.
        params: The parameters.
        settings: What is special about them.
    """

    def __init__(self, owner: Any, params: list[Any], settings: Mapping[str, Any]) -> None:
        self._owner, self._factor = owner, float(settings.get("learning_rate", 1.0))
        super().__init__(settings, params=params, lr=owner.get_lr() * self._factor)

    def __setitem__(self, key: str, value: Any) -> None:
        """Set the learning rate of the optimizer, so that the group's is this one; other settings are fixed."""
        if key != "lr":
            raise TypeError(f"param_groups: {key} can't be changed; expected lr, or another optimizer with that {key}")
        self._owner.set_lr(float(value) / self._factor)
        super().__setitem__(key, value)


class EagerSteps:
    """Base of Optimizer: `loss.backward(); optimizer.step(); optimizer.clear_grad()`."""

    parameter_list: Sequence[Any] | None
    _paths: Sequence[str] | None = None
    _learning_rate: Any
    _rate_var: Any
    _updates: Any = None
    _of: Any
    _groups: Any
    grad_clip: GradientClip | None

    def _eager(self) -> Any:
        from oprack.nn import Updates

        if self._updates is None:
            if not self.parameter_list:
                raise PreconditionNotMetError(
                    f"{type(self).__name__}: it has no parameters of its own; make it with parameters=net.parameters()"
                )
            self._updates = Updates(self, self.parameter_list, self._paths)
        return self._updates

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (other := same("optimizer object", name, self)) is not ABSENT:
            return other
        advice = "" if name.startswith("_") else instead("optimizer object", name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    @property
    def param_groups(self) -> list[ParameterGroup]:
        """The parameters and the learning rate, as PyTorch has them: `group["lr"]` reads and sets the rate."""
        groups = self._groups or [(list(self.parameter_list or ()), {})]
        return [ParameterGroup(self, params, settings) for params, settings in groups]

    def step(self) -> None:
        """Update the parameters that have a gradient, in place.

        Raises PreconditionNotMetError when none has, or when there are no parameters.
        """
        self._eager().step()

    def clear_grad(self) -> None:
        """Clear the gradients of all parameters."""
        self._eager().clear_grad()

    def state_dict(self) -> dict[str, Any]:
        """Arrays of the state as `<parameter>.<accumulator>`, such as "0.weight.moment1", and the schedule's state as
        "LR_Scheduler"; `oprack.io.save_state` writes it.

        A parameter goes by its path when the parameters are `net.named_parameters()`, else by its position in the list:
        "0.moment1". "not_updated" lists parameters that no step has changed yet, if there are any. A learning rate that
        is a number is not part of the state.
        """
        state: dict[str, Any] = self._eager().state_dict()
        return state

    def set_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """Load a state_dict, which replaces the current state.

        A state by names of variables, as programs have it, is accepted if all names belong to these parameters.

        Args:
            state: The state.
            strict: Whether its keys must be those of this optimizer; otherwise only matching keys are loaded.

        Raises:
            NotFoundError: Keys are missing or unknown, if strict; the message lists them, and nothing is changed.
            InvalidArgumentError: A shape or dtype differs; nothing is changed.
        """
        self._eager().set_state_dict(state, strict)

    def load_state_dict(self, state: Mapping[str, Any], strict: bool = True) -> None:
        """The same as `set_state_dict`."""
        self.set_state_dict(state, strict)

    @property
    def updates(self) -> Any:
        """The oprack.nn.Updates that step runs. Raises PreconditionNotMetError when there are no parameters."""
        return self._eager()

    def updates_in_parts(self, pieces: Any, ranks: Any, owner: str) -> Any:
        """The steps on this rank's elements of the parameters, without state; see `oprack.nn.PartUpdates.of`."""
        from oprack.nn import PartUpdates

        return PartUpdates.of(self._eager(), pieces, ranks, owner)

    # For oprack.nn.Updates ----------------------------------------------------------------------------------------
    @property
    def schedule(self) -> CosineAnnealingDecay | None:
        """The scheduler of the learning rate; None when it is a number."""
        return self._learning_rate if callable(self._learning_rate) else None

    @property
    def rate_variable(self) -> Variable:
        """The variable of the learning rate in the program that was written last."""
        return self._rate_var

    @property
    def clips(self) -> list[GradientClip]:
        """Every clip that it applies, those of groups included."""
        given = [self.grad_clip, *(settings.get("grad_clip") for _, settings in self._groups)]
        return [clip for clip in given if clip is not None]

    def clip_of(self, parameter: Any) -> GradientClip | None:
        """The clip of a parameter: that of its group, or the optimizer's."""
        found: GradientClip | None = self._of(parameter).grad_clip
        return found

    def without_norm_clips(self) -> Self:
        """A copy that leaves clipping by norms to whoever knows the norms."""

        def kept(clip: GradientClip | None) -> GradientClip | None:
            return clip if clip is not None and clip.elementwise else None

        twin = copy.copy(self)
        twin.grad_clip = kept(self.grad_clip)
        twin._groups = [
            (params, settings | {"grad_clip": kept(settings["grad_clip"])} if "grad_clip" in settings else settings)
            for params, settings in self._groups
        ]
        return twin

    def forget_program(self) -> None:
        """Forget the variables of the last program, before appending to another one."""
        self._program: Any = None
        self._rate_var = None
        self._rates: dict[float, Any] = {}
        self._state: dict[tuple[str, str], Any] = {}
        self._updates = None
