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


@hookimpl
def oprack_commands(register: Register) -> None:
    """The command `oprack launch`."""
    register.command("launch", f"{__package__}.launch:configure", "run a program on several ranks")


@hookimpl
def oprack_variables(register: Register) -> None:
    """What the launcher tells its ranks."""
    register.variable(
        "OPRACK_LAUNCH_REPORTS",
        default="none",
        meaning="The folder in which ranks say why they ended; `oprack launch` sets it for its ranks.",
    )
    register.variable(
        "OPRACK_MPI",
        default="the first mpiexec that is found",
        meaning="The MPI that `oprack launch` uses: mpich, openmpi, impi, or the path of an mpiexec.",
    )
