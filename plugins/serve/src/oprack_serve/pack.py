"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl


@hookimpl
def oprack_commands(register):
    """The command `oprack serve`."""
    register.command("serve", f"{__package__}.command:configure", "serve models by the open inference protocol")
