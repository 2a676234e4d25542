"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register: Register) -> None:
    """Mixed precision of eager calls."""
    register.layer("autocast", f"{__package__}.autocast:autocast", namespace="amp")
    register.layer("GradScaler", f"{__package__}.grad_scaler:GradScaler", namespace="amp")
