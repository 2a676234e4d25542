"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The commands `oprack ui` and `oprack graph`."""
    register.command("ui", f"{__package__}.command:configure", "show packs, ops and a model on a page of this machine")
    register.command("graph", f"{__package__}.command:configure_graph", "draw the graph of a model as SVG")
