"""The ops of an example as eager calls, and inside jit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprack.autograd.walk import grad
from oprack.capture.jit import JitFunction
from oprack.capture.to_program import InputSpec
from oprack.desc import OpDesc
from oprack.functional.tensor import Tensor, to_tensor
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.op.attrs import COMMON_ATTRS
from oprack.packs.manager import PackManager, default_manager
from oprack.program import Program
from oprack.runtime.feed_fetch import as_fed_value
from oprack.tensor import LoDTensor, LoDTensorArray
from oprack.testing.any_kind import copied
from oprack.testing.fuzz.examples.example import Example
from oprack.testing.fuzz.runs.outcome import Outcome, attempt
from oprack.types import EMPTY_VAR, AttrType

_UNCALLABLE = (AttrType.BLOCK, AttrType.BLOCKS, AttrType.VAR, AttrType.VARS)


class _ExprAt(OpExpr):
    """An op at its place in a program, by which random numbers are drawn."""

    __slots__ = ("index",)
    index: int

    def desc(self, given: Sequence[bool]) -> OpDesc:
        found = super().desc(given)
        found.origin = self.index
        return found


def _forward(example: Example) -> Program:
    """The program without gradient ops, which eager backward takes the place of."""
    if not example.wrt:
        return example.program
    program = Program(example.program.desc.clone())
    block = program.global_block()
    block.ops = block.ops[: example.forward_ops]
    return program


def callable_ops(program: Program, manager: PackManager) -> bool:
    """Whether every op can be called by itself: none runs blocks, changes a scope, or reads what is not given."""
    if len(program.blocks) > 1:
        return False
    for op in program.global_block().ops:
        if any(kind in _UNCALLABLE for kind in op.attr_types.values()):
            return False
        if manager.has_op(op.type) and manager.operator_class(op.type) is not None:
            return False
    return True


def _calls(program: Program, manager: PackManager) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """A function from values by name to values by name; its ops are made once."""
    exprs: list[tuple[OpDesc, _ExprAt]] = []

    def run(values: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(values)
        for index, op in enumerate(program.global_block().ops):
            # Made at the first run, and the same for all: what is cached with them is part of what is tested.
            if index == len(exprs):
                exprs.append((op, _expr(op, index, manager)))
            expr = exprs[index][1]
            args = [None if n == EMPTY_VAR else found.get(n) for s, _ in expr.inputs for n in op.inputs[s]]
            results = current_mode().interpreter.apply(expr, args)
            names = [n for s, _ in expr.outputs for n in op.outputs[s]]
            made = results if isinstance(results, list | tuple) else [results]
            flat = [x for m in made for x in (m if isinstance(m, list) else [m])] if names else []
            found.update((n, r) for n, r in zip(names, flat, strict=True) if r is not None and n != EMPTY_VAR)
        return found

    return run


def _expr(op: OpDesc, index: int, manager: PackManager) -> _ExprAt:
    info = manager.op_info(op.type)
    attrs = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
    inputs = tuple((s, len(op.inputs[s])) for s in info.proto.inputs if op.inputs.get(s))
    outputs = tuple((s, tuple(n != EMPTY_VAR for n in op.outputs[s])) for s in info.proto.outputs if op.outputs.get(s))
    expr = _ExprAt(info, info.checker.check(attrs) if info.checker else attrs, inputs, outputs, flat=True)
    expr.index = index
    return expr


def run_eager(example: Example) -> list[Outcome] | None:
    """One call for each op, and backward for the gradients."""
    program = _forward(example)
    if not _applies(example, program):
        return None
    run = _calls(program, default_manager())

    def once(feed: Mapping[str, Any]) -> dict[str, Any]:
        given = _tensors(example, feed)
        found = run(given)
        return _results(example, found, given)

    return _outcomes(example, once)


def run_jit(example: Example) -> list[Outcome] | None:
    """All ops as one jitted function, whose dims vary where the program leaves them open."""
    program = _forward(example)
    first = example.runs[0]
    if not _applies(example, program) or not all(isinstance(v, LoDTensor) for v in first.values()):
        return None
    if not all(isinstance(v, LoDTensor) for v in example.params.values()):
        return None
    names = [n for n in [*first, *example.params] if n not in example.targets.values()]
    run = _calls(program, default_manager())
    fetched = dict.fromkeys([*(n for n in example.fetch if n not in example.wrt.values()), *example.targets])

    def function(*inputs: Any) -> Any:
        found = run(dict(zip(names, inputs, strict=True)))
        return {n: found[n] for n in fetched}

    values = {**first, **example.params}
    block = program.global_block()
    specs = [InputSpec(_dims(block.var(n), v), v.dtype, None, len(v.lod)) for n in names for v in [values[n]]]
    fast = JitFunction(function, specs)

    def once(feed: Mapping[str, Any]) -> dict[str, Any]:
        given = _tensors(example, feed)
        found = fast(*[given[n] for n in names])
        return _results(example, found, given)

    return _outcomes(example, once)


def _applies(example: Example, program: Program) -> bool:
    manager = default_manager()
    if any(isinstance(v, LoDTensorArray) for v in [*example.params.values(), *example.runs[0].values()]):
        return False
    written = {n for op in program.global_block().ops for n in op.output_arg_names()}
    # a call has no variables: what an op would change in a scope stays as it is
    return callable_ops(program, manager) and example.settled and not written & set(example.runs[0])


def _tensors(example: Example, feed: Mapping[str, Any]) -> dict[str, Tensor]:
    given = {n: to_tensor(copied(v)) for n, v in example.params.items()}
    block = example.program.global_block()
    for name, value in feed.items():
        # what a program refuses to be fed is not what a call is compared for
        given[name] = to_tensor(as_fed_value(name, value, block.find_var_recursive(name)))
    for name in example.wrt:
        given[name].requires_grad = True
    return given


def _results(example: Example, found: Mapping[str, Any], given: Mapping[str, Tensor]) -> dict[str, Any]:
    found = {n: y for n, y in found.items() if y is not None}  # None: jit says so of what an op left unset
    values = {n: found[n].value for n in example.fetch if n in found}
    pairs = [(found[n], given[c]) for n, c in example.targets.items() if n in found and found[n].requires_grad]
    targets, cotangents = [t for t, _ in pairs], [c for _, c in pairs]
    if targets:
        names = list(example.wrt)
        made = grad(targets, [given[n] for n in names], cotangents, allow_unused=True)
        values |= {example.wrt[n]: g.value for n, g in zip(names, made, strict=True) if g is not None}
    return values


def _dims(var: Any, value: LoDTensor) -> list[int | None]:
    """What the program states, and of a parameter its own."""
    if var.persistable:
        return list(value.shape)
    return [None if d < 0 else d for d in var.shape or ()]


def _outcomes(example: Example, once: Callable[[Mapping[str, Any]], dict[str, Any]]) -> list[Outcome]:
    found = []
    for run in range(len(example.runs)):
        feed = example.feed(run)
        found.append(attempt(lambda feed=feed: once(feed)))  # type: ignore[misc]
    return found
