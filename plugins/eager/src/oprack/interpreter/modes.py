"""What an eager call depends on beside its arguments: whether gradients are recorded, and what is wrapped around it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextvars import Token
from typing import TYPE_CHECKING, Any

from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.interpreter.base import Interpreter
from oprack.interpreter.current import CURRENT
from oprack.kernel import ANY_KERNEL, DETERMINISTIC_KERNELS, PLAIN_KERNELS, KernelRules
from oprack.kernel.kernel_map import switched_on
from oprack.runtime.profiler import PROFILERS

if TYPE_CHECKING:
    from oprack.interpreter.op_expr import OpExpr

Wrapper = Callable[[Interpreter], Interpreter]
_PROPERTIES = ("grad", "static", "wrappers", "deterministic", "reference")
_RULES = {  # by deterministic, reference
    (False, False): ANY_KERNEL,
    (True, False): DETERMINISTIC_KERNELS,
    (False, True): PLAIN_KERNELS,
    (True, True): KernelRules(deterministic=True, plain=True),
}


_INTERPRETERS: dict[str, Callable[..., Interpreter]] = {}


def register_interpreter(name: str, make: Callable[..., Interpreter]) -> None:
    """Let modes use an interpreter. The last registration of a name counts.

    Args:
        name: "eager", "lazy" or "autograd".
        make: Makes it: "eager" for the KernelRules of a mode, "lazy" without arguments, "autograd" around one of these.
    """
    _INTERPRETERS[name] = make


def _made(name: str, *given: Any) -> Interpreter:
    if name not in _INTERPRETERS:
        raise NotFoundError(
            f"no interpreter {name!r} is registered; import oprack.functional.tensor, which registers those of the core"
        )
    return _INTERPRETERS[name](*given)


class Mode:
    """grad: calls with tensors that want gradients are recorded. static: calls without tensors append to the program.

    wrappers: put around the interpreter, the first one innermost. interpreter: runs or appends calls. deterministic:
    kernels that can't promise the same bits on every run are left out. reference: each call runs on the reference path,
    by a kernel of no library. rules: which kernels calls may run.
    """

    __slots__ = ("_properties", "deterministic", "grad", "interpreter", "reference", "rules", "static", "wrappers")

    def __init__(
        self, grad: bool, static: bool, wrappers: tuple[Wrapper, ...], deterministic: bool, reference: bool
    ) -> None:
        self._properties = grad, static, wrappers, deterministic, reference
        self.grad, self.static, self.wrappers = grad, static, wrappers
        self.deterministic, self.reference = deterministic, reference
        self.rules = _RULES[deterministic, reference]

    def __getattr__(self, name: str) -> Interpreter:
        """The interpreter, put together when the first call asks for it."""
        if name != "interpreter":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        found = _made("lazy") if self.static else _made("eager", self.rules)
        if self.grad:
            found = _made("autograd", found)
        for wrap in self.wrappers:
            found = wrap(found)
        self.interpreter = found
        return found

    def but(self, **changes: Any) -> Mode:
        """A mode with these properties changed and all others as here."""
        return mode(*[changes.get(name, value) for name, value in zip(_PROPERTIES, self._properties, strict=True)])

    def __repr__(self) -> str:
        on = [name for name in ("static", "deterministic", "reference") if getattr(self, name)]
        around = [getattr(w, "__name__", None) or repr(w) for w in self.wrappers]
        return f"<Mode {' '.join(['grad' if self.grad else 'no_grad', *on, *(f'in {w}' for w in around)])}>"


# Modes are keys of the tables of generated calls and compared by identity, so equal ones are the same object.
@functools.lru_cache(maxsize=64)
def mode(
    grad: bool = True,
    static: bool = False,
    wrappers: tuple[Wrapper, ...] = (),
    deterministic: bool = False,
    reference: bool = False,
) -> Mode:
    """The mode with these properties, the same object while it is in use."""
    return Mode(grad, static, wrappers, deterministic, reference)


def current_mode() -> Mode:
    """The mode of this thread or task."""
    found: Mode | None = CURRENT.get()
    if found is None:
        found = mode(deterministic=switched_on("OPRACK_DETERMINISTIC"), reference=switched_on("OPRACK_REFERENCE"))
        # A context variable: threads and asyncio tasks have modes of their own.
        CURRENT.set(found)
    return found


def apply(expr: OpExpr, *tensors: Any) -> Any:
    """Apply an expression in the current mode: run it, record it for gradients, or append it to a program.

    Args:
        expr: The op with its attributes, as `OpExpr.of` makes it.
        tensors: One for each input, those of a list one after the other.

    Returns:
        What the expression asks for.

    Raises:
        InvalidArgumentError: There are more or fewer.
    """
    if len(tensors) != (count := sum(n for _, n in expr.inputs)):
        raise InvalidArgumentError(f"{expr!r} was applied to {len(tensors)} tensors; expected {count}")
    return current_mode().interpreter.apply(expr, tensors)


class ModeGuard:
    """Changes the mode inside a with block, or while a decorated function runs."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        # A stack, since one guard may be entered again inside itself.
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
        # A guard per call: a decorated function may call itself, or run in several threads.
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


class set_grad_enabled(ModeGuard):
    """Calls are recorded, or not, inside: `with oprack.set_grad_enabled(training):`, or as a decorator.

    Args:
        mode: Whether they are.
    """

    def __init__(self, mode: bool) -> None:
        super().__init__(grad=bool(mode))


class static_mode(ModeGuard):
    """Calls without tensors append to the current program, as those with Variables always do."""

    def __init__(self) -> None:
        super().__init__(static=True)


class deterministic(ModeGuard):
    """Only kernels that give the same bits on every run: `with oprack.deterministic():`, or a decorator.

    Gradients are computed by the mode in which `backward` is called. A call for which no such kernel is left is a
    KernelNotFoundError that lists them.

    Args:
        on: False allows every kernel again, inside a block that does not.
    """

    def __init__(self, on: bool = True) -> None:
        super().__init__(deterministic=bool(on))


class reference(ModeGuard):
    """Every op runs by itself, by the plain kernel of its pack: `with oprack.reference():`, or a decorator.

    This holds for eager calls, gradients, jitted functions, steps of optimizers, programs and predictors of this
    thread: no generated code, plan or specialized kernel runs, and a kernel of a library only where no other fits. So a
    breakpoint in a kernel is met each time. A predictor that is created inside runs the ops of the model, without
    passes; one that was created outside, those that its passes left. OPRACK_REFERENCE=1 does so everywhere.
    """

    def __init__(self) -> None:
        super().__init__(reference=True)

    def __enter__(self) -> ModeGuard:
        PROFILERS.stack.insert(0, None)
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        PROFILERS.stack.remove(None)


class wrapped(ModeGuard):
    """Calls go through `wrapper(interpreter)` inside the with block.

    Args:
        wrapper: Makes an interpreter around another.
    """

    def __init__(self, wrapper: Wrapper) -> None:
        super().__init__()
        self._wrapper = wrapper

    def _changed(self, now: Mode) -> Mode:
        return now.but(wrappers=(*now.wrappers, self._wrapper))


def is_grad_enabled() -> bool:
    """Whether calls are recorded now.

    Returns:
        False inside `no_grad`.
    """
    return current_mode().grad
