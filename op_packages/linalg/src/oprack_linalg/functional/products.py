"""Products and norms of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def matmul(x: Tensor, y: Tensor, transpose_x: bool = False, transpose_y: bool = False) -> Tensor:
    """The product of matrices in the last two dims, the others broadcast; each transposed on demand."""
    return F.matmul_v2(x, y, trans_x=transpose_x, trans_y=transpose_y)


def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """The product of two matrices."""
    return F.matmul_v2(input, mat2)


def outer(x: Tensor, y: Tensor) -> Tensor:
    r"""$$out_{ij} = x_i y_j$$ of the flat tensors."""
    return F.matmul_v2(x.reshape([-1, 1]), y.reshape([1, -1]))


def inner(x: Tensor, y: Tensor) -> Tensor:
    r"""$$\sum_k x_{\ldots k} y_{\ldots k}$$ over the last dims of both."""
    if not x.ndim or not y.ndim:
        return x * y
    found = F.matmul_v2(x.reshape([-1, x.shape[-1]]), y.reshape([-1, y.shape[-1]]), trans_y=True)
    return found.reshape([*x.shape[:-1], *y.shape[:-1]])


def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products as an equation says: "ij,jk->ik" is the product of two matrices."""
    given = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], list | tuple) else list(operands)
    found = F.einsum(given, equation=equation.replace(" ", ""))
    return found.out if isinstance(found, tuple) else found  # type: ignore[attr-defined]


def norm(x: Tensor, p: float | str = "fro", axis: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:
    r"""$$(\sum_i |x_i|^p)^{1/p}$$ over all dims or some; "fro" is 2; math.inf the largest |x|, 0 how many are not 0."""
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
    r"""$$(\sum_i |x_i - y_i|^p)^{1/p}$$ after broadcasting."""
    return F.dist(x, y, p=float(p))


def inv(x: Tensor) -> Tensor:
    """The inverse of each matrix in the last two dims."""
    return F.inverse(x)


def det(x: Tensor) -> Tensor:
    """The determinant of each matrix in the last two dims."""
    return F.determinant(x)
