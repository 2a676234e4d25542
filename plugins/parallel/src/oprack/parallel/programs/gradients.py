"""Which ops of a program are gradients of which: a gradient op is computed on the parts that its forward op had."""

from __future__ import annotations

from dataclasses import dataclass

from oprack.autodiff.appender import OpRole
from oprack.desc import BlockDesc, OpDesc
from oprack.errors import OprackError
from oprack.op.desc_rules import grad_op_desc, make_grad_ops
from oprack.op.grad import GradOp, SlotRef
from oprack.packs.manager import default_manager


@dataclass(frozen=True)
class Gradient:
    """What an op of the backward pass is the gradient of.

    Attributes:
        forward: The position of the forward op.
        grad: What its gradient maker said.
    """

    forward: int
    grad: GradOp


def gradients_of(block: BlockDesc) -> dict[int, Gradient]:
    """For ops of the backward pass, by position, what they are the gradients of.

    Args:
        block: The block with both passes.

    Returns:
        The ops that were found; others, such as sums of gradients, are ops like those of the forward pass.
    """
    made: dict[str, list[tuple[int, GradOp, OpDesc]]] = {}
    for position, op in enumerate(block.ops):
        if not is_backward(op):
            for grad, desc in _grads(op):
                made.setdefault(desc.type, []).append((position, grad, desc))
    found = {}
    for position, op in enumerate(block.ops):
        if not is_backward(op):
            continue
        options = made.get(op.type, [])
        for k, (forward, grad, desc) in enumerate(options):
            if forward < position and _same(op, desc, grad):
                found[position] = Gradient(forward, grad)
                del options[k]
                break
    return found


def is_backward(op: OpDesc) -> bool:
    """Whether an op belongs to the backward pass."""
    return bool(op.attr("op_role", 0) & OpRole.BACKWARD)


def _grads(op: OpDesc) -> list[tuple[GradOp, OpDesc]]:
    info = default_manager().op_info(op.type)
    try:
        grads = make_grad_ops(info, op)
    except OprackError:
        return []  # it has no gradient
    return [(grad, grad_op_desc(grad, info, op)) for grad in grads]


def _same(op: OpDesc, desc: OpDesc, grad: GradOp) -> bool:
    """Whether an op is what a gradient maker makes, but for numbers behind names of gradients and absent ones."""
    for own, made, refs in ((op.inputs, desc.inputs, grad.inputs), (op.outputs, desc.outputs, grad.outputs)):
        for slot, names in own.items():
            if not names:
                continue
            wanted = made.get(slot)
            if wanted is None or len(wanted) != len(names) or refs[slot].role == "temporary":
                return False
            if not all(_same_name(n, w, refs[slot]) for n, w in zip(names, wanted, strict=True)):
                return False
    return True


def _same_name(name: str, wanted: str, ref: SlotRef) -> bool:
    if ref.role in ("input", "output"):
        return name == wanted
    return name == wanted or name.startswith((f"{wanted}@", f"{wanted}_")) or name == "@EMPTY@"
