"""Entry point of the pack: tells oprack where its manifest is."""

from __future__ import annotations

from typing import Any

from oprack import hookimpl


@hookimpl
def oprack_ops(register: Any) -> None:
    """Register the ops and kernels that ops.toml beside this file lists."""
    register.manifest(__package__)
