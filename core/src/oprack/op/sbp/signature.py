"""Sbp, Signature and SbpContext: what a rule of splitting is given and returns; signatures from names of dims."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from oprack.errors import InvalidArgumentError
from oprack.python.records import dataclass


@dataclass(frozen=True, slots=True)
class Sbp:
    """How a tensor lies along one axis of a placement: split(dim), broadcast or partial_sum.

    Attributes:
        kind: "S": each rank has a part of dim `dim`; "B": each has the whole; "P": the whole is the sum over the ranks.
        dim: The dim of a split; -1 otherwise.
    """

    kind: str
    dim: int = -1

    def __repr__(self) -> str:
        return f"S({self.dim})" if self.kind == "S" else self.kind


broadcast = Sbp("B")
partial_sum = Sbp("P")


def split(dim: int) -> Sbp:
    """The layout in which each rank has a balanced part of a dim.

    Args:
        dim: Which, from 0.

    Returns:
        The Sbp.

    Raises:
        InvalidArgumentError: The dim is negative, or no integer.
    """
    if not isinstance(dim, int) or isinstance(dim, bool) or dim < 0:
        raise InvalidArgumentError(f"split({dim!r}): expected a dim that counts from 0, such as split(0)")
    return Sbp("S", dim)


_TEXT = re.compile(r"(?:S|split)\((\d+)\)")
_NAMES = {"B": broadcast, "broadcast": broadcast, "P": partial_sum, "partial_sum": partial_sum}


def sbp_of(value: Any) -> Sbp:
    """An Sbp from itself or from its text: "S(0)" or "split(0)", "B" or "broadcast", "P" or "partial_sum".

    Raises InvalidArgumentError for anything else.
    """
    if isinstance(value, Sbp):
        return value
    if isinstance(value, str):
        found = _TEXT.fullmatch(value)
        if found is not None:
            return split(int(found[1]))
        if value in _NAMES:
            return _NAMES[value]
    raise InvalidArgumentError(
        f"sbp {value!r} ({type(value).__name__}); expected oprack.parallel.split(dim), broadcast or partial_sum, or "
        'their text: "split(0)", "broadcast", "partial_sum"'
    )


@dataclass(frozen=True)
class Signature:
    """One way to compute an op on parts.

    Attributes:
        inputs: What each input slot has to be; a slot that is missing is whole on each rank.
        outputs: What each output slot is then; likewise.
        share: (input slot, dim): the sums of partial outputs are means, so each rank's are weighted by its share of
            that dim. None: they are sums.
        sizes: Attribute -> output slot whose shape on this rank it holds, such as the target shape of a reshape.
        attrs: Attributes of the calls on parts, where the op's own ones ask the shape what they mean and a part would
            answer otherwise than the whole, such as "all dims of size 1".
        random: Whether the op draws random numbers, which have to differ from part to part.
        shared: A number that the ranks have to divide, so that all of them get whole groups of elements; 0: any do.
        via: The op that computes this one on parts; it has slots of the same names, and its attributes `start_index`,
            `vocab_size`, `rank`, `nranks` and `ring_id`, where it has them, say which part of what. "": the op itself.
        by_sequence: None where rows may be split between any two of them. Otherwise split(0) is of whole sequences, and
            these are the slots without LoD that have a row for each sequence; others have those of the first LoD.
        same_lod: Slots whose rows the op takes by the LoD of the first of them: they are split where all have that LoD.
    """

    inputs: Mapping[str, Sbp]
    outputs: Mapping[str, Sbp]
    share: tuple[str, int] | None = None
    sizes: Mapping[str, str] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    random: bool = False
    shared: int = 0
    via: str = ""
    by_sequence: tuple[str, ...] | None = None
    same_lod: tuple[str, ...] = ()


class SbpContext:
    """What a rule of splitting may ask: attributes, and the logical dims of inputs and outputs.

    Args:
        op_type: The op.
        attrs: Its attributes.
        dims: Shapes of the tensors of each slot, inputs and outputs; None for one that is absent.
        with_lod: Input slots whose tensors have LoD.
    """

    def __init__(
        self,
        op_type: str,
        attrs: Mapping[str, Any],
        dims: Mapping[str, Sequence[Sequence[int] | None]],
        with_lod: Collection[str] = (),
    ) -> None:
        self.op_type, self._attrs, self._dims, self._with_lod = op_type, attrs, dims, with_lod

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute's value."""
        return self._attrs.get(name, default)

    def has(self, slot: str) -> bool:
        """Whether a tensor is there."""
        return any(d is not None for d in self._dims.get(slot, ()))

    def has_lod(self, slot: str) -> bool:
        """Whether a tensor of an input slot has LoD."""
        return slot in self._with_lod

    def dim(self, slot: str) -> tuple[int, ...]:
        """The shape of a slot's first tensor; () when it is absent."""
        found = self._dims.get(slot) or [None]
        return tuple(found[0] or ())

    def dims(self, slot: str) -> list[tuple[int, ...]]:
        """The shapes of a slot's tensors."""
        return [tuple(d or ()) for d in self._dims.get(slot, ())]


Letters = Sequence[str | None] | str
"""A name for each dim of a tensor; None, or "." in a text of names, for a dim that is never split."""


