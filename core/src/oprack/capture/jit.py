"""jit: runs a function of tensors as a program, which is captured at the first call for each kind of inputs."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from oprack.autodiff import gradients
from oprack.autograd.custom_rule import CustomRule, attach
from oprack.capture.call_form import joined_call, split_call
from oprack.capture.to_program import ExportedProgram, InputSpec, filled, to_program
from oprack.desc import VarDesc
from oprack.errors import InvalidArgumentError
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.devices import context, executor
from oprack.interpreter.modes import current_mode
from oprack.layers.variable import Variable
from oprack.nn.module import Module
from oprack.packs.spelling import instead
from oprack.program import Program
from oprack.runtime.prepared import PreparedProgram
from oprack.tensor import LoDTensor, Place, Scope
from oprack.tensor.eager_tensor import new_tensor
from oprack.tensor.kinds import KINDS
from oprack.tensor.meta import CPU, meta_of_value
from oprack.types import COMPLEX, FLOATS, GRAD_SUFFIX, HALF_FLOATS, dtype_name

_PROGRAMS = 32  # per function; the one that was compiled first is dropped


class JitProgram:
    """A captured function at a place, and the program of its gradients, which reads forward values that were saved.

    Args:
        exported: The function as a program.
        place: Where it runs.
        wrt: Names of the inputs and captured tensors that require gradients.
        name: The name of the function, for messages.
    """

    def __init__(self, exported: ExportedProgram, place: Place, wrt: Sequence[str], name: str) -> None:
        self.exported, self.place, self.wrt, self.name = exported, place, list(wrt), name
        self._executor = executor(place, deterministic=current_mode().deterministic)
        forward = exported.program
        block = forward.global_block()
        self.cotangents: list[str] = []
        self.kept: list[str] = []
        self.outputs = list(exported.fetch_names)
        self._gradients: list[str | None] = []
        self._backward: PreparedProgram | None = None
        self._is_set = False  # whether the captured tensors' values are in the scope
        written = {n for op in block.ops for n in op.output_arg_names()}
        self._changed = [n for n in exported.tensors if n in written]
        if self.wrt:
            self._write_backward(forward, set(exported.feed_names) | written)
        self._forward = self._executor.prepare(forward.desc)

    def _write_backward(self, forward: Program, values: set[str]) -> None:
        joint = forward.clone()
        block = joint.global_block()
        count = len(block.ops)
        targets = [n for n in self.outputs if _is_differentiable(v := block.var(n)) and not v.stop_gradient]
        if not targets:
            self.wrt = []  # no output has a gradient
            return
        for n in targets:
            like = block.var(n)
            name = f"{n}{GRAD_SUFFIX}@given"
            block.create_var(name, dtype=like.dtype, shape=like.shape, lod_level=like.lod_level)
            self.cotangents.append(name)
        self.targets = targets
        self._gradients = gradients(targets, self.wrt, self.cotangents, block=block)
        read = {n for op in block.ops[count:] for n in op.input_arg_names()}
        self.kept = sorted(n for n in read & values if n not in self.exported.tensors)
        # The forward program has run by then, and saves the values that the gradient ops read.
        block.ops = block.ops[count:]
        self._backward = self._executor.prepare(joint.desc)
        self._program = joint  # the executor keeps a prepared program only while its program is alive

    # Running ----------------------------------------------------------------------------------------------------------
    def run(self, feeds: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run the forward program; returns (outputs, values saved for the gradients), each by name."""
        # The values of captured tensors may have been replaced since, for example by an optimizer.
        self.exported.refresh()
        self._is_set = True
        local = self.exported.scope.new_scope()
        try:
            self._forward.block(0).create_variables(local)
            for name, value in feeds.items():
                local.var(name).value = value
            self._executor.run_prepared(self._forward, local, keep=[*self.outputs, *self.kept])
            outputs = {n: _value(local, n) for n in self.outputs}
            kept = {n: _value(local, n) for n in self.kept}
        finally:
            self.exported.scope.delete_scope(local)
        for name in self._changed:
            new = self.exported.scope.get_var(name).get()
            self.exported.tensors[name]._overwrite(new.array, None, self.name)
        return outputs, kept

    def run_backward(self, kept: dict[str, Any], given: Sequence[Any]) -> list[Any]:
        """Compute the gradients of `wrt`, None where none flows, from saved values and the gradients of the targets."""
        assert self._backward is not None
        if not self._is_set:
            self.exported.refresh()
        local = self.exported.scope.new_scope()
        try:
            self._backward.block(0).create_variables(local)
            for name, value in (kept | dict(zip(self.cotangents, given, strict=True))).items():
                local.var(name).value = value
            names = [n for n in self._gradients if n is not None]
            self._executor.run_prepared(self._backward, local, keep=names)
            return [None if n is None else _value(local, n) for n in self._gradients]
        finally:
            self.exported.scope.delete_scope(local)
            # An optimizer may write to memory that the tensors alone have, and nothing that plans remember of a run.
            for name in self.exported.tensors:
                var = self.exported.scope.var(name)
                if isinstance(var.value, LoDTensor):
                    var.value.array = None
                var.value = None
            self._is_set = False


