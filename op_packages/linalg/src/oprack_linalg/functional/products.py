"""Products and norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """Multiplies matrices in the last two dims; leading dims are broadcast.

    Args:
        x: A tensor [..., n, k], or a vector [k].
        y: A tensor [..., k, m], or a vector [k].
        transpose_x: Whether the last two dims of x are swapped first.
        transpose_y: Whether the last two dims of y are swapped first.

    Returns:
        Tensor [..., n, m], without the dim of a vector.
    """
    return F.matmul_v2(x, y, trans_x=transpose_x, trans_y=transpose_y)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """Multiplies two matrices.

    Args:
        input: A matrix [n, k], or a batch of them.
        mat2: A matrix [k, m], or a batch of them.

    Returns:
        Tensor [n, m].
    """
    return F.matmul_v2(input, mat2)


def outer(x: Tensor, y: Tensor) -> Tensor:
    """Computes the outer product of two flattened tensors, $$out_{ij} = x_i y_j$$.

    Args:
        x: A tensor of n elements.
        y: A tensor of m elements, of the dtype of x.

    Returns:
        Tensor [n, m].
    """
    return F.matmul_v2(x.reshape([-1, 1]), y.reshape([1, -1]))


def inner(x: Tensor, y: Tensor) -> Tensor:
    r"""Computes inner products over the last dims, $$\sum_k x_{\ldots k} y_{\ldots k}$$.

    Args:
        x: A tensor [..., k], or without dims.
        y: A tensor [..., k], or without dims, of the dtype of x.

    Returns:
        Tensor [*x.shape[:-1], *y.shape[:-1]]; the plain product if either has no dims.
    """
    if not x.ndim or not y.ndim:
        return x * y
    found = F.matmul_v2(x.reshape([-1, x.shape[-1]]), y.reshape([-1, y.shape[-1]]), trans_y=True)
    return found.reshape([*x.shape[:-1], *y.shape[:-1]])


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums products of elements as an equation in Einstein's notation says.

    Args:
        equation: Letters of the dims of each operand, and after -> those of the result: "ij,jk->ik" multiplies
            matrices.
        operands: Tensors, one by one or as one list.

    Returns:
        Tensor with the dims that the equation names.
    """
    given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    found = F.einsum(given, equation=equation.replace(" ", ""))
    return found.out if isinstance(found, tuple) else found  # type: ignore[attr-defined]


def norm(x: Tensor, p: float | str = "fro", axis: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    r"""Computes the p-norm over all dims or some, $$(\sum_i |x_i|^p)^{1/p}$$.

    Args:
        x: A tensor of floats.
        p: Order of the norm; "fro" is 2, math.inf the largest magnitude, -math.inf the smallest, 0 the number of
            elements other than 0.
        axis: A dim or several, whose elements count as one vector; None: all.
        keepdim: Whether reduced dims stay, with size 1.

    Returns:
        Tensor of the dtype of x.

    Raises:
        InvalidArgumentError: p is a string other than "fro".
    """
    if isinstance(p, str) and p != "fro":
        from oprack.errors import InvalidArgumentError

        raise InvalidArgumentError(f'norm: p is {p!r}; expected a number or "fro"')
    order = 2.0 if p == "fro" else float(p)
    if order == 2.0:
        return F.sqrt((x * x).sum(axis, keepdim))
    if math.isinf(order):
        return abs(x).max(axis, keepdim) if order > 0 else abs(x).min(axis, keepdim)
    if order == 0.0:
        return x.astype("bool").astype(x.dtype).sum(axis, keepdim)
    return (abs(x) ** order).sum(axis, keepdim) ** (1.0 / order)


def dist(x: Tensor, y: Tensor, p: float = 2.0) -> Tensor:
    r"""Computes the p-norm of the difference after broadcasting, $$(\sum_i |x_i - y_i|^p)^{1/p}$$.

    Args:
        x: A tensor of floats.
        y: A tensor whose shape broadcasts with that of x.
        p: Order of the norm; math.inf and 0 as in norm.

    Returns:
        Tensor of one element.
    """
    return F.dist(x, y, p=float(p))


def inv(x: Tensor) -> Tensor:
    """Inverts each matrix in the last two dims.

    Args:
        x: Matrices [..., n, n], floats.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.inverse(x)


def det(x: Tensor) -> Tensor:
    """Computes the determinant of each matrix in the last two dims.

    Args:
        x: Matrices [..., n, n], floats.

    Returns:
        Tensor [...].
    """
    return F.determinant(x)
