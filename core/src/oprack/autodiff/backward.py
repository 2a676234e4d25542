"""append_backward and gradients: the gradient ops of a block, last op first (Fluid's backward.py, in one walk)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from oprack.autodiff.appender import OpRole
from oprack.autodiff.path import differentiable, outputs_of
from oprack.autodiff.walk import Backward
from oprack.desc import BlockDesc, OpDesc, VarDesc
from oprack.errors import InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.packs.manager import PackManager, default_manager
from oprack.types import AttrType, VarType


def _names(values: Any) -> list[str]:
    if values is None:
        return []
    if isinstance(values, str) or not isinstance(values, Sequence | Collection):
        values = [values]
    return [v if isinstance(v, str) else v.name for v in values]


def _block_of(value: Any, block: BlockDesc | None) -> BlockDesc:
    if block is not None:
        return block
    owner = getattr(value, "block", None)
    if owner is None:
        raise InvalidArgumentError(
            f"{value!r} does not say which program it is of; pass a variable of a program, or "
            "block=program.global_block()"
        )
    return getattr(owner, "desc", owner)  # type: ignore[no-any-return]


def _stopped(block: BlockDesc, no_grad_set: Any) -> set[str]:
    """no_grad_set and every variable with stop_gradient, in the block and all others of the program."""
    stopped = {v.name for b in block.program.blocks for v in b.vars.values() if v.stop_gradient}
    return stopped | set(_names(no_grad_set))


def append_backward(
    loss: Any,
    parameter_list: Any = None,
    no_grad_set: Any = None,
    *,
    block: BlockDesc | None = None,
    manager: PackManager | None = None,
) -> list[tuple[str, str]]:
    """Append the gradient ops of `loss` to its block.

    Args:
        loss: A variable of one element, or its name with `block`.
        parameter_list: Variables or names; None = every parameter of the program that may be trained.
        no_grad_set: Variables through which nothing flows.
        block: The block of the loss, where `loss` is a name.
        manager: The packs that say how ops are differentiated; None = those in use.

    Returns:
        (parameter, gradient) names, in order of the parameters; those that the loss does not depend on are left out.

    Raises:
        InvalidArgumentError: When the loss is not one floating element.
        NotFoundError: When a parameter is of another program.
        NotDifferentiableError: With the path, when an op has no gradient.
        PreconditionNotMetError: When there is no parameter, or none reaches the loss.
    """
    where, name = _block_of(loss, block), _names(loss)[0]
    var = _checked_loss(where, name)
    trained = _trained(where, name, parameter_list)
    # A parameter that is asked for by name gets a gradient even with stop_gradient.
    no_grad = _stopped(where, no_grad_set) - set(_names(parameter_list))
    walk = Backward(where, no_grad, manager or default_manager())
    writer = next((op for op in reversed(walk.forward) if name in outputs_of(op)), None)
    if writer is None:
        raise PreconditionNotMetError(f"append_backward: no op of block {where.idx} writes the loss {name!r}")
    # Paddle's tools find the loss by this mark.
    writer.set_attr("op_role", int(writer.attrs.get("op_role", 0)) | int(OpRole.LOSS), AttrType.INT)
    seed = walk.name_of(name)
    fill = OpDesc(walk.manager.op_for("constant"), {}, {"Out": [seed]})
    fill.set_attr("shape", list(var.shape or ()), AttrType.LONGS)
    fill.set_attr("dtype", int(var.dtype or VarType.FP32), AttrType.INT)
    fill.set_attr("value", 1.0, AttrType.FLOAT)
    fill.set_attr("op_role", int(OpRole.LOSS), AttrType.INT)
    walk.ops.append(fill)
    walk.seed(name, seed)
    found = walk.run([name], trained)
    if not found:
        raise PreconditionNotMetError(
            f"append_backward: loss {name!r} depends on none of the parameters {', '.join(trained)}; check that the "
            "layers between them are not cut by stop_gradient or no_grad_set"
        )
    walk.finish(found)
    return [(p, found[p]) for p in trained if p in found]


def _checked_loss(block: BlockDesc, name: str) -> VarDesc:
    var = block.var(name)
    if var.type is not VarType.LOD_TENSOR or any(d != 1 for d in var.shape or ()) or not differentiable(block, name):
        raise InvalidArgumentError(
            f"append_backward: loss {name!r} is {var.dtype_name()}{list(var.shape or ())}; expected one floating "
            "element, so reduce it first, for example with layers.mean(loss)"
        )
    return var


def _trained(block: BlockDesc, loss: str, parameter_list: Any) -> list[str]:
    """The parameters that append_backward looks for gradients of."""
    root = block.program.blocks[0]
    trained = _names(parameter_list) or [v.name for v in root.vars.values() if v.is_parameter and not v.stop_gradient]
    unknown = [p for p in trained if block.find_var_recursive(p) is None]
    if unknown:
        raise NotFoundError(
            f"append_backward: {', '.join(map(repr, unknown))} is not a variable of the loss's program; a parameter of "
            "another program has no gradient here"
        )
    if not trained:
        raise PreconditionNotMetError(
            f"append_backward: the program of {loss!r} has no parameter that may be trained; create one, or pass "
            "parameter_list"
        )
    return trained


def gradients(
    targets: Any,
    inputs: Any,
    target_gradients: Any = None,
    no_grad_set: Any = None,
    *,
    block: BlockDesc | None = None,
    manager: PackManager | None = None,
) -> list[str | None]:
    """Append the gradients of sum(targets * target_gradients) with respect to `inputs`.

    It may be called on the result of an earlier call.

    Args:
        targets: Variables, or names with `block`.
        inputs: Variables or names.
        target_gradients: Of the targets' shapes; None = ones.
        no_grad_set: Variables through which nothing flows.
        block: The block of the targets, where these are names.
        manager: The packs that say how ops are differentiated; None = those in use.

    Returns:
        Names of the gradients, None for an input that the targets do not depend on.

    Raises:
        NotDifferentiableError: With the path, when an op has no gradient.
        InvalidArgumentError: When lists are not of one length.
    """
    target_names, input_names, given = _names(targets), _names(inputs), _names(target_gradients)
    where = _block_of(targets[0] if isinstance(targets, list | tuple) else targets, block)
    if given and len(given) != len(target_names):
        raise InvalidArgumentError(
            f"gradients: {len(target_names)} targets but {len(given)} target_gradients; expected one for each, or None"
        )
    for name in (*target_names, *input_names, *given):
        where.var(name)
    no_grad = _stopped(where, no_grad_set) - set(input_names)
    walk = Backward(where, no_grad, manager or default_manager())
    for i, name in enumerate(target_names):
        if given:
            walk.seed(name, given[i])
            continue
        seed = walk.name_of(name)
        ones = OpDesc(walk.manager.op_for("filled_like"), {"X": [name]}, {"Out": [seed]})
        ones.set_attr("value", 1.0, AttrType.FLOAT)
        walk.ops.append(ones)
        walk.seed(name, seed)
    found = walk.run(target_names, input_names)
    walk.finish()
    return [found.get(n) for n in input_names]
