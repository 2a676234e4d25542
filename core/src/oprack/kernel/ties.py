"""Ties: two kernels of one op that fit a call equally well, and which of them is preferred."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oprack.errors import DuplicateKernelError
from oprack.kernel.decorator import KernelSpec

Rank = tuple[int, int, bool, int]


def ranked(spec: KernelSpec, asked: int, idle: int) -> Rank:
    """What decides between kernels that fit: priority, then containers or a predicate before none, then `min_numel`.

    Args:
        spec: The kernel.
        asked: How many inputs have to be containers.
        idle: How many of these inputs are absent, so that their containers say nothing about this call.
    """
    return -spec.priority, idle, spec.when is None and asked == idle, -spec.min_numel


def may_tie(one: KernelSpec, other: KernelSpec) -> bool:
    """Whether two kernels tie in every call that both fit; containers aside."""
    same = (one.place, one.library, one.priority, one.min_numel) == (
        other.place,
        other.library,
        other.priority,
        other.min_numel,
    )
    # Two predicates may hold at once, but nobody can say so without a call; the same object always does.
    return same and one.when is other.when and bool(one.dtypes & other.dtypes)


def untied(
    op_type: str, owner: str, tied: Sequence[KernelSpec], on_tie: Callable[[str, tuple[str, ...]], None] | None
) -> KernelSpec:
    """Settle a tie for the op's own pack, so that no other pack can stop the op.

    Args:
        op_type: The op.
        owner: The distribution that defines it.
        tied: The kernels that tie.
        on_tie: Called with a text and the other owners; None when nobody asks.

    Returns:
        The only one of the kernels that comes from the op's own pack.

    Raises:
        DuplicateKernelError: None or several of them come from there.
    """
    own = [spec for spec in tied if spec.owner == owner and owner]
    if len(own) != 1:
        raise DuplicateKernelError(tie_text(op_type, owner, tied))
    if on_tie is not None:
        others = tuple(dict.fromkeys(s.owner for s in tied if s is not own[0]))
        on_tie(
            f"{_both(op_type, tied)}; the one of {owner}, which brings the op, is used; {_ways(owner, tied)}", others
        )
    return own[0]


def tie_text(op_type: str, owner: str, tied: Sequence[KernelSpec]) -> str:
    """The kernels that tie, and the ways out."""
    return f"{_both(op_type, tied)}; {_ways(owner, tied)}"


def _both(op_type: str, tied: Sequence[KernelSpec]) -> str:
    one = tied[0]
    dtypes = frozenset.intersection(*(s.dtypes for s in tied))
    named = [
        f"{s.name} of {s.owner} ({s.where}), library {s.library}"
        + (f", when {s.when.text}" if s.when is not None else "")
        for s in tied
    ]
    many = {2: "two", 3: "three"}.get(len(tied), str(len(tied)))
    return (
        f"op {op_type}: {many} kernels for place {one.place}, dtype {', '.join(sorted(dtypes))} fit equally well, "
        f"with priority {one.priority}: {' and '.join(named)}"
    )


def _ways(owner: str, tied: Sequence[KernelSpec]) -> str:
    """How to get out: what an author can do, then what a user can, who leaves out the later pack."""
    text = "an author can give one a higher priority (priority=...) or a predicate (when=...) that keeps it out"
    owners = sorted({s.owner for s in tied}, key=lambda name: (name == owner, name))
    if len(owners) > 1:
        text += "; a user can leave a pack out: " + " or ".join(f"OPRACK_BLOCK={name}" for name in owners if name)
    return text
