"""`oprack.sparse.nn`: networks over sparse tensors."""

from __future__ import annotations

from oprack_sparse import nn

__all__ = ["nn"]
