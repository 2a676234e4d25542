"""Entry point of the pack: hook implementations only."""

from __future__ import annotations

from oprack import hookimpl
from oprack.packs import Register


@hookimpl
def oprack_ops(register: Register) -> None:
    """Every op of this pack, by the strings in ops.toml."""
    register.manifest(__package__)


@hookimpl
def oprack_vocabulary(register: Register) -> None:
    """What moves between ranks in programs that oprack.parallel.distribute splits."""
    register.role("sum_of_ranks", "c_allreduce_sum")
    register.role("rows_of_ranks", "c_allgather")
    register.role("sum_of_rows_of_ranks", "c_reducescatter")
    register.role("from_one_rank", "c_broadcast")


@hookimpl
def oprack_passes(register: Register) -> None:
    """Fused all-reduces, which rely on memory that several variables share."""
    register.preparation("coalesce_tensor", f"{__package__}.unfuse:unfuse_all_reduce")