def _is_differentiable(var: VarDesc) -> bool:
    """Whether a variable has a floating or complex dtype."""
    return var.dtype is not None and dtype_name(var.dtype) in FLOATS | HALF_FLOATS | COMPLEX


def _value(scope: Scope, name: str) -> Any:
    var = scope.find_var(name)
    return None if var is None else var.value


def _as_tensor(value: Any) -> Tensor:
    """Wrap a value that a program computed in a tensor, without a copy."""
    if not isinstance(value, LoDTensor):
        return new_tensor(value, meta_of_value(value))
    return new_tensor(value.array, meta_of_value(value.array, value.place, len(value.lod)), value.lod)


class JitFunction:
    """The result of `jit`: a callable that captures a function, caches its programs and runs them.

    Args:
        function: The function, or a Module.
        specs: Specs of the inputs, in which dims may vary; default: each new shape gets its own program.
    """

    def __init__(self, function: Callable[..., Any], specs: Sequence[Any] | None) -> None:
        self._function = function
        self.specs = None if specs is None else [InputSpec.of(s) for s in specs]
        self._compiled: OrderedDict[Any, tuple[JitProgram, Any]] = OrderedDict()
        functools.update_wrapper(self, function, updated=())
        self.__name__ = getattr(function, "__name__", type(function).__name__)

    def __getattr__(self, name: str) -> Any:
        """What the function has: of a Module parameters(), eval(), state_dict() and its parts."""
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._function, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(n for n in dir(self._function) if not n.startswith("_"))})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call with tensors or arrays; None, text and keyword arguments of other kinds belong to the program."""
        if any(isinstance(a, Variable) for a in (*args, *kwargs.values())):
            return self._function(*args, **kwargs)
        form = None
        if kwargs or any(a is None or isinstance(a, str) for a in args):
            args, form = split_call(args, kwargs, self.__name__)
        tensors = [a if isinstance(a, Tensor) else to_tensor(a) for a in args]
        mode = current_mode()
        grad = mode.grad
        training = self._function.training if isinstance(self._function, Module) else None
        shapes = None if self.specs is not None else tuple([x.shape for x in tensors])
        # All that the captured program depends on: modes, dtypes, places and, unless specs leave them open, shapes.
        key = (grad, mode.deterministic, training, tuple([x._meta for x in tensors]), shapes, form)
        compiled = self._compiled.get(key)
        if compiled is None:
            compiled = self._compiled[key] = self._compile(tensors, grad, form)
            if len(self._compiled) > _PROGRAMS:
                self._compiled.popitem(last=False)
        return self._run(*compiled, tensors)

    def _compile(self, tensors: Sequence[Tensor], grad: bool, form: Any) -> tuple[JitProgram, Any]:
        specs = self.specs or [
            InputSpec(x.shape, str(x.dtype), None, len(x._lod), KINDS[x._meta.container]) for x in tensors
        ]
        if len(specs) != len(tensors):
            raise InvalidArgumentError(
                f"{self.__name__}: got {len(tensors)} tensors; expected {len(specs)}, as its specs"
            )
        specs = [InputSpec(s.shape, s.dtype, f"x{i}", s.lod_level, s.kind) for i, s in enumerate(specs)]
        function = self._function if form is None else joined_call(self._function, form)
        exported = to_program(_with_gradients(function, [x.requires_grad for x in tensors]), specs)
        names = [n for n, x in zip(exported.feed_names, tensors, strict=True) if x.requires_grad]
        names += [n for n, t in exported.tensors.items() if t.requires_grad]
        place = next((t.place for t in (*tensors, *exported.tensors.values())), CPU)
        compiled = JitProgram(exported, place, names if grad else (), self.__name__)
        rule = CustomRule(self.__name__, len(compiled.targets), _backward_of(compiled)) if compiled.wrt else None
        return compiled, rule

    def _run(self, compiled: JitProgram, rule: Any, arguments: Sequence[Tensor]) -> Any:
        exported = compiled.exported
        outputs, kept = compiled.run({n: x.value for n, x in zip(exported.feed_names, arguments, strict=True)})
        tensors = {n: _as_tensor(v) for n, v in outputs.items()}
        if rule is not None and compiled.targets:
            by_name = dict(zip(exported.feed_names, arguments, strict=True)) | exported.tensors
            shapes = [(tensors[n].shape, tensors[n]._meta) for n in compiled.targets]
            attach(rule, [by_name[n] for n in compiled.wrt], [tensors[n] for n in compiled.targets], (kept, shapes))
        return filled(exported.structure, tensors)


def _with_gradients(function: Callable[..., Any], requires_grad: Sequence[bool]) -> Callable[..., Any]:
    def call(*inputs: Any) -> Any:
        for x, required in zip(inputs, requires_grad, strict=True):
            x.stop_gradient = not required
        return function(*inputs)

    return call


def _backward_of(compiled: JitProgram) -> Callable[[Any, Sequence[Any]], Sequence[Any]]:
    def backward(saved: Any, cotangents: Sequence[Any]) -> Sequence[Any]:
        kept, shapes = saved
        values = []
        for g, (shape, meta) in zip(cotangents, shapes, strict=True):
            if g is None:
                zeros = context(meta.place).xp.zeros(shape, meta.dtype)
                values.append(LoDTensor(zeros, place=meta.place))
            else:
                values.append(g.value)
        return [None if v is None else _as_tensor(v) for v in compiled.run_backward(kept, values)]

    return backward


class Jit:
    """Run a function as a program: `fast = oprack.jit(f)`, or as a decorator. `jit.to_static` is the same.

    Gradients flow through a call to its arguments and to the tensors that the function refers to. The result keeps the
    interface of a Module: parameters(), eval(), state_dict() and its parts.
    """

    __name__ = "jit"

    def __call__(self, function: Callable[..., Any] | None = None, *, specs: Sequence[Any] | None = None) -> Any:
        """Make a JitFunction.

        Args:
            function: A function of tensors, or a Module. Its Python code runs only at the first call for each
                combination of dtypes, places, shapes and arguments that are no tensors.
            specs: InputSpecs in which dims may vary, so that one program serves all shapes.

        Returns:
            A JitFunction, which is called like the function; without a function, a decorator.
        """
        if function is None:
            return lambda f: JitFunction(f, specs)
        return JitFunction(function, specs)

    to_static = __call__

    def __getattr__(self, name: str) -> Any:
        advice = "" if name.startswith("_") else instead("jit", name)
        raise AttributeError(f"oprack.jit has no attribute {name!r}{advice}")


jit = Jit()
