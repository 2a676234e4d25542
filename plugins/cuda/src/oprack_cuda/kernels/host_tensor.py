"""Products of values that meet in one place, on the host."""

from __future__ import annotations

from oprack_tensor.kernels.put_along_axis import put_along_axis

from oprack_cuda.host_kernel import kernels_on_host

globals().update(kernels_on_host(__name__, put_along_axis))
