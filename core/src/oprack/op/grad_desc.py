"""The desc side of gradient makers: GradOps as OpDescs with variable names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from oprack.op.attrs import COMMON_ATTRS
from oprack.op.grad import ForwardOp, GradOp, SlotRef
from oprack.op.info import OpInfo
from oprack.types import EMPTY_VAR, GRAD_SUFFIX

if TYPE_CHECKING:
    from oprack.desc import OpDesc


def grad_name(name: str) -> str:
    """Name of a variable's gradient."""
    return name + GRAD_SUFFIX


def make_grad_ops(info: OpInfo, op: OpDesc) -> list[GradOp]:
    """The gradient ops of a forward op, in symbols.

    Raises NotDifferentiableError when the op has no grad maker.
    """
    maker = info.require_grad_op_maker()
    attrs = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
    if info.checker is not None:
        attrs = info.checker.check(attrs)
    inputs = {s: len(names) for s, names in op.inputs.items() if names}
    outputs = {s: len(names) for s, names in op.outputs.items() if names}
    made = maker(ForwardOp(info.proto, attrs, inputs, outputs))
    return [made] if isinstance(made, GradOp) else list(made)


def grad_op_descs(
    info: OpInfo,
    op: OpDesc,
    no_grad: Collection[str] = (),
    name_of: Callable[[str], str] = grad_name,
) -> list[OpDesc]:
    """The gradient ops of `op` as OpDescs; gradients of variables in `no_grad` are "@EMPTY@".

    name_of: variable -> name of its gradient. An op whose outputs would all be "@EMPTY@" is left out.
    """
    from oprack.desc import OpDesc

    def names(ref: SlotRef) -> Sequence[str]:
        side = op.inputs if ref.role.startswith("input") else op.outputs
        given = side.get(ref.slot, [])
        if ref.index is not None:
            given = given[ref.index : ref.index + 1]
        if ref.role == "input_grad":
            return [EMPTY_VAR if n in no_grad or n == EMPTY_VAR else name_of(n) for n in given]
        if ref.role == "output_grad":
            return [name_of(n) for n in given]
        return given

    descs = []
    for grad in make_grad_ops(info, op):
        inputs = {s: n for s, ref in grad.inputs.items() if (n := names(ref))}
        outputs = {s: n for s, ref in grad.outputs.items() if (n := names(ref))}
        if all(n == EMPTY_VAR for ns in outputs.values() for n in ns):
            continue
        types = {k: t for k, t in op.attr_types.items() if k in grad.attrs}
        types |= {k: a.type for k, a in info.proto.attrs.items() if k in grad.attrs and k not in types}
        descs.append(OpDesc(grad.type, inputs, outputs, grad.attrs, types))
    return descs
