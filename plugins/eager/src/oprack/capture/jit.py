"""jit: runs a function of tensors as a program, which is captured at the first call for each kind of inputs."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from oprack.cache import Cache
from oprack.capture.call_form import SplitCall, split_call
from oprack.capture.guards import Watch
from oprack.capture.jit_program import MISSED, JitProgram
from oprack.capture.replay import Replay
from oprack.capture.to_program import InputSpec, to_program
from oprack.eager_tensor.meta import CPU
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.current import current_or_none
from oprack.interpreter.modes import current_mode
from oprack.io.export import save_inference_model
from oprack.layers.variable import Variable
from oprack.names.spellings import ABSENT, instead, same
from oprack.nn.module import Module
from oprack.tensor.kinds import KINDS

# Programs that a function keeps at least: for so many kinds of calls, and of each for so many states of what it reads.
_PROGRAMS = 256
_VARIANTS = 8


class JitFunction:
    """The result of `jit`: a callable that captures a function, caches its programs and runs them.

    Args:
        function: The function, or a Module.
        specs: Specs of the inputs, in which dims may vary; default: each new shape gets its own program.
    """

    def __init__(self, function: Callable[..., Any], specs: Sequence[Any] | None) -> None:
        self._function = function
        self.specs = None if specs is None else [InputSpec.of(s) for s in specs]
        self._by_shape = specs is None
        self._programs = Cache(_PROGRAMS, "programs")
        self._has_warned = False
        functools.update_wrapper(self, function, updated=())
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __getattr__(self, name: str) -> Any:
        """What the function has: of a Module parameters(), eval(), state_dict() and its parts."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._function, name)

    def __repr__(self) -> str:
        return f"<jit of {self.__name__}, captured for {len(self._programs)} kinds of calls>"

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(n for n in dir(self._function) if not n.startswith("_"))})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with tensors or arrays; None, text and keyword arguments of other kinds belong to the program."""
        call, tensors, key = None, args, None
        if not kwargs:
            try:
                key = _key_maker(len(args), self._by_shape)(*args)
            except AttributeError:  # something else than tensors is among them
                pass
        if key is None:
            if any([isinstance(a, Variable) for a in (*args, *kwargs.values())]):
                return self._function(*args, **kwargs)
            if kwargs or any([a is None or isinstance(a, str) for a in args]):
                args, call = split_call(args, kwargs, self.__name__)
            tensors = tuple([a if isinstance(a, Tensor) else to_tensor(a) for a in args])
            key = _key_maker(len(tensors), self._by_shape)(*tensors)
            key = key if call is None else (*key, call.key)
        known: tuple[JitProgram | Replay, ...] = self._programs[key] or ()
        for program in known:
            result = program.call(True, *tensors)
            if result is not MISSED:
                return result
        program = self._compile(tensors, call)
        # No lock: when two threads add programs at once, one of them is captured again some time.
        kept = (program, *known[: _VARIANTS - 1])
        self._programs.keep(key, kept, sum(p.nbytes for p in kept))
        if len(known) == _VARIANTS:
            self._warn(known[-1].guards.changed())
        return program.call(False, *tensors)

    def _warn(self, changed: str) -> None:
        """Warn, once, that calls capture the function again and again."""
        if changed and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{self.__name__} was captured {_VARIANTS + 1} times for calls that are alike, since {changed} changes "
                "between them; pass it as an argument, or a number as a tensor",
                CaptureWarning,
                stacklevel=3,
            )

    def _compile(self, tensors: Sequence[Tensor], call: SplitCall | None) -> JitProgram | Replay:
        mode = current_mode()
        specs = self.specs or [
            InputSpec(x.shape, str(x.dtype), None, len(x._lod), KINDS[x._meta.container]) for x in tensors
        ]
        if len(specs) != len(tensors):
            raise InvalidArgumentError(
                f"{self.__name__}: got {len(tensors)} tensors; expected {len(specs)}, as its specs"
            )
        specs = [InputSpec(s.shape, s.dtype, f"x{i}", s.lod_level, s.kind) for i, s in enumerate(specs)]
        function = self._function if call is None else call.joined(self._function)
        with Watch(self._function) as watch:
            exported = to_program(_with_gradients(function, [x.requires_grad for x in tensors]), specs, on_ranks=True)
        layouts = [t._meta.layout for t in (*tensors, *exported.tensors.values()) if t._meta.layout is not None]
        if layouts:
            replay = Replay(exported, watch.guards(), self.__name__, mode)
            what = f"what jit captured of {self.__name__}, whose branches and settings must not depend on the rank"
            layouts[0].placement.agree(what, replay.digest())
            return replay
        names = [n for n, x in zip(exported.feed_names, tensors, strict=True) if x.requires_grad]
        names += [n for n, t in exported.tensors.items() if t.requires_grad]
        place = next((t.place for t in (*tensors, *exported.tensors.values())), CPU)
        wrt = names if mode.grad else ()
        metas = [x._meta.with_tracking for x in tensors]
        return JitProgram(exported, watch.guards(), place, wrt, self.__name__, mode, metas, self._by_shape)


@functools.lru_cache(maxsize=64)
def _key_maker(count: int, by_shape: bool) -> Callable[..., tuple[Any, ...]]:
    """Code for what is known before the function runs: mode, dtypes and places of so many tensors, and their shapes.

    What the function reads beside these, the guards of its programs know.
    """
    tensors = [f"x{i}" for i in range(count)]
    parts = [
        "current_or_none() or current_mode()",
        *[f"{x}._meta.with_tracking" for x in tensors],
    ]
    if by_shape:
        # Of a global tensor the logical shape, which all ranks know.
        parts += [f"{x}._value.shape if {x}._meta.bare else {x}.shape" for x in tensors]
    known = {"current_or_none": current_or_none, "current_mode": current_mode}
    return eval(f"lambda {', '.join(tensors)}: ({', '.join(parts)},)", known)  # type: ignore[no-any-return]


def _with_gradients(function: Callable[..., Any], requires_grad: Sequence[bool]) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        for x, required in zip(inputs, requires_grad, strict=True):
            x.stop_gradient = not required
        return function(*inputs)

    return call


class CaptureWarning(UserWarning):
    """A jitted function is captured again and again."""


class Jit:
    """Run a function as a program: `fast = oprack.jit(f)`, or as a decorator. `jit.to_static` is the same.

    Gradients flow through a call to its arguments and to the tensors that the function refers to. The result keeps the
    interface of a Module: parameters(), eval(), state_dict() and its parts.

    A call uses a program only while what the function read is as it was when it was captured: members, modes and
    attributes of Modules, requires_grad of tensors, closures, globals, and what is put around calls, such as autocast.
    What is compared and what is not: docs/how_to/jit.md. Several threads may call the result.
    """

    __name__ = "jit"

    def __call__(
        self,
        function: Callable[..., Any] | None = None,
        *,
        specs: Sequence[Any] | None = None,
        input_spec: Sequence[Any] | None = None,
    ) -> Any:
        """Make a JitFunction.

        Args:
            function: A function of tensors, or a Module. Its Python code runs only at the first call for each
                combination of dtypes, places, shapes, arguments that are no tensors, modes, and what it read.
            specs: InputSpecs in which dims may vary, so that one program serves all shapes. The size of such a dim,
                x.shape[i], is a number of the run: ops take it, and what Python would need its value for is refused.
            input_spec: Paddle 2's name of specs.

        Returns:
            A JitFunction, which is called like the function; without a function, a decorator.
        """
        specs = input_spec if specs is None else specs
        if function is None:
            return lambda f: JitFunction(f, specs)
        return JitFunction(function, specs)

    to_static = __call__

    def save(self, layer: Any, path: str | os.PathLike[str], input_spec: Sequence[Any] | None = None) -> None:
        """Write a function of tensors, or a Module, as an inference model: `path`.pdmodel and `path`.pdiparams.

        A Module is saved as it is in evaluation, and trains on as before. `oprack.inference`, Paddle and `oprack run`
        read the files.

        Args:
            layer: A function, a Module, or what `jit` made of one.
            path: The files, without their suffixes.
            input_spec: InputSpecs of its inputs; default: those that `jit` was given.

        Raises:
            InvalidArgumentError: There are no specs.
        """
        if input_spec is None and getattr(layer, "specs", None) is None:
            raise InvalidArgumentError(
                "jit.save: the inputs are not known; pass input_spec=[oprack.InputSpec([None, 4])], with a shape for "
                "each input of forward"
            )
        function: Any = layer._function if isinstance(layer, JitFunction) else layer
        modules = list(function.modules()) if isinstance(function, Module) else []
        modes = [m.training for m in modules]
        try:
            for module in modules:
                module.training = False
            traced = to_program(function, layer.specs if input_spec is None else input_spec)
        finally:
            for module, mode in zip(modules, modes, strict=True):
                module.training = mode
        save_inference_model(path, traced.program, traced.feed_names, traced.fetch_names, traced.scope)

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and (other := same("jit", name)) is not ABSENT:
            return other
        advice = "" if name.startswith("_") else instead("jit", name)
        raise AttributeError(f"oprack.jit has no attribute {name!r}{advice}")


jit = Jit()
