"""Runs the ops of a program one by one as eager calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from oprack import Program, Tensor
from oprack.desc import OpDesc
from oprack.interpreter.modes import current_mode
from oprack.interpreter.op_expr import OpExpr
from oprack.op.attrs import COMMON_ATTRS
from oprack.packs.manager import default_manager
from oprack.types import EMPTY_VAR, AttrType


class ExprAt(OpExpr):
    """An op at its place in a program, by which random numbers are drawn."""

    __slots__ = ("index",)

    def desc(self, given: Sequence[bool]) -> OpDesc:
        found = super().desc(given)
        found.origin = self.index
        return found


def run_eagerly(
    program: Program, values: Mapping[str, Tensor], exprs: dict[int, ExprAt] | None = None
) -> dict[str, Any]:
    """Tensors by name after block 0 ran; ops that feed and fetch are left out.

    exprs: keeps the ops for the next call.
    """
    found: dict[str, Any] = dict(values)
    exprs = {} if exprs is None else exprs
    for index, op in enumerate(program.global_block().ops):
        if op.type in ("feed", "fetch"):
            continue
        expr = exprs.get(index)
        if expr is None:
            expr = exprs[index] = _expr(op, index, found)
        args = [None if n == EMPTY_VAR else found.get(n) for s, _ in expr.inputs for n in op.inputs[s]]
        results = current_mode().interpreter.apply(expr, args)
        names = [n for s, _ in expr.outputs for n in op.outputs[s]]
        found.update((n, r) for n, r in zip(names, results, strict=True) if r is not None)
    return found


def _expr(op: OpDesc, index: int, found: Mapping[str, Any]) -> ExprAt:
    info = default_manager().op_info(op.type)
    attrs = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
    for name, kind in op.attr_types.items():
        if kind in (AttrType.VAR, AttrType.VARS) and name in attrs:
            attrs[name] = _numbers(attrs[name], found, many=info.proto.attrs[name].type.name.endswith("S"))
    inputs = tuple((s, len(op.inputs[s])) for s in info.proto.inputs if op.inputs.get(s))
    outputs = tuple((s, tuple(n != EMPTY_VAR for n in op.outputs[s])) for s in info.proto.outputs if op.outputs.get(s))
    expr = ExprAt(info, info.checker.check(attrs), inputs, outputs, flat=True)
    expr.index = index
    return expr


def _numbers(names: str | Sequence[str], found: Mapping[str, Any], *, many: bool) -> Any:
    """An attribute's value from the variables that hold it."""
    listed = [names] if isinstance(names, str) else names
    numbers = [v for n in listed for v in found[n].numpy().ravel().tolist()]
    return numbers if many else numbers[0]
