"""Gradient: the gradient ops of a call, in order, for any framework that can call ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from oprack.autograd.backward_rule import ARRIVED, BackwardRule, expr_of_op
from oprack.bridge.abstract import Abstract
from oprack.cache import Cache
from oprack.eager_tensor.meta import TensorMeta, tensor_meta
from oprack.interpreter.bound_expr import BoundExpr
from oprack.interpreter.op_expr import OpExpr
from oprack.tensor import LoDTensor, numpy_dtype
from oprack.types import EMPTY_VAR

Apply = Callable[[OpExpr, Sequence[Any]], Sequence[Any]]


class Gradient:
    """How the gradients of a call's arguments are computed from those of its results.

    Args:
        expr: The call, flat.
        args: Its arguments, None for absent ones; shapes do not matter.
        results: Its results.
        wrt: Flat positions of the arguments whose gradients are wanted.

    Attributes:
        wrt: Those of them that can have one.
        outputs: Flat positions of the results that receive gradients.
        saved: What the gradient ops read: ("in" or "out", position, whether the values are needed or only shape and
            LoD).
        empty: Whether no gradient flows back, by the op's definition.
    """

    def __init__(
        self, expr: OpExpr, args: Sequence[Abstract | None], results: Sequence[Abstract | None], wrt: Sequence[int]
    ) -> None:
        stand_ins: Any = [None if a is None else SimpleNamespace(shape=(-1,) * len(a.shape or ())) for a in args]
        bound = BoundExpr(expr, [_meta(a) for a in args], stand_ins)
        bound.outputs = [_meta(a) for a in results]
        visible, k = [], 0
        for slot, flags in expr.outputs:
            if not expr.proto.outputs[slot].intermediate:
                visible += [k + i for i, wanted in enumerate(flags) if wanted]
            k += len(flags)
        self._rule = rule = BackwardRule(bound, wrt, visible)
        self.wrt, self.outputs, self.saved, self.empty = rule.wrt, rule.outputs, rule.saved, rule.empty
        self._steps: dict[tuple[bool, ...], _Steps] = {}

    @property
    def differentiable(self) -> bool:
        """Whether the op says what its gradient is."""
        return self._rule.differentiable

    def reached(self) -> list[int]:
        """Which arguments a gradient flows back to, by the op's definition.

        Returns:
            Their flat positions, of those in `wrt`; [] for an op without a gradient.
        """
        if self.empty or not self.differentiable:
            return []
        results = self._rule.gradients_of([True] * len(self.outputs)).results
        return [i for i, name in zip(self.wrt, results, strict=True) if name]

    def __call__(
        self,
        saved: Sequence[Any],
        gradients: Sequence[Any],
        apply: Apply,
        zeros: Callable[[int], Any],
    ) -> list[Any]:
        """Compute the gradients.

        Args:
            saved: The values of `saved`; of what is read for its shape alone, a tensor of that shape.
            gradients: Those of `outputs`, None where none arrived.
            apply: Calls an op: it gets an expression and its tensors, and returns its results.
            zeros: Makes a zero gradient for the result at a flat position.

        Returns:
            The gradients of `wrt`, None where none flows back.

        Raises:
            NotDifferentiableError: The op has no gradient.
        """
        rule = self._rule
        present = tuple([g is not None for g in gradients])
        if not any(present):
            return [None] * len(self.wrt)
        steps = self._steps.get(present)
        if steps is None:
            steps = self._steps[present] = _Steps(self, rule, present)
        values: dict[str, Any] = dict(zip(steps.saved, saved, strict=True))
        for name, gradient in zip(steps.arrived, gradients, strict=True):
            values[name] = gradient
        for name, j in steps.missing:
            values[name] = zeros(j)
        for expr, names, made in steps.calls:
            for name, value in zip(made, apply(expr, [values.get(n) for n in names]), strict=True):
                values.setdefault(name, value)
        return [values.get(n) for n in steps.results]


class _Steps:
    """The calls of a gradient where gradients arrive at certain results, with the names of what they read and make."""

    def __init__(self, gradient: Gradient, rule: BackwardRule, present: Sequence[bool]) -> None:
        program = rule.gradients_of(present)
        places = {("in", i): n for n, i in rule.ins.items()} | {("out", j): n for n, j in rule.outs.items()}
        names = {j: n for n, j in rule.outs.items()}
        self.saved = [places[side, i] for side, i, _ in gradient.saved]
        self.arrived = [names[j] + ARRIVED for j in gradient.outputs]
        self.missing = [(g, j) for g, var in program.missing.items() if (j := rule.outs[var]) in gradient.outputs]
        self.results = [n or EMPTY_VAR for n in program.results]
        there = {*self.saved, *(n for n, p in zip(self.arrived, present, strict=True) if p), *dict(self.missing)}
        self.calls: list[tuple[OpExpr, list[str], list[str]]] = []
        for op in program.ops:
            known = frozenset(there)
            expr = expr_of_op(op, lambda name, known=known: name not in known)  # type: ignore[misc]
            made = [name for slot, _ in expr.outputs for name in op.outputs[slot]]
            self.calls.append((expr, [name for slot, _ in expr.inputs for name in op.inputs[slot]], made))
            there.update(made)
            there.discard(EMPTY_VAR)


def _meta(a: Abstract | None) -> TensorMeta | None:
    return None if a is None else tensor_meta(LoDTensor, numpy_dtype(a.dtype or "float32"), lod_level=a.lod_level)


_kept = Cache(4096)


def gradient_of(
    expr: OpExpr, args: Sequence[Abstract | None], results: Sequence[Abstract | None], wrt: Sequence[int]
) -> Gradient:
    """The gradient of a call, kept for calls of the same dtypes and LoD levels.

    Args:
        expr: The call, flat.
        args: Its arguments, None for absent ones.
        results: Its results.
        wrt: Flat positions of the arguments whose gradients are wanted.

    Returns:
        It.
    """
    kinds = tuple(None if a is None else a[1:] for a in (*args, *results))
    key = (expr, kinds, tuple(wrt))
    found: Gradient | None = _kept[key]
    if found is None:
        found = _kept[key] = Gradient(expr, args, results, wrt)
    return found
