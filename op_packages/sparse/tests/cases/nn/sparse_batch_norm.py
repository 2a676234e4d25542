"""Cases of sparse_batch_norm and of its gradient."""

from __future__ import annotations

from ._norm import records

CASES = records("sparse_batch_norm")
