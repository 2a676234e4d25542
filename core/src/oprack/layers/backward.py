"""append_backward and gradients for Variables."""

from __future__ import annotations

from typing import Any

from oprack import autodiff
from oprack.layers.user_line import errors_at_user_line
from oprack.layers.variable import Parameter, Variable, check_variable, variable_of


def append_backward(
    loss: Variable, parameter_list: Any = None, no_grad_set: Any = None
) -> list[tuple[Parameter, Variable]]:
    """Append the gradient ops of a loss to its block.

    Optimizers do this themselves. See `oprack.autodiff.append_backward` for details and for what it raises.

    Args:
        loss: A Variable with one element.
        parameter_list: Parameters, or their names, whose gradients are wanted; default: all that are trainable.
        no_grad_set: Variables, or their names, into which no gradient flows.

    Returns:
        (parameter, gradient), in order of the parameters.
    """
    check_variable(loss, "loss", "append_backward")
    program, block = loss.program, loss.block
    with errors_at_user_line():
        pairs = autodiff.append_backward(loss, parameter_list, no_grad_set)
    root = program.global_block()
    return [(Parameter(program, root, root.var(p)), variable_of(program, g, block)) for p, g in pairs]


def gradients(
    targets: Variable | list[Variable],
    inputs: Variable | list[Variable],
    target_gradients: Any = None,
    no_grad_set: Any = None,
) -> list[Variable | None]:
    """Append the gradients of sum(targets * target_gradients) with respect to inputs.

    The results may be targets of another call, for higher orders. See `oprack.autodiff.gradients` for details and for
    what it raises.

    Args:
        targets: A Variable or a list.
        inputs: A Variable or a list.
        target_gradients: A Variable or a list, as targets; None is 1 everywhere.
        no_grad_set: Variables, or their names, into which no gradient flows.

    Returns:
        A Variable for each input; None where there is no gradient.
    """
    first = targets[0] if isinstance(targets, list | tuple) and targets else targets
    check_variable(first, "targets", "gradients")
    with errors_at_user_line():
        names = autodiff.gradients(targets, inputs, target_gradients, no_grad_set)
    return [None if n is None else variable_of(first.program, n, first.block) for n in names]  # type: ignore[union-attr]
