"""Draws that follow the order of NumPy's generators, on the host."""

from __future__ import annotations

from oprack_random.kernels.multinomial import multinomial

from oprack_cuda.host_kernel import kernels_on_host

globals().update(kernels_on_host(__name__, multinomial))
