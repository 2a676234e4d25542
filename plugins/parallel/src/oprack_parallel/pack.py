"""Entry point of the plugin: hook implementations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack import hookimpl

if TYPE_CHECKING:
    from oprack.packs import Register

# The ops that programs on several ranks are made of: role, signature, meaning
ROLES = (
    ("affine", "X; scale bias -> Out", "scale * X + bias"),
    ("permute_dims", "X; axis -> Out XShape", "Dims of X in the order `axis`"),
    ("split_dim", "X; axis num sections -> Out", "Equal parts, or parts of given sizes, along a dim"),
    ("sum_of_ranks", "X; ring_id -> Out", "The sum of X over the ranks of a ring, on each of them"),
    ("rows_of_ranks", "X; ring_id nranks -> Out", "The rows of all ranks of a ring, one after the other"),
    ("sum_of_rows_of_ranks", "X; ring_id nranks -> Out", "This rank's part of the rows of the sum"),
    ("from_one_rank", "X; ring_id root -> Out", "On all ranks of a ring what the rank `root` has"),
)


@hookimpl
def oprack_communicators(register: Register) -> None:
    """The engine of ranks that no mpiexec started."""
    register.communicator("tcp", f"{__package__}.tcp.communicator:open_world")


@hookimpl
def oprack_commands(register: Register) -> None:
    """The commands `oprack parallel` and `oprack launch`."""
    register.command("launch", f"{__package__}.launch.launcher:configure", "run a program on several ranks")
    register.command(
        "parallel",
        f"{__package__}.command:configure",
        "simulate a program on any number of ranks, or measure what messages take here",
    )


@hookimpl
def oprack_vocabulary(register: Register) -> None:
    """Which ops programs that are split over ranks need."""
    for name, signature, meaning in ROLES:
        register.new_role(name, signature, meaning, "programs that oprack.parallel.distribute splits")


@hookimpl
def oprack_variables(register: Register) -> None:
    register.variable(
        "OPRACK_ENGINE",
        default="the engine that is installed, if a launcher started the program",
        meaning="The engine of several ranks that `oprack.parallel.world` opens, as `mpi`; local: this process alone.",
    )
    register.variable(
        "OPRACK_LINKS",
        default="20 us and 5 GB/s",
        meaning="A file of `oprack parallel bench`: what messages take, by which layouts of global tensors are chosen.",
    )
    register.variable(
        "OPRACK_COLLECTIVE_TIMEOUT",
        default="300",
        meaning="Seconds that a collective waits for other ranks before the program ends with a message; 0: for ever.",
    )
    register.variable(
        "OPRACK_CHECK_COLLECTIVES",
        default="256",
        meaning="How many collectives of each communicator are compared among the ranks one by one, so that ranks "
        "which run different ones are told; later ones every 50th time; 0: none.",
    )
    register.variable(
        "OPRACK_LAUNCH_REPORTS",
        default="none",
        meaning="The folder in which ranks say why they ended; `oprack launch` sets it for its ranks.",
    )
    register.variable(
        "OPRACK_MPI",
        default="the first mpiexec that is found",
        meaning="What `oprack launch` starts ranks by: mpich, openmpi, impi, the path of an mpiexec, or tcp.",
    )
    register.variable(
        "OPRACK_MEETING",
        default="where the launcher says",
        meaning="host:port where ranks of the engine tcp meet: an address of rank 0's machine, with a free port.",
    )
    register.variable(
        "OPRACK_JOB_TOKEN",
        default="what the launcher tells of the job, which is no secret",
        meaning="A secret of the job, without which no process joins its ranks of the engine tcp.",
    )
