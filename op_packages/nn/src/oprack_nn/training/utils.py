"""What training loops do with the gradients and values of parameters: `oprack.nn.utils.clip_grad_norm_`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from oprack import functional as F
from oprack import no_grad, to_tensor
from oprack.errors import InvalidArgumentError, PreconditionNotMetError

if TYPE_CHECKING:
    from oprack import Tensor


def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False
) -> Tensor:
    r"""Scale all gradients together so that their common norm is at most max_norm:
    $$g_i \cdot \min(1, max\_norm / (\|g\| + 10^{-6}))$$.

    Args:
        parameters: Tensors; those without a gradient are left out.
        max_norm: The largest norm.
        norm_type: p of the p-norm; math.inf for the largest absolute value.
        error_if_nonfinite: Whether a norm that is infinite or NaN is an error.

    Returns:
        The norm before scaling.

    Raises:
        PreconditionNotMetError: The norm is not finite, and that is an error.
    """
    gradients = _gradients(parameters)
    if not gradients:
        return to_tensor(0.0)
    with no_grad():
        if math.isinf(norm_type):
            sizes = [abs(g).max() for g in gradients]
            total = sizes[0]
            for size in sizes[1:]:
                total = size if float(size) > float(total) else total
        else:
            total = _sum([(abs(g) ** norm_type).sum() for g in gradients]) ** (1.0 / norm_type)
        norm = float(total)
        if error_if_nonfinite and not math.isfinite(norm):
            raise PreconditionNotMetError(
                f"clip_grad_norm_: the norm of {len(gradients)} gradients is {norm}; expected a finite one. "
                "Look for the first that is not with oprack.interpreter.check_finite()"
            )
        factor = max_norm / (norm + 1e-6)
        if not factor >= 1.0:
            for g in gradients:
                g.set_value(g * factor)
    return total


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Cut every element of every gradient to [-clip_value, clip_value].

    Args:
        parameters: Tensors; those without a gradient are left out.
        clip_value: The largest absolute value.
    """
    with no_grad():
        for g in _gradients(parameters):
            g.set_value(g.clip(-clip_value, clip_value))


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of tensors, one after the other.

    Args:
        parameters: The tensors, of one dtype.

    Returns:
        A tensor [elements]; gradients flow back through it.
    """
    return F.concat([p.reshape([-1]) for p in parameters])


def vector_to_parameters(vector: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into tensors, in order; the opposite of parameters_to_vector.

    Args:
        vector: [elements].
        parameters: The tensors.

    Raises:
        InvalidArgumentError: It has more or fewer elements than they.
    """
    targets = list(parameters)
    wanted = sum(p.size for p in targets)
    if vector.size != wanted:
        raise InvalidArgumentError(
            f"vector_to_parameters: {vector.describe()} has {vector.size} elements, the {len(targets)} parameters "
            f"{wanted}; expected as many"
        )
    values, at = vector.numpy().reshape(-1), 0
    for p in targets:
        p.set_value(values[at : at + p.size].reshape(p.shape))
        at += p.size


def _is_tensor(value: Tensor | Iterable[Tensor]) -> TypeGuard[Tensor]:
    return hasattr(value, "requires_grad")


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Any]:
    """The gradients that there are; sparse ones as dense tensors, which replace them."""
    found = []
    for p in [parameters] if _is_tensor(parameters) else parameters:
        if p.grad is not None:
            if p.grad.is_sparse:
                p.grad = to_tensor(p.grad.numpy(), place=p.place)
            found.append(p.grad)
    return found


def _sum(terms: Sequence[Any]) -> Any:
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
