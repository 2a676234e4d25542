"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Kernels for ops of other packs, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register: Register) -> None:
    """What speaks for numba."""
    register.library("numba", f"{__package__}.library:LIBRARY")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Convolutions take in what follows them, unless oneDNN's passes did so before."""
    register.pass_(
        "numba_fuse_conv2d",
        "oprack_nn.passes.post_ops:fuse_conv2d",
        stage="lower",
        place="cpu",
        library="numba",
        after=["onednn_chain_conv2d"],
        reorders_sums=True,
    )
