"""Kernels that fit a call equally well: when that is so, which one wins, and what authors and users can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oprack.errors import DuplicateKernelError
from oprack.kernel.decorator import KernelSpec


def settle_tie(
    op_type: str,
    owner: str,
    tied: Sequence[KernelSpec],
    on_tie: Callable[[str, tuple[str, ...]], None] | None,
    preferred: Sequence[str] = (),
) -> KernelSpec:
    """Choose one of several kernels that fit equally well, so that no pack can stop an op of another.

    The kernel of a preferred distribution wins, then that of the op's own, then that of the distribution whose name
    sorts first, and within one distribution the kernel that was declared first.

    Args:
        op_type: The op.
        owner: The distribution that defines it.
        tied: The kernels.
        on_tie: Called with a message and the owners of the others, unless a preferred distribution decides alone; None
            for no call.
        preferred: Distributions, the most preferred one first.

    Returns:
        The kernel.

    Raises:
        DuplicateKernelError: Several of the winning kernels come from the op's own pack, whose author has to choose.
    """
    order = [*preferred, owner]
    winner = min((s.owner for s in tied), key=lambda name: (order.index(name) if name in order else len(order), name))
    finalists = [spec for spec in tied if spec.owner == winner]
    if not owner or (len(finalists) > 1 and winner == owner):
        raise DuplicateKernelError(tie_text(op_type, owner, tied))
    if on_tie is not None and (winner not in preferred or len(finalists) > 1):
        others = tuple(dict.fromkeys(s.owner for s in tied if s is not finalists[0]))
        why = "which brings the op" if winner == owner else "whose name sorts first"
        used = f"{finalists[0].name} of {winner}, {why}, is used"
        on_tie(f"{_describe_tie(op_type, tied)}; {used}; {_advice(owner, tied)}", others)
    return finalists[0]


def tie_text(op_type: str, owner: str, tied: Sequence[KernelSpec]) -> str:
    """The error message for a tie: the kernels, and what an author or a user can do."""
    return f"{_describe_tie(op_type, tied)}; {_advice(owner, tied)}"


def _describe_tie(op_type: str, tied: Sequence[KernelSpec]) -> str:
    first = tied[0]
    dtypes = frozenset.intersection(*(s.dtypes for s in tied))
    kernels = [
        f"{s.name} of {s.owner} ({s.where}), library {s.library}"
        + (f", when {s.when.text}" if s.when is not None else "")
        for s in tied
    ]
    count = {2: "two", 3: "three"}.get(len(tied), str(len(tied)))
    return (
        f"op {op_type}: {count} kernels for place {first.place}, dtype {', '.join(sorted(dtypes))} fit equally well, "
        f"with priority {first.priority}: {' and '.join(kernels)}"
    )


def _advice(owner: str, tied: Sequence[KernelSpec]) -> str:
    """What an author can do about a tie, then what a user can do."""
    text = "an author can give one a higher priority (priority=...) or a predicate (when=...) that keeps it out"
    # The op's own pack last: without it there would be no op.
    owners = sorted({s.owner for s in tied}, key=lambda name: (name == owner, name))
    if len(owners) > 1:
        named = [name for name in owners if name]
        text += "; a user can say whose comes first: " + " or ".join(f"OPRACK_PREFER={name}" for name in named)
        text += ", or leave a pack out: " + " or ".join(f"OPRACK_BLOCK={name}" for name in named)
    return text
