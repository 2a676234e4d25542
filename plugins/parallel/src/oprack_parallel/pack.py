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
def oprack_commands(register: Register) -> None:
    """The command `oprack parallel`."""
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
