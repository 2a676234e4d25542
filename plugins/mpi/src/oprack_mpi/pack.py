"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register


@hookimpl
def oprack_communicators(register: Register) -> None:
    """The engine of worlds with several ranks."""
    register.communicator("mpi", f"{__package__}.communicator:open_world")
