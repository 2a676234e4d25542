"""What oprack finds through the entry point: hook implementations, and nothing heavy to import."""

from __future__ import annotations

from typing import Any

from oprack import hookimpl


@hookimpl
def oprack_ops(register: Any) -> None:
    """Bring the ops and kernels that ops.toml lists."""
    register.manifest(__package__)
