"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack exec`."""
    register.command("exec", f"{__package__}.command:configure", "run a program that imports paddle, served by oprack")
