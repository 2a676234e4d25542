"""What tensors are and list, and the way from one layout to another: methods of Tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oprack import functional as F
from oprack.errors import InvalidArgumentError
from oprack.tensor import SparseCooTensor, SparseCsrTensor, SparseTensor

if TYPE_CHECKING:
    from oprack import Tensor


def _held(x: Tensor, *kinds: type, name: str) -> Any:
    """The value of an eager tensor, which must be of one of these classes."""
    value = x.value
    if not isinstance(value, kinds):
        expected = " or ".join(k.__name__ for k in kinds)
        raise InvalidArgumentError(f"{name}: got {x.describe()}; expected a {expected}")
    return value


def is_sparse_coo(x: Tensor) -> bool:
    """Whether a tensor is sparse and lists coordinates."""
    return isinstance(x.value, SparseCooTensor)


def is_sparse_csr(x: Tensor) -> bool:
    """Whether a tensor is sparse and lists rows."""
    return isinstance(x.value, SparseCsrTensor)


def to_dense(x: Tensor) -> Tensor:
    """All elements of a sparse tensor; op sparse_to_dense."""
    return F.sparse_to_dense(x)


def to_sparse_coo(x: Tensor, sparse_dim: int) -> Tensor:
    """Converts a tensor to coordinate format (COO): the elements other than zero and their coordinates.

    Op sparse_to_sparse_coo.

    Args:
        x: A dense tensor, or one in CSR.
        sparse_dim: How many leading dims coordinates have; the others stay dense in each element.

    Returns:
        The sparse tensor.
    """
    return F.sparse_to_sparse_coo(x, sparse_dim=sparse_dim)


def to_sparse_csr(x: Tensor) -> Tensor:
    """The elements of a matrix, or of a batch of them, row by row; op sparse_to_sparse_csr."""
    return F.sparse_to_sparse_csr(x)


def coalesce(x: Tensor) -> Tensor:
    """Each element listed once, sorted; what was listed several times is added up; op sparse_coalesce."""
    return F.sparse_coalesce(x)


def values(x: Tensor) -> Tensor:
    """The listed elements of a sparse tensor: [n, dense dims ...]; op sparse_values."""
    return F.sparse_values(x)


def indices(x: Tensor) -> Tensor:
    """The coordinates of the listed elements, [sparse dims, n]; op sparse_indices in a program."""
    from oprack import to_tensor

    if not hasattr(x, "__oprack_value__"):
        return F.sparse_indices(x)
    return to_tensor(_held(x, SparseCooTensor, name="indices").indices)


def crows(x: Tensor) -> Tensor:
    """Where each row of a tensor in CSR begins, and the end: [rows + 1], of a batch for each matrix."""
    from oprack import to_tensor

    return to_tensor(_held(x, SparseCsrTensor, name="crows").crows)


def cols(x: Tensor) -> Tensor:
    """The columns of the listed elements of a tensor in CSR: [n]."""
    from oprack import to_tensor

    return to_tensor(_held(x, SparseCsrTensor, name="cols").cols)


def nnz(x: Tensor) -> int:
    """How many elements a sparse tensor lists."""
    return int(_held(x, SparseTensor, name="nnz").nnz)
