"""JitProgram: a captured function at a place, and the program of its gradients, as functions of values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.autodiff import gradients
from oprack.autograd.custom_rule import CustomRule, attach
from oprack.capture.guards import Guards
from oprack.capture.memory import Sharing
from oprack.capture.to_program import ExportedProgram, Name, filled
from oprack.desc import OpDesc, VarDesc
from oprack.eager_tensor import new_tensor, share_memory
from oprack.errors import UnimplementedError
from oprack.functional.tensor import Tensor
from oprack.interpreter.devices import context, executor
from oprack.interpreter.modes import Mode
from oprack.interpreter.wrappers import FiniteCheck
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime.prepared import program_bytes
from oprack.runtime.prepared_function import PreparedFunction
from oprack.runtime.run_context import Checks
from oprack.tensor import LoDTensor, Place
from oprack.tensor.meta import TensorMeta, meta_of_value, tensor_meta
from oprack.types import COMPLEX, FLOATS, GRAD_SUFFIX, HALF_FLOATS, dtype_name

_METAS: dict[Any, TensorMeta] = {}
"""Those of dense tensors on the CPU, by dtype."""


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
        self._revision = self._executor.manager.revision
        self._feeds = exported.feed_names
        self._names, self._tensors = list(exported.tensors), list(exported.tensors.values())
        # What code reads of captured tensors beside values: dtypes, places, requires_grad, and shapes.
        self._metas = [t._meta.with_tracking for t in self._tensors]
        self._dense = [t for t in self._tensors if t._meta.container is LoDTensor]
        self._shapes = [t._value.shape for t in self._dense]
        self.nbytes = program_bytes(exported.program.desc)  # for the budget of caches, with the gradients' program
        block = exported.program.global_block()
        written = {n for op in block.ops for n in op.output_arg_names()}
        self._changed = [n for n in self._names if n in written]  # such as running means
        self._changed_feeds = [i for i, n in enumerate(self._feeds) if n in written]
        # What is returned as it came is the caller's tensor itself, as in an eager call.
        given = {*self._feeds, *self._names}
        self._made = [n for n in exported.fetch_names if n not in given]
        self.targets: list[str] = []
        self.cotangents: list[str] = []
        self.kept: list[str] = []
        self._gradients: list[str | None] = []
        self._saved: list[str] = []
        self._backward: PreparedFunction | None = None
        read = self._write_backward(given | written) if self.wrt else set[str]()
        self._sharing = Sharing(block, place, given, self._made, exported.owned)
        self._set_checks(read, given)
        changed = [*self._changed, *(self._feeds[i] for i in self._changed_feeds)]
        outputs = dict.fromkeys([*self._made, *(n for n in self.kept if n not in given), *changed])
        self._forward = self._function(exported.program, [*self._feeds, *self._names], list(outputs))
        self._are_bare: bool | None = None
        # Positions: of what is given, and behind that of what is made.
        index = self._index = {n: i for i, n in enumerate(self._forward.inputs)}
        at = {n: k for k, n in enumerate(self._forward.outputs)}
        self._changes = [(index[n], at[n]) for n in changed]
        self._kept = [len(index) + at[n] if n in at else index[n] for n in self._saved]
        self._differentiated = [index[n] for n in self.wrt]
        self._guarded = [index[n] for n in self._guarded_names]
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
        self._saved = [*(n for n in self._names if n in read), *self.kept]
        found = [n for n in dict.fromkeys(self._gradients) if n is not None]
        self._backward = self._function(joint, [*self._saved, *self.cotangents], found)
        self.nbytes += program_bytes(joint.desc)
        return values_read

    def _set_checks(self, read: set[str], given: set[str]) -> None:
        """Note which tensors and outputs may not change in place before the gradients are computed."""
        root = self._sharing.root
        memory = {root(n) for n in read}
        # What the program itself writes to, such as running means, has values of its own in each call.
        self._guarded_names = [n for n in given if n in memory and n not in self._changed]
        self._guarded_results = [n for n in self._made if n not in self.targets and root(n) in memory]
        self._needed = [i for i, n in enumerate(self.targets) if root(n) in memory]

    # Running ----------------------------------------------------------------------------------------------------------
    def _function(self, program: Program, inputs: Sequence[str], outputs: Sequence[str]) -> PreparedFunction:
        prepared = self._executor.prepare(program.desc)
        return PreparedFunction(self._executor, prepared, inputs, outputs, stateful=False)

    def serves(self) -> bool:
        """Whether what the function read is in the state in which it was captured."""
        return (
            self._revision == self._executor.manager.revision
            and [t._meta.with_tracking for t in self._tensors] == self._metas
            and [t._value.shape for t in self._dense] == self._shapes
            and self.guards.hold()
        )

    def run(self, arguments: Sequence[Tensor]) -> Any:
        """Call the function.

        Args:
            arguments: Its tensors.

        Returns:
            What it returns, with gradients recorded where they are wanted.
        """
        tensors = [*arguments, *self._tensors]
        if self._are_bare is None:  # their forms are the same in each call
            self._are_bare = self.place.kind == "cpu" and all(map(_is_bare, tensors))
        versions = [(tensors[i], tensors[i]._version) for i in self._guarded] if self.rule is not None else []
        values = [x._value for x in tensors] if self._are_bare else [x.value for x in tensors]
        made = self._forward(values)
        for i, k in self._changes:
            tensors[i]._overwrite(_array(made[k]), None, self.name)
        # what follows in `made` is kept for the gradients
        results = {name: self._result(name, made[k]) for k, name in enumerate(self._made)}
        for name, source in self._sharing.shares.items():
            share_memory(results[name], results[source] if source in results else tensors[self._index[source]])
        if self.rule is not None:
            values += made
            outputs = [results[n] for n in self.targets]
            # one of several outputs may have no gradient, and then it is zeros
            forms = [(x.shape, x._meta) for x in outputs] if len(outputs) > 1 else [None]
            versions += [(results[n], results[n]._version) for n in self._guarded_results]
            kept = [values[i] for i in self._kept]
            attach(self.rule, [tensors[i] for i in self._differentiated], outputs, (kept, forms), versions)
        if isinstance(structure := self.exported.structure, Name) and structure in results:
            return results[structure]
        return filled(structure, dict(zip(self._forward.inputs, tensors, strict=True)) | results)

    def _result(self, name: str, value: Any) -> Tensor:
        """The tensor of an output, on memory of its own where that of an eager call is."""
        if name in self._sharing.copies:
            if isinstance(value, LoDTensor) and not value.array.flags.owndata:
                value = LoDTensor(value.array.copy(), value.lod, place=value.place, check=False)
            elif isinstance(value, np.ndarray) and not value.flags.owndata:
                value = value.copy()
        return _as_tensor(value)

    def _run_backward(self, saved: Any, cotangents: Sequence[Any]) -> list[Tensor | None]:
        """The gradients of `wrt`, None where none flows, from saved values and the gradients of the targets."""
        assert self._backward is not None
        kept, forms = saved
        values = list(kept)
        for g, form in zip(cotangents, forms, strict=True):
            if g is None:
                shape, meta = form
                values.append(LoDTensor(context(meta.place).xp.zeros(shape, meta.dtype), place=meta.place))
            else:
                values.append(_value(g))
        found = dict(zip(self._backward.outputs, self._backward(values), strict=True))
        return [None if n is None or found[n] is None else _as_tensor(found[n]) for n in self._gradients]


def _values_read(op: OpDesc) -> list[str]:
    """The variables of which an op reads more than the shape."""
    unread = default_manager().op_info(op.type).no_need_buffer_vars
    return [n for slot, names in op.inputs.items() if slot not in unread for n in names]


def _is_bare(x: Tensor) -> bool:
    """Whether the array is all that there is to a tensor."""
    meta = x._meta
    return meta is meta.local and meta.container is LoDTensor and not meta.lod_level and meta.place.kind == "cpu"


def _value(x: Tensor) -> Any:
    """The value of a tensor, as a PreparedFunction takes it."""
    return x._value if _is_bare(x) else x.value


def _array(value: Any) -> Any:
    return value.array if isinstance(value, LoDTensor) else value


def _is_differentiable(var: VarDesc) -> bool:
    """Whether a variable has a floating or complex dtype."""
    return var.dtype is not None and dtype_name(var.dtype) in FLOATS | HALF_FLOATS | COMPLEX


def _as_tensor(value: Any) -> Tensor:
    """Wrap a value that a program computed in a tensor, without a copy."""
    if type(value) is np.ndarray:
        meta = _METAS.get(value.dtype) or _METAS.setdefault(value.dtype, tensor_meta(LoDTensor, value.dtype))
        return new_tensor(value, meta)
    if not isinstance(value, LoDTensor):
        return new_tensor(value, meta_of_value(value))
    return new_tensor(value.array, meta_of_value(value.array, value.place, len(value.lod)), value.lod)
