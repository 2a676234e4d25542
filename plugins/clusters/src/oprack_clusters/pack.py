"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack kubernetes`."""
    register.command(
        "kubernetes", f"{__package__}.kubernetes:configure", "write the manifest of a job that trains on several ranks"
    )
