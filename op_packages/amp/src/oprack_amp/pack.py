"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl


@hookimpl
def oprack_ops(register):
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_layers(register):
    """Mixed precision of eager calls."""
    register.layer("autocast", f"{__package__}.autocast:autocast", namespace="amp")
    register.layer("GradScaler", f"{__package__}.grad_scaler:GradScaler", namespace="amp")