def letters(rank: int, start: str = "a") -> list[str | None]:
    """Names for the dims of a tensor: "a", "b" and so on."""
    return [chr(ord(start) + k) for k in range(rank)]


def broadcast_names(ctx: SbpContext, x: str, y: str, out: str) -> tuple[list[str | None], list[str | None]]:
    """Names of the dims of two inputs that are broadcast to the shape of an output, with Paddle's attribute `axis`."""
    xs, ys, outs = ctx.dim(x), ctx.dim(y), ctx.dim(out)
    axis = ctx.attr("axis", -1)
    axis = -1 if axis is None else axis

    def names(shape: Sequence[int], smaller: bool) -> list[str | None]:
        # From dim `axis` on, where trailing dims of size 1 may hang over.
        start = axis if smaller and axis >= 0 and len(xs) != len(ys) else len(outs) - len(shape)
        return [
            chr(ord("a") + at) if 0 <= at < len(outs) and size == outs[at] and size != 1 else None
            for at, size in enumerate(shape, start)
        ]

    return names(xs, len(xs) < len(ys)), names(ys, len(ys) < len(xs))


def merged_names(
    source: Sequence[int], target: Sequence[int]
) -> tuple[list[str | None], list[str | None], dict[str, int]]:
    """Names of the dims of a tensor before and after a reshape: a dim that is split has to stay the first of its group.

    Dims are grouped where products of sizes meet. The outermost dims of two groups get one name. If their sizes are
    equal, a part of one is a part of the other; else that is so for as many equal parts as divide both sizes.

    Args:
        source: The shape before.
        target: The shape after.

    Returns:
        Names before, names after, and for names of dims of two sizes the greatest common divisor of these.
    """
    before: list[str | None] = [None] * len(source)
    after: list[str | None] = [None] * len(target)
    shared: dict[str, int] = {}
    for i, j in _groups(source, target):
        both = math.gcd(source[i], target[j])
        if both > 1:
            before[i] = after[j] = name = f"g{i}"
            if source[i] != target[j]:
                shared[name] = both
    return before, after, shared


def _groups(source: Sequence[int], target: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The outermost dims of groups of one product; none behind the first group that does not meet."""
    i = j = 0
    while i < len(source) and j < len(target):
        if source[i] == 1 or target[j] == 1:  # a dim of size 1 belongs to any group
            i, j = i + (source[i] == 1), j + (target[j] == 1)
            continue
        a, b, start_i, start_j = source[i], target[j], i, j
        while a != b and (i + 1 < len(source) or j + 1 < len(target)):
            if a < b and i + 1 < len(source):
                i += 1
                a *= source[i]
            elif j + 1 < len(target):
                j += 1
                b *= target[j]
            else:
                break
        if a != b:
            return
        yield start_i, start_j
        i, j = i + 1, j + 1


def product_names(
    x: Sequence[int], y: Sequence[int], out: Sequence[int], trans_x: bool, trans_y: bool
) -> tuple[list[str | None], list[str | None], list[str | None]]:
    """Names of the dims of X, Y and Out of a product of matrices, with batch dims that may be broadcast."""
    batch = letters(max(len(x), len(y)) - 2)

    def with_batch(shape: Sequence[int], last: list[str | None]) -> list[str | None]:
        own = batch[len(batch) - (len(shape) - 2) :] if len(shape) > 2 else []
        return [*(n if size != 1 else None for n, size in zip(own, shape, strict=False)), *last]

    rows: list[str | None] = ["k"] if len(x) == 1 else ["k", "m"] if trans_x else ["m", "k"]
    columns: list[str | None] = ["k"] if len(y) == 1 else ["n", "k"] if trans_y else ["k", "n"]
    xs, ys = with_batch(x, rows), with_batch(y, columns)
    outs = [n if n in xs or n in ys else None for n in batch]
    outs += (["m"] if len(x) > 1 else []) + (["n"] if len(y) > 1 else [])
    return xs, ys, outs if len(outs) == len(out) else [None] * len(out)


def product_flops(signatures: Sequence[Signature], ctx: SbpContext) -> int:
    """Multiplications and additions of a product of two inputs, such as one of matrices or a convolution.

    An op is a product if two inputs may be split together so that the output is a sum over the ranks. Each element of
    the output then takes as many multiplications as the smaller of the two inputs has elements for one place in those
    of its dims that the output has as well.

    Args:
        signatures: What the op's rule gives.
        ctx: Attributes and shapes of the call.

    Returns:
        The operations; 0 where the op is no product, or its rule does not tell.
    """
    for signature in signatures:
        split = [slot for slot, s in signature.inputs.items() if s.kind == "S"]
        if len(split) == 2 and signature.share is None and all(s.kind == "P" for s in signature.outputs.values()):
            terms = min(_contracted(slot, signatures, ctx) for slot in split)
            return 2 * terms * sum(math.prod(ctx.dim(slot)) for slot in list(signature.outputs)[:1])
    return 0


def _contracted(slot: str, signatures: Sequence[Signature], ctx: SbpContext) -> int:
    """Elements of an input for one place in the dims that it shares with the output."""
    shape = ctx.dim(slot)
    kept = {
        s.inputs[slot].dim
        for s in signatures
        if slot in s.inputs and s.inputs[slot].kind == "S" and any(o.kind == "S" for o in s.outputs.values())
    }
    return math.prod([n for d, n in enumerate(shape) if d not in kept])
