"""Elements in order, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """Finds the k largest, or smallest, elements along a dim.

    Args:
        x: The tensor.
        k: How many.
        axis: The dim; negative ones count from the end.
        largest: Whether to find the largest; False: the smallest.
        sorted: Whether they come in order, the largest (or smallest) first.

    Returns:
        (values, indices): the elements in the dtype of x, and their places along axis as int64.
    """
    found = F.top_k_v2(x, k=int(k), axis=int(axis), largest=largest, sorted=sorted)
    return found.out, found.indices


def sort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """Sorts the elements along a dim; argsort says where they were.

    Args:
        x: The tensor.
        axis: The dim; negative ones count from the end.
        descending: Whether the largest comes first.

    Returns:
        Tensor of the shape and dtype of x.
    """
    return F.argsort(x, axis=int(axis), descending=descending).out


def argsort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """Finds the order that sorts the elements along a dim.

    Args:
        x: The tensor.
        axis: The dim; negative ones count from the end.
        descending: Whether the largest comes first.

    Returns:
        Tensor of int64 of the shape of x: the place of each sorted element in x.
    """
    return F.argsort(x, axis=int(axis), descending=descending).indices
