"""Cases of sparse_pow and of its gradient."""

from __future__ import annotations

from .._unary import records

CASES = records("sparse_pow", lambda x: x**3, lambda x: 3 * x**2, attrs={"factor": 3.0})
