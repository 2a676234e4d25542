"""What oprack finds through the entry point: hook implementations, and nothing heavy to import."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_kernels(register: Register) -> None:
    """Bring the kernels that ops.toml lists, of ops of other packs."""
    register.manifest(__package__)


@hookimpl
def oprack_libraries(register: Register) -> None:
    """Bring what speaks for the library."""
    register.library("scipy_special", f"{__package__}.library:LIBRARY")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Bring the pass."""
    register.pass_(
        "fuse_log_sum_exp",
        f"{__package__}.passes.log_sum_exp:fuse_log_sum_exp",
        stage="fuse",
        reorders_sums=True,
        inference_only=False,
    )
