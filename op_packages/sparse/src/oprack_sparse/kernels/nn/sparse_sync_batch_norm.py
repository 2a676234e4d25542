"""Kernels of sparse_sync_batch_norm and of its gradient."""

from __future__ import annotations

from oprack.kernel import kernel
from oprack.types import FLOATS

from oprack_sparse.kernels.nn._norm import grad_by, norm_by

sparse_sync_batch_norm = kernel("sparse_sync_batch_norm", dtypes=FLOATS)(norm_by("sync_batch_norm"))
sparse_sync_batch_norm_grad = kernel("sparse_sync_batch_norm_grad", dtypes=FLOATS)(grad_by("sync_batch_norm_grad"))
