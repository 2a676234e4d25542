"""Kernels of repeat_interleave and of its gradient."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array, ArrayModule, kernel
from oprack.tensor import ShapeOnly

from oprack_tensor.kernels._reduce import sum_over


@kernel("repeat_interleave")
def repeat_interleave(
    X: Array, RepeatsTensor: Array | None = None, *, Repeats: int, dim: int, xp: ArrayModule
) -> Array:
    """Parts one after the other."""
    if RepeatsTensor is not None and RepeatsTensor.size and int(RepeatsTensor.min()) < 0:
        raise InvalidArgumentError(
            f"op repeat_interleave: RepeatsTensor holds {int(RepeatsTensor.min())}; expected numbers of at least 0"
        )
    return xp.repeat(X, Repeats if RepeatsTensor is None else RepeatsTensor, axis=dim)


@kernel("repeat_interleave_grad")
def repeat_interleave_grad(
    X: ShapeOnly, Out_grad: Array, RepeatsTensor: Array | None = None, *, Repeats: int, dim: int, xp: ArrayModule
) -> Array:
    """Sums over the repetitions."""
    dim, size = dim % len(X.shape), X.shape[dim]
    if RepeatsTensor is None:
        lead, behind = X.shape[:dim], X.shape[dim + 1 :]
        return sum_over(Out_grad.reshape(*lead, size, Repeats, *behind), dim + 1, xp)
    grad = xp.zeros(X.shape, Out_grad.dtype)
    xp.add.at(grad, (slice(None),) * dim + (xp.repeat(xp.arange(size), RepeatsTensor),), Out_grad)
    return grad
