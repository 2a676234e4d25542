"""Sums and products of sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def add(x: Tensor, y: Tensor) -> Tensor:
    """$$x + y$$ of sparse tensors of one layout and shape; a dense y [last dim of x] is added to x's values alone."""
    return F.sparse_add(x, y)


def subtract(x: Tensor, y: Tensor) -> Tensor:
    """$$x - y$$ of sparse tensors of one layout and shape."""
    return F.sparse_subtract(x, y)


def multiply(x: Tensor, y: Tensor | float) -> Tensor:
    r"""$$x \cdot y$$ of sparse tensors of one layout and shape, or with a number."""
    if isinstance(y, int | float):
        return F.sparse_scale(x, scale=float(y), bias=0.0, bias_after_scale=True)
    return F.sparse_multiply(x, y)


def divide(x: Tensor, y: Tensor | float) -> Tensor:
    """$$x / y$$ by a number, or of two sparse tensors; then every element is listed, since 0/0 is NaN."""
    if isinstance(y, int | float):
        return F.sparse_divide_scalar(x, scalar=float(y))
    return F.sparse_divide(x, y)


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """The product of a sparse matrix, or a batch, with a dense or sparse one."""
    return F.sparse_matmul(x, y)


def masked_matmul(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """The product of two dense matrices where a sparse mask lists a place."""
    return F.sparse_masked_matmul(x, y, mask)


def mv(x: Tensor, vec: Tensor) -> Tensor:
    """The product of a sparse matrix and a dense vector."""
    return F.sparse_mv(x, vec)


def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    r"""$$beta \cdot input + alpha \cdot x y$$, dense, or with all three sparse."""
    return F.sparse_addmm(input, x, y, beta=float(beta), alpha=float(alpha))
