"""conv3d and conv3d_grad, as conv2d and its gradient are computed, with one dim more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oprack.kernel import Array, KernelContext, KernelSpecialization

from oprack_onednn.kernels.conv2d import find_primitive, window_of
from oprack_onednn.kernels.conv2d_grad import gradients
from oprack_onednn.kernels.declare import onednn_kernel
from oprack_onednn.stretch.callsite import call_site

_FIRST, _LAST = (0, 4, 1, 2, 3), (0, 2, 3, 4, 1)


def _specialize(call: KernelSpecialization) -> Callable[..., Any] | None:
    """A convolution of volumes in the program's order of dims."""
    if call.attrs["data_format"] == "NDHWC":
        return None
    window = window_of(call.attrs)
    return call_site(lambda x, w: find_primitive(x, w, None, *window))


@onednn_kernel("conv3d", specialize=_specialize)
def conv3d(Input: Array, Filter: Array, *, data_format: str, ctx: KernelContext) -> Array:
    last = data_format == "NDHWC"
    x = Input.transpose(_FIRST) if last else Input
    chain = find_primitive(x, Filter, None, *window_of(ctx.attrs))
    if chain is None:
        return NotImplemented
    y = chain.run(x, Filter)
    return y.transpose(_LAST) if last else y


@onednn_kernel("conv3d_grad")
def conv3d_grad(
    Input: Array, Filter: Array, Output_grad: Array, *, data_format: str, ctx: KernelContext
) -> dict[str, Array]:
    last = data_format == "NDHWC"
    x, dy = (a.transpose(_FIRST) if last else a for a in (Input, Output_grad))
    return gradients("conv3d_grad", x, Filter, dy, window_of(ctx.attrs), _LAST if last else None, ctx)
