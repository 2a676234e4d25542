"""sparse_coalesce and its gradient."""

from __future__ import annotations

from oprack_sparse.ops.unary._family import GradFromX, Unary


class SparseCoalesce(Unary, type="sparse_coalesce"):
    r"""$$out.values_j = \sum_{k : i_k = j} x.values_k$$: each element is listed once, sorted by coordinates."""


class SparseCoalesceGrad(GradFromX, of=SparseCoalesce):
    r"""$$x@GRAD.values_k = out@GRAD_{i_k}$$"""
