"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """The op of an engine and its kernels, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register: Register) -> None:
    """What speaks for ONNX Runtime."""
    register.library("onnxruntime", f"{__package__}.library:LIBRARY")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Stretches of ops become engines before other libraries rewrite them; where oneDNN serves, for those who ask."""
    register.pass_(
        "onnxruntime_subgraph",
        f"{__package__}.subgraph:make_engines",
        stage="lower",
        place="cpu",
        library="onnxruntime",
        before=["numba_fuse_conv2d", "onednn_fuse_attention", "onednn_fuse_conv2d", "onednn_fuse_matmul"],
        reorders_sums=True,
        optional="onednn",
    )
