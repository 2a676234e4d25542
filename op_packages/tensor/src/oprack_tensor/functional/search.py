"""Elements in order, and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import functional as F

if TYPE_CHECKING:
    from oprack import Tensor


def topk(x: Tensor, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    """The k largest, or smallest, elements of a dim, and where they are: (values, indices)."""
    found = F.top_k_v2(x, k=int(k), axis=int(axis), largest=largest, sorted=sorted)
    return found.out, found.indices


def sort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """The elements of a dim in ascending order; where they were says argsort."""
    return F.argsort(x, axis=int(axis), descending=descending).out


def argsort(x: Tensor, axis: int = -1, descending: bool = False) -> Tensor:
    """Where the elements of a dim, in ascending order, are."""
    return F.argsort(x, axis=int(axis), descending=descending).indices
