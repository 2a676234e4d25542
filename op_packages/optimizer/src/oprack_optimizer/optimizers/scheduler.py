"""LRScheduler: the base of learning rates that change with the step."""

from __future__ import annotations

import math
from typing import Any, Self

from oprack.errors import InvalidArgumentError
from oprack.names.spellings import ABSENT, InitSignature, accept_other_names, instead, require_keywords, same


class LRScheduler:
    """Base of the schedulers; a subclass defines `get_lr` in terms of `base_lr` and `last_epoch`.

    Args:
        learning_rate: The initial learning rate.
        last_epoch: The step before the first one; -1 starts at step 0.
    """

    state_names: tuple[str, ...] = ("last_epoch", "last_lr")
    """The attributes that make up the state; JSON must be able to represent their values."""
    __signature__ = InitSignature()

    def __new__(cls, *args: Any, **options: Any) -> Self:
        if options:
            require_keywords(cls, options)
        return super().__new__(cls)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        accept_other_names(cls)

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1) -> None:
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, int | float):
            raise InvalidArgumentError(f"{type(self).__name__}: learning_rate is {learning_rate!r}; expected a number")
        if learning_rate < 0 or not math.isfinite(learning_rate):
            raise InvalidArgumentError(
                f"{type(self).__name__}: learning_rate is {learning_rate}; expected a finite number of at least 0"
            )
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self._start()

    def _start(self) -> None:
        self.last_epoch += 1
        self.last_lr = float(self.get_lr())

    def __call__(self) -> float:
        """The learning rate of this step."""
        return self.last_lr

    def get_lr(self) -> float:
        """Compute the learning rate of step `last_epoch`."""
        raise NotImplementedError(f"{type(self).__name__} must define get_lr(self), the learning rate of last_epoch")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step, or to step `epoch`."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else int(epoch)
        self.last_lr = float(self.get_lr())

    def state_dict(self) -> dict[str, Any]:
        """The state, of values that JSON can represent."""
        return {name: getattr(self, name) for name in self.state_names}

    def set_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state. Raises InvalidArgumentError, and changes nothing, when an attribute is missing."""
        missing = [name for name in self.state_names if name not in state]
        if missing:
            raise InvalidArgumentError(
                f"{type(self).__name__}: the state has no {', '.join(missing)}; expected the state_dict of a "
                f"{type(self).__name__}"
            )
        for name in self.state_names:
            setattr(self, name, state[name])

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """The same as `set_state_dict`."""
        self.set_state_dict(state)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (other := same("scheduler", name, self)) is not ABSENT:
            return other
        advice = "" if name.startswith("_") else instead("scheduler", name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{advice}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.last_lr:g} at step {self.last_epoch}>"


accept_other_names(LRScheduler)


def require_positive(owner: LRScheduler, **values: Any) -> None:
    """Raise InvalidArgumentError for an argument of a scheduler that is no number greater than 0."""
    for name, value in values.items():
        if not isinstance(value, int | float) or not value > 0:
            raise InvalidArgumentError(f"{type(owner).__name__}: {name} is {value!r}; expected a number greater than 0")
