"""Turns the GradOps of gradient makers, which are symbolic, into OpDescs with variable names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from oprack.errors import OpError, OprackError
from oprack.interruption import let_interruptions_pass
from oprack.op.attrs import COMMON_ATTRS
from oprack.op.forward_op import ForwardOp, SlotRef
from oprack.op.grad import GradOp
from oprack.op.info import OpInfo
from oprack.op.raised import raised_by, told_of_stranger
from oprack.types import EMPTY_VAR, GRAD_SUFFIX

if TYPE_CHECKING:
    from oprack.desc import OpDesc


def grad_name(name: str) -> str:
    """Name of a variable's gradient."""
    return name + GRAD_SUFFIX


def make_grad_ops(
    info: OpInfo, op: OpDesc, accumulated: Collection[str] = (), held: Collection[str] = ()
) -> list[GradOp]:
    """The symbolic gradient ops of a forward op.

    Args:
        info: The op's definition.
        op: The forward op.
        accumulated: See ForwardOp; by default no other op contributes to the gradients.
        held: See ForwardOp; by default no other op reads the variables later.

    Raises:
        NotDifferentiableError: When the op has no gradient maker.
        OpError: When the maker fails.
    """
    maker = info.require_grad_op_maker()
    attrs = {k: v for k, v in op.attrs.items() if k not in COMMON_ATTRS}
    if info.checker is not None:
        attrs = info.checker.check(attrs, op.var_attrs())
    inputs = {s: len(names) for s, names in op.inputs.items() if names}
    outputs = {s: len(names) for s, names in op.outputs.items() if names}
    try:
        grad_ops = maker(ForwardOp(info.proto, attrs, inputs, outputs, accumulated, held))
    except OprackError as error:
        error.args = (told_of_stranger(error, info), *error.args[1:])
        raise
    except Exception as error:
        let_interruptions_pass()
        where, _ = raised_by(error, info)
        raise OpError(
            f"op {op.type} (pack {info.pack}): its make_grad failed: {type(error).__name__}: {error}"
            + (f"\nraised{where}" if where else "")
        ) from error
    return [grad_ops] if isinstance(grad_ops, GradOp) else list(grad_ops)


def read_outputs(grads: Iterable[GradOp]) -> set[str]:
    """Output slots of the forward op of which a gradient flows back.

    Args:
        grads: All gradient ops of the forward op.
    """
    read: set[str] = set()
    for grad in grads:
        refs = (*grad.inputs.values(), *grad.outputs.values())
        read.update(ref.slot for ref in refs if ref.role == "output_grad")
        read.update(grad.same.values())
        if grad.block is not None:
            read.add(grad.block.out_slot)
    return read


def grad_op_desc(
    grad: GradOp,
    info: OpInfo,
    op: OpDesc,
    no_grad: Collection[str] = (),
    name_of: Callable[[str], str] = grad_name,
    temporary: Callable[[str], str] = str,
) -> OpDesc:
    """A gradient op of `op` as an OpDesc; gradients of variables in `no_grad` are "@EMPTY@" among its outputs.

    Args:
        name_of: Returns the name of a variable's gradient.
        temporary: Returns the name of a temporary variable, from its label.
    """
    from oprack.desc import OpDesc

    def names(ref: SlotRef, reads: bool) -> Sequence[str]:
        if ref.role == "temporary":
            return [temporary(ref.slot)]
        side = op.inputs if ref.role.startswith("input") else op.outputs
        variables = side.get(ref.slot, [])
        if ref.index is not None:
            variables = variables[ref.index : ref.index + 1]
        if ref.role == "input_grad":
            return [EMPTY_VAR if (n in no_grad and not reads) or n == EMPTY_VAR else name_of(n) for n in variables]
        if ref.role == "output_grad":
            return [name_of(n) for n in variables]
        return variables

    inputs = {s: n for s, ref in grad.inputs.items() if (n := names(ref, True))}
    outputs = {s: n for s, ref in grad.outputs.items() if (n := names(ref, False))}
    types = {k: t for k, t in op.attr_types.items() if k in grad.attrs}
    types |= {k: a.type for k, a in info.proto.attrs.items() if k in grad.attrs and k not in types}
    return OpDesc(grad.type, inputs, outputs, grad.attrs, types)


def grad_op_descs(
    info: OpInfo,
    op: OpDesc,
    no_grad: Collection[str] = (),
    name_of: Callable[[str], str] = grad_name,
) -> list[OpDesc]:
    """The gradient ops of `op` as OpDescs, provided that no other op reads its inputs.

    The arguments are those of `grad_op_desc`. An op whose outputs would all be "@EMPTY@" is left out.
    """

    def temporary(label: str) -> str:
        return f"{op.output_arg_names()[0]}{GRAD_SUFFIX}@{label}"

    descs = [grad_op_desc(grad, info, op, no_grad, name_of, temporary) for grad in make_grad_ops(info, op)]
    return [d for d in descs if any(n != EMPTY_VAR for n in d.output_arg_names())]
