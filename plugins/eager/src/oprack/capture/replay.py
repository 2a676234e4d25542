"""Replay: a captured function of tensors on several ranks; its ops are called one after the other.

A program has the values of one process, whereas how a call with global tensors is computed on parts is found out call
by call. So what is kept of the function is which ops it calls on what: each call runs them as eager calls, with the
collectives, the gradients of any order and the parts of any size that those have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from oprack.autograd.backward_rule import expr_of_op
from oprack.capture.guards import Guards, naming
from oprack.capture.jit_program import MISSED
from oprack.capture.to_program import ExportedProgram, Name
from oprack.desc import OpDesc
from oprack.errors import UnimplementedError
from oprack.interpreter.modes import Mode
from oprack.interpreter.op_expr import OpExpr
from oprack.interpreter.wrappers import FiniteCheck
from oprack.kernel import ANY_KERNEL
from oprack.packs.manager import default_manager
from oprack.runtime.plan.codegen import generated_function
from oprack.runtime.prepared import program_bytes
from oprack.types import EMPTY_VAR


class _Step(NamedTuple):
    """A call of an op; -1 stands for an absent input, and an output that is not kept.

    Attributes:
        expr: The op.
        ins: Numbers of its inputs among the values of a run.
        outs: Those of its outputs.
        stopped: Outputs through which no gradient flows.
        last: Values that no later call reads.
    """

    expr: OpExpr
    ins: list[int]
    outs: list[int]
    stopped: list[int]
    last: list[int]


class Replay:
    """A captured function of global tensors.

    Args:
        exported: The function as a program.
        guards: What the function read beside tensors.
        name: The name of the function, for messages.
        mode: The mode in which it was captured.

    Attributes:
        call: As that of a JitProgram.

    Raises:
        UnimplementedError: The function has a loop or a branch of its own.
        CollectiveError: The ranks captured different functions.
    """

    def __init__(self, exported: ExportedProgram, guards: Guards, name: str, mode: Mode) -> None:
        self.guards, self.nbytes = guards, program_bytes(exported.program.desc)
        self._name, self._structure = name, exported.structure
        # What others do has become part of the program.
        self._wrappers = tuple([w for w in mode.wrappers if w is FiniteCheck])
        self._apply = mode.but(wrappers=self._wrappers, static=False).interpreter.apply
        self._tensors = list(exported.tensors.values())
        # By name, the number of a value: first what a call gives, then what the function refers to.
        self._numbers = {n: k for k, n in enumerate([*exported.feed_names, *exported.tensors])}
        self._given = len(self._numbers)
        self._steps = list(self._of(exported))
        self.call = self._generated(mode)

    def __repr__(self) -> str:
        return f"<Replay of {self._name}, {len(self._steps)} calls>"

    def digest(self) -> str:
        """What of the function has to be the same on all ranks, in a few letters."""
        calls = [
            (s.expr.type, sorted((k, repr(v)) for k, v in s.expr.attrs.items()), s.ins, s.outs) for s in self._steps
        ]
        return f"{len(calls)} calls of ops, {hashlib.sha256(repr(calls).encode()).hexdigest()[:16]}"

    def _of(self, exported: ExportedProgram) -> Iterator[_Step]:
        program, block = exported.program, exported.program.global_block()
        ops = list(block.ops)
        if len(program.blocks) > 1:
            owner = ", ".join({op.type: None for op in ops if op.block_attrs()})
            raise UnimplementedError(
                f"{self._name}: it has a loop or a branch (op {owner}) on tensors that lie on several ranks, whose "
                "calls are not known before it runs; call the function itself, without jit"
            )
        last: dict[str, int] = {n: len(ops) for n in (*self._numbers, *exported.fetch_names)}
        for k, op in enumerate(ops):
            for n in (*op.input_arg_names(), *op.output_arg_names()):
                last[n] = max(k, last.get(n, 0))
        for k, op in enumerate(ops):
            yield self._step(op, block, [n for n, at in last.items() if at == k])

    def _step(self, op: OpDesc, block: Any, last: Sequence[str]) -> _Step:
        if op.var_attrs():
            raise UnimplementedError(
                f"{self._name}: op {op.type} has sizes that are known when it runs, on tensors that lie on several "
                "ranks; call the function itself, or without specs whose dims vary"
            )
        expr = expr_of_op(op, lambda n: n == EMPTY_VAR)
        tied = {
            slot: out
            for slot, names in op.inputs.items()
            for out, made in op.outputs.items()
            if names and list(names) == list(made)
        }
        # A call that gives one tensor takes a shorter way.
        flat = sum(len(flags) for _, flags in expr.outputs) > 1 or len(expr.returned) != 1 or bool(tied)
        flat = flat or expr.proto.outputs[expr.returned[0]].duplicable
        # All of its outputs, since gradients may read what the function does not.
        expr = OpExpr(expr.info, expr.attrs, expr.inputs, expr.outputs, tied, flat, rules=expr.rules)
        ins = [self._numbers.get(n, -1) for slot, _ in expr.inputs for n in op.inputs[slot]]
        made = [(n, flag) for slot, flags in expr.outputs for n, flag in zip(op.outputs[slot], flags, strict=True)]
        numbers = [self._numbers.setdefault(n, len(self._numbers)) if flag else -1 for n, flag in made]
        stopped = [k for (n, flag), k in zip(made, numbers, strict=True) if flag and _stops(block.find_var(n))]
        free = [self._numbers[n] for n in last if n in self._numbers and self._numbers[n] >= self._given]
        return _Step(expr, ins, numbers, stopped, free)

    def _generated(self, mode: Mode) -> Callable[..., Any]:
        """`call(guarded, a0, a1, ...)`. In the code v is a tensor, E an op, m the outputs of a call."""
        names: dict[str, Any] = {"MISSED": MISSED, "apply": self._apply, "__name__": __name__}
        named = naming(names)
        args = [f"v{k}" for k in range(self._given - len(self._tensors))]
        lines = [f"def call({', '.join(['guarded', *args])}):", *self._guarding(named)]
        lines += [f"    v{k} = {named(t)}" for k, t in enumerate(self._tensors, len(args))]
        # Generated calls are looked up here where nothing is around them.
        plain = mode.rules is ANY_KERNEL and not self._wrappers
        for n, (expr, ins, outs, stopped, last) in enumerate(self._steps):
            names[f"E{n}"] = expr
            given = "".join("None, " if k < 0 else f"v{k}, " for k in ins)
            called = f"apply(E{n}, ({given}))"
            if plain and not any(k < 0 for k in ins):
                names[f"calls{n}"] = expr.grad_calls if mode.grad else expr.calls
                lines.append(f"    call = calls{n}.get(({''.join(f'v{k}._meta, ' for k in ins)}))")
                called = f"call({given}) if call is not None else {called}"
            made = "".join("_, " if k < 0 else f"v{k}, " for k in outs)
            lines.append(f"    {f'[{made}]' if expr.flat else f'v{outs[0]}'} = {called}")
            lines += [f"    if v{k} is not None and v{k}.requires_grad: v{k} = v{k}.detach()" for k in stopped]
            lines += [f"    v{k} = None" for k in last]
        names["formed"] = lambda *values: _formed(self._structure, lambda n: values[self._returned.index(n)])
        self._returned = list(dict.fromkeys(_names_in(self._structure)))
        lines.append(f"    return formed({', '.join(f'v{self._numbers[n]}' for n in self._returned)})")
        return generated_function("\n".join(lines) + "\n", "call", f"jit of {self._name}", names)

    def _guarding(self, named: Callable[[Any], str]) -> Iterator[str]:
        conditions = [f"{named(default_manager())}.revision == {default_manager().revision}"]
        for t in self._tensors:
            conditions.append(f"{named(t)}._meta.with_tracking is {named(t._meta.with_tracking)}")
            if t._meta.layout is not None:
                conditions.append(f"{named(t)}._logical_shape == {t.shape}")
            else:
                conditions.append(f"{named(t)}.shape == {t.shape}")
        return self.guards.lines(conditions, named)


def _names_in(structure: Any) -> Iterator[str]:
    """The names among what a function returns."""
    if isinstance(structure, Name):
        yield structure
    else:
        for v in structure.values() if isinstance(structure, Mapping) else structure:
            yield from _names_in(v)


def _stops(var: Any) -> bool:
    return var is not None and bool(var.stop_gradient) and not var.persistable


def _formed(structure: Any, value: Callable[[str], Any]) -> Any:
    """What a function returns, with tensors in place of names."""
    if isinstance(structure, Name):
        return value(structure)
    if isinstance(structure, Mapping):
        return {k: _formed(v, value) for k, v in structure.items()}
    items = [_formed(v, value) for v in structure]
    return items if isinstance(structure, list) else tuple(items)
