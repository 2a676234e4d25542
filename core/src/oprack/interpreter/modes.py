"""What an eager call depends on beside its arguments: whether gradients are recorded, and what is wrapped around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import Token
from typing import Any

from oprack.interpreter.base import Interpreter
from oprack.interpreter.current import CURRENT

Wrapper = Callable[[Interpreter], Interpreter]


class Mode:
    """grad: calls with tensors that want gradients are recorded. static: calls without tensors append to the program.

    wrappers: put around the interpreter, the first one innermost. interpreter: runs or appends calls.
    """

    __slots__ = ("grad", "interpreter", "static", "wrappers")

    def __init__(self, grad: bool, static: bool, wrappers: tuple[Wrapper, ...]) -> None:
        from oprack.interpreter.autograd import AutogradInterpreter
        from oprack.interpreter.eager import EAGER
        from oprack.interpreter.lazy import LazyInterpreter

        self.grad, self.static, self.wrappers = grad, static, wrappers
        inner: Interpreter = LazyInterpreter() if static else EAGER
        found: Interpreter = AutogradInterpreter(inner) if grad else inner
        for wrap in wrappers:
            found = wrap(found)
        self.interpreter = found

    def but(self, **changes: Any) -> Mode:
        """The mode that differs in these properties."""
        return mode(*(changes.get(name, getattr(self, name)) for name in ("grad", "static", "wrappers")))


@functools.lru_cache(maxsize=64)
def mode(grad: bool = True, static: bool = False, wrappers: tuple[Wrapper, ...] = ()) -> Mode:
    """The mode with these properties, the same object while it is in use."""
    return Mode(grad, static, wrappers)


def current_mode() -> Mode:
    """The mode of this thread or task."""
    found: Mode | None = CURRENT.get()
    if found is None:
        found = mode()
        CURRENT.set(found)
    return found


class ModeGuard:
    """Changes the mode inside a with block, or while a decorated function runs."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self._tokens: list[Token[Mode | None]] = []

    def __enter__(self) -> ModeGuard:
        self._tokens.append(CURRENT.set(self._changed(current_mode())))
        return self

    def _changed(self, now: Mode) -> Mode:
        return now.but(**self._changes)

    def __exit__(self, *_: object) -> None:
        CURRENT.reset(self._tokens.pop())

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            with type(self)._again(self):
                return function(*args, **kwargs)

        return run

    def _again(self) -> ModeGuard:
        guard = object.__new__(type(self))
        guard.__dict__.update(self.__dict__, _tokens=[])
        return guard


class no_grad(ModeGuard):
    """Nothing is recorded inside: `with oprack.no_grad():`, or `@oprack.no_grad()` on a function."""

    def __init__(self) -> None:
        super().__init__(grad=False)


class enable_grad(ModeGuard):
    """Calls are recorded again, inside a no_grad."""

    def __init__(self) -> None:
        super().__init__(grad=True)


class static_mode(ModeGuard):
    """Calls without tensors append to the current program, as those with Variables always do."""

    def __init__(self) -> None:
        super().__init__(static=True)


class wrapped(ModeGuard):
    """Calls go through `wrapper(interpreter)` inside the with block."""

    def __init__(self, wrapper: Wrapper) -> None:
        super().__init__()
        self._wrapper = wrapper

    def _changed(self, now: Mode) -> Mode:
        return now.but(wrappers=(*now.wrappers, self._wrapper))


def is_grad_enabled() -> bool:
    """Whether calls are recorded now."""
    return current_mode().grad
