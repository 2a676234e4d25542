"""Sums and products of sparse tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def add(x: Tensor, y: Tensor) -> Tensor:
    """Adds sparse tensors, $$x + y$$: op sparse_add.

    Args:
        x: A sparse tensor.
        y: A sparse tensor of the layout and shape of x; or a dense vector of the size of its last dim, added to its
            values alone.

    Returns:
        A sparse tensor.
    """
    return F.sparse_add(x, y)


def subtract(x: Tensor, y: Tensor) -> Tensor:
    """Subtracts sparse tensors, $$x - y$$: op sparse_subtract.

    Args:
        x: A sparse tensor.
        y: A sparse tensor of the layout and shape of x.

    Returns:
        A sparse tensor.
    """
    return F.sparse_subtract(x, y)


def multiply(x: Tensor, y: Tensor | float) -> Tensor:
    r"""Multiplies sparse tensors element by element, $$x \cdot y$$, or by a number: op sparse_multiply or sparse_scale.

    Args:
        x: A sparse tensor.
        y: A sparse tensor of the layout and shape of x, or a number.

    Returns:
        A sparse tensor.
    """
    if isinstance(y, int | float):
        return F.sparse_scale(x, scale=float(y), bias=0.0, bias_after_scale=True)
    return F.sparse_multiply(x, y)


def divide(x: Tensor, y: Tensor | float) -> Tensor:
    """Divides sparse tensors element by element, $$x / y$$, or by a number: op sparse_divide or sparse_divide_scalar.

    Args:
        x: A sparse tensor.
        y: A number; or a sparse tensor of the layout and shape of x, and then the result lists every element, since 0/0
            is NaN.

    Returns:
        A sparse tensor.
    """
    if isinstance(y, int | float):
        return F.sparse_divide_scalar(x, scalar=float(y))
    return F.sparse_divide(x, y)


def matmul(x: Tensor, y: Tensor) -> Tensor:
    """Multiplies a sparse matrix, or a batch, with a dense or a sparse one: op sparse_matmul.

    Args:
        x: A sparse tensor [..., n, k].
        y: A dense or sparse tensor [..., k, m].

    Returns:
        Tensor [..., n, m]; sparse if y is.
    """
    return F.sparse_matmul(x, y)


def masked_matmul(x: Tensor, y: Tensor, mask: Tensor) -> Tensor:
    """Multiplies two dense matrices, only where a sparse mask lists an element: op sparse_masked_matmul.

    Args:
        x: A dense matrix [n, k].
        y: A dense matrix [k, m].
        mask: A sparse matrix [n, m], whose values count for nothing.

    Returns:
        A sparse matrix with the elements that mask lists.
    """
    return F.sparse_masked_matmul(x, y, mask)


def mv(x: Tensor, vec: Tensor) -> Tensor:
    """Multiplies a sparse matrix and a dense vector: op sparse_mv.

    Args:
        x: A sparse matrix [n, k].
        vec: A dense vector [k].

    Returns:
        A dense vector [n].
    """
    return F.sparse_mv(x, vec)


def addmm(input: Tensor, x: Tensor, y: Tensor, beta: float = 1.0, alpha: float = 1.0) -> Tensor:
    r"""Adds a matrix to a product of matrices, $$beta \cdot input + alpha \cdot x y$$: op sparse_addmm.

    Args:
        input: A matrix [n, m], dense, or sparse if x and y are both sparse.
        x: A sparse matrix [n, k].
        y: A matrix [k, m], dense or sparse.
        beta: The factor of input.
        alpha: The factor of the product.

    Returns:
        Matrix [n, m], dense if input is.
    """
    return F.sparse_addmm(input, x, y, beta=float(beta), alpha=float(alpha))
