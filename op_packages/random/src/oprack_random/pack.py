"""Entry point of the pack: tells oprack where its manifest is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Register the ops and kernels that ops.toml beside this file lists."""
    register.manifest(__package__)
