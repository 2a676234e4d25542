"""JitProgram: a captured function at a place, and the program of its gradients, as functions of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from threading import get_ident
from typing import Any

from oprack.autodiff import gradients
from oprack.autograd.custom_rule import CustomRule, attach
from oprack.capture.guards import Guards
from oprack.capture.memory import Sharing
from oprack.capture.to_program import ExportedProgram, filled
from oprack.desc import OpDesc, VarDesc
from oprack.errors import UnimplementedError
from oprack.functional.tensor import Tensor
from oprack.interpreter.devices import context, executor
from oprack.interpreter.modes import Mode
from oprack.interpreter.wrappers import FiniteCheck
from oprack.packs.manager import default_manager
from oprack.runtime.prepared import PreparedProgram, program_bytes
from oprack.runtime.profiler import current_profiler
from oprack.runtime.run_context import Checks
from oprack.runtime.steady import SteadyRun, steady_run
from oprack.tensor import LoDTensor, Place, Scope
from oprack.tensor.eager_tensor import new_tensor, share_memory
from oprack.tensor.meta import meta_of_value
from oprack.types import COMPLEX, FLOATS, GRAD_SUFFIX, HALF_FLOATS, VarType, dtype_name

# Runs at these values after which a program that did not become a SteadyRun is taken for one that never does; and how
# many SteadyRuns there may be, each for a thread and shapes.
_TRIES, _STEADY = 4, 32


class Captured:
    """The values of captured tensors, and a scope that holds them, which runs read and nobody writes to.

    Args:
        values: The arrays.
        shapes: Their shapes.
        scope: The scope.

    Attributes:
        runs: How many there were.
        steady: For a thread and shapes of arguments, what a run comes to.
    """

    __slots__ = ("runs", "scope", "shapes", "steady", "values")

    def __init__(self, values: list[Any], shapes: list[Any], scope: Scope) -> None:
        self.values, self.scope = values, scope
        self.shapes = shapes
        self.runs = 0
        self.steady: dict[Any, SteadyRun] = {}


class JitProgram:
    """A captured function at a place, and the program of its gradients, which reads forward values that were saved.

    Each call has its values to itself, so threads may share it.

    Args:
        exported: The function as a program.
        guards: What the function read beside tensors.
        place: Where it runs.
        wrt: Names of the inputs and captured tensors that require gradients.
        name: The name of the function, for messages.
        mode: The mode in which it was captured.
    """

    def __init__(
        self, exported: ExportedProgram, guards: Guards, place: Place, wrt: Sequence[str], name: str, mode: Mode
    ) -> None:
        self.exported, self.guards, self.place, self.wrt, self.name = exported, guards, place, list(wrt), name
        checks = Checks(nan_inf=FiniteCheck in mode.wrappers)
        self._executor = executor(place, deterministic=mode.deterministic, checks=checks)
        self._feeds = exported.feed_names
        self._names, self._tensors = list(exported.tensors), list(exported.tensors.values())
        self._forms = _forms(self._tensors)
        self._shapes = [t.shape for t in self._tensors]
        self._last: Captured | None = None
        self.nbytes = program_bytes(exported.program.desc)  # for the budget of caches, with the gradients' program
        block = exported.program.global_block()
        written = {n for op in block.ops for n in op.output_arg_names()}
        self._changed = [n for n in self._names if n in written]
        self._changed_feeds = [i for i, n in enumerate(self._feeds) if n in written]
        # What is returned as it came is the caller's tensor itself, as in an eager call.
        given = {*self._feeds, *self._names}
        self._made = [n for n in exported.fetch_names if n not in given]
        self.targets: list[str] = []
        self.cotangents: list[str] = []
        self.kept: list[str] = []
        self._gradients: list[str | None] = []
        self._backward: PreparedProgram | None = None
        read = self._write_backward(given | written) if self.wrt else set[str]()
        self._sharing = Sharing(block, place, given, self._made, exported.owned)
        self._set_checks(read, given)
        self._outputs = [*self._made, *(n for n in self.kept if n not in given and n not in self._made)]
        self._forward = self._executor.prepare(exported.program.desc)
        inputs = [exported.program.global_block().var(n) for n in self._feeds]
        dense = all(v.type is VarType.LOD_TENSOR and not v.lod_level for v in inputs)
        self._may_be_steady = dense and place.kind == "cpu" and not (self._changed or self._changed_feeds)
        self.rule = CustomRule(name, len(self.targets), self._run_backward, self._needed) if self.targets else None

    def _write_backward(self, values: set[str]) -> set[str]:
        """Append the gradient ops to a copy of the program; returns the names whose values they read."""
        joint = self.exported.program.clone()
        block = joint.global_block()
        count = len(block.ops)
        self.targets = [n for n in self._made if _is_differentiable(v := block.var(n)) and not v.stop_gradient]
        if not self.targets:
            return set()  # no output has a gradient
        if self._changed_feeds:
            raise UnimplementedError(
                f"{self.name}: it changes argument {self._changed_feeds[0]} in place and gradients are recorded; "
                "return the new values instead, or call the function itself"
            )
        for n in self.targets:
            like = block.var(n)
            name = f"{n}{GRAD_SUFFIX}@given"
            block.create_var(name, dtype=like.dtype, shape=like.shape, lod_level=like.lod_level)
            self.cotangents.append(name)
        self._gradients = gradients(self.targets, self.wrt, self.cotangents, block=block)
        read = {n for op in block.ops[count:] for n in op.input_arg_names()}
        values_read = {n for op in block.ops[count:] for n in _values_read(op)}
        self.kept = sorted(n for n in read & values if n not in self.exported.tensors)
        # The forward program has run by then, and saves the values that the gradient ops read.
        block.ops = block.ops[count:]
        self._backward = self._executor.prepare(joint.desc)
        self.nbytes += program_bytes(joint.desc)
        self._program = joint  # the executor keeps a prepared program only while its program is alive
        return values_read

    def _set_checks(self, read: set[str], given: set[str]) -> None:
        """Note which tensors and outputs may not change in place before the gradients are computed."""
        root = self._sharing.root
        memory = {root(n) for n in read}
        # What the program itself writes to, such as running means, has values of its own in each call.
        self._guarded = [n for n in given if n in memory and n not in self._changed]
        self._guarded_results = [n for n in self._made if n not in self.targets and root(n) in memory]
        self._needed = [i for i, n in enumerate(self.targets) if root(n) in memory]

    # Running ----------------------------------------------------------------------------------------------------------
    def captured(self) -> Captured | None:
        """The captured tensors' values now; None when the program was captured in another state of what it reads."""
        if (
            self._forward.is_current(self._executor.manager)
            and _forms(self._tensors) == self._forms
            and self.guards.hold()
        ):
            found = self.values()
            return found if found.shapes == self._shapes else None
        return None

    def values(self) -> Captured:
        """The captured tensors' values now."""
        last, values = self._last, [t._value for t in self._tensors]
        if last is not None and all(map(is_, values, last.values)):
            return last
        found = self._last = Captured(values, [t.shape for t in self._tensors], self._scope())
        return found

    def _scope(self) -> Scope:
        scope = Scope()
        for name, tensor in self.exported.tensors.items():
            scope.var(name).value = tensor.value
        return scope

    def run(self, arguments: Sequence[Tensor], captured: Captured) -> Any:
        """Call the function.

        Args:
            arguments: Its tensors.
            captured: The values of the tensors that it refers to.

        Returns:
            What it returns, with gradients recorded where they are wanted.
        """
        # The program writes to the captured tensors' variables, such as running means: they are those of this call.
        scope = self._scope() if self._changed else captured.scope
        values = self._run_steadily(captured, arguments)
        given = dict(zip(self._feeds, arguments, strict=True)) | self.exported.tensors
        if self.rule is not None:
            versions = [(given[n], given[n]._version) for n in self._guarded]
        if values is None:
            values = self._run_whole(captured, scope, arguments)
        results: dict[str, Tensor] = {}
        for name in self._made:
            results[name] = self._result(name, values[name])
            if name in self._sharing.shares:
                source = self._sharing.shares[name]
                share_memory(results[name], results[source] if source in results else given[source])
        if self.rule is not None:
            kept = {n: given[n].value if n in given else _shared(values[n]) for n in self.kept}
            versions += [(results[n], results[n]._version) for n in self._guarded_results]
            forms = [(results[n].shape, results[n]._meta) for n in self.targets]
            outputs = [results[n] for n in self.targets]
            attach(self.rule, [given[n] for n in self.wrt], outputs, (kept, forms, scope), versions)
        return filled(self.exported.structure, given | results)

    def _run_steadily(self, captured: Captured, arguments: Sequence[Tensor]) -> dict[str, Any] | None:
        """The values of the outputs, where a run with arguments of these shapes is known to this thread; else None."""
        if not captured.steady or current_profiler() is not None:
            return None
        arrays = [x._value for x in arguments]
        steady = captured.steady.get((get_ident(), *[a.shape for a in arrays]))
        # What lies in memory in another way may need other code.
        if steady is None or not all([a.flags.c_contiguous for a in arrays]):
            return None
        made = steady([(a, []) for a in arrays])
        return {
            n: LoDTensor(array, lod, place=self.place, check=False)
            for n, (array, lod) in zip(self._outputs, made, strict=True)
        }

    def _run_whole(self, captured: Captured, scope: Scope, arguments: Sequence[Tensor]) -> dict[str, Any]:
        """The values of the outputs; tensors that the function changes in place get their new values."""
        local = Scope(scope)
        feeds = {name: x.value for name, x in zip(self._feeds, arguments, strict=True)}
        for name, value in feeds.items():
            local.var(name).value = value
        self._executor.run_prepared(
            self._forward, local, [*self._outputs, *(self._feeds[i] for i in self._changed_feeds)]
        )
        found = dict(zip(self._outputs, local.find_values(self._outputs), strict=True))
        self._take_over(local, scope, arguments)
        if self._may_be_steady:
            captured.runs += 1
            if 1 < captured.runs <= _TRIES or captured.steady:
                self._try_steady(captured, feeds)
        return found

    def _try_steady(self, captured: Captured, feeds: Mapping[str, Any]) -> None:
        steady = steady_run(self._executor, self._forward, captured.scope, feeds, self._outputs)
        if steady is not None:
            if len(captured.steady) >= _STEADY:
                captured.steady.clear()
            captured.steady[(get_ident(), *[v.array.shape for v in feeds.values()])] = steady

    def _take_over(self, local: Scope, scope: Scope, arguments: Sequence[Tensor]) -> None:
        """Give tensors that the function changed in place their new values."""
        for name in self._changed:
            self.exported.tensors[name]._overwrite(scope.get_var(name).get().array, None, self.name)
        for i in self._changed_feeds:
            arguments[i]._overwrite(local.get_var(self._feeds[i]).get().array, None, self.name)

    def _result(self, name: str, value: Any) -> Tensor:
        """The tensor of an output, on memory of its own where that of an eager call is."""
        if name in self._sharing.copies and isinstance(value, LoDTensor) and not value.array.flags.owndata:
            value = LoDTensor(value.array.copy(), value.lod, place=value.place, check=False)
        return _as_tensor(value)

    def _run_backward(self, saved: Any, cotangents: Sequence[Any]) -> list[Tensor | None]:
        """The gradients of `wrt`, None where none flows, from saved values and the gradients of the targets."""
        assert self._backward is not None
        kept, forms, scope = saved
        local = Scope(scope)
        for name, value in kept.items():
            local.var(name).value = value
        for name, g, (shape, meta) in zip(self.cotangents, cotangents, forms, strict=True):
            if g is None:
                zeros = context(meta.place).xp.zeros(shape, meta.dtype)
                local.var(name).value = LoDTensor(zeros, place=meta.place)
            else:
                local.var(name).value = g.value
        names = [n for n in self._gradients if n is not None]
        self._executor.run_prepared(self._backward, local, keep=names)
        found = dict(zip(names, local.find_values(names), strict=True))
        # An optimizer may write to memory that the tensors alone have: neither this nor a plan holds it any longer.
        self._last = None
        self._forward.forget_parameters()
        self._backward.forget_parameters()
        values = [None if n is None else found[n] for n in self._gradients]
        return [None if v is None else _as_tensor(v) for v in values]


def _values_read(op: OpDesc) -> list[str]:
    """The variables of which an op reads more than the shape."""
    unread = default_manager().op_info(op.type).no_need_buffer_vars
    return [n for slot, names in op.inputs.items() if slot not in unread for n in names]


def _forms(tensors: Sequence[Tensor]) -> list[Any]:
    """What code reads of captured tensors beside values and shapes: dtype, place, requires_grad."""
    return [t._meta.with_tracking for t in tensors]


def _shared(value: Any) -> Any:
    """A value that nobody may write to: it is that of an output as well, or gradients are computed a second time."""
    if isinstance(value, LoDTensor):
        value.shared = True
    return value


def _is_differentiable(var: VarDesc) -> bool:
    """Whether a variable has a floating or complex dtype."""
    return var.dtype is not None and dtype_name(var.dtype) in FLOATS | HALF_FLOATS | COMPLEX


def _as_tensor(value: Any) -> Tensor:
    """Wrap a value that a program computed in a tensor, without a copy."""
    if not isinstance(value, LoDTensor):
        return new_tensor(value, meta_of_value(value))
    return new_tensor(value.array, meta_of_value(value.array, value.place, len(value.lod)), value.lod)
