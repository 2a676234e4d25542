"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl


@hookimpl
def oprack_ops(register):
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_places(register):
    """Memory of a GPU, and the page-locked memory of the host that copies to it start from."""
    register.place("cuda", f"{__package__}.context:open_cuda")
    register.place("cuda_pinned", f"{__package__}.context:open_pinned")


@hookimpl
def oprack_libraries(register):
    """What speaks for CuPy and the driver, and for cuDNN."""
    register.library("cuda", f"{__package__}.library:CUDA")
    register.library("cudnn", f"{__package__}.dnn:CUDNN")
