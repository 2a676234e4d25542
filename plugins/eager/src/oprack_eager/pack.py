"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack stubs`."""
    register.command(
        "stubs",
        f"{__package__}.stubs:configure",
        "write type stubs of oprack.functional, from which editors complete ops and arguments",
    )
