"""Which signature of an op is used: those that its rule gives, and the one that costs least from where tensors lie."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from oprack.errors import DefinitionError
from oprack.op.sbp import Sbp, SbpContext, Signature, broadcast
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.boxing import cost
from oprack.parallel.layouts.layout import Layout, Placement, dual, of_input

_MOST = 256
"""So many combinations of signatures over the axes are compared; of more, each axis is chosen for itself."""
REPLICATED = Signature({}, {})
Shapes = Sequence[tuple[int, ...] | None]


@dataclass(frozen=True)
class Choice:
    """What one call does.

    Attributes:
        signatures: One for each axis of the placement.
        inputs: The layout that each argument has to have; None for an absent one.
        outputs: The layout of each output, flat.
        seconds: What it costs by the model: boxing of the arguments, of their gradients, and sums of the outputs.
    """

    signatures: tuple[Signature, ...]
    inputs: tuple[Layout | None, ...]
    outputs: tuple[Layout, ...]
    seconds: float

    @property
    def splits(self) -> tuple[bool, ...]:
        """For each axis, whether ranks compute different things."""
        return tuple(any(s.kind != "B" for s in sig.inputs.values()) for sig in self.signatures)


def candidates(rule: Any, ctx: SbpContext, integers: Collection[str] = ()) -> list[Signature]:
    """The signatures of an op that hold, and that everything is whole.

    Those that make parts of a tensor from what is whole are left out: a slice is free, and somebody would gather it.

    Args:
        rule: The op's rule; None for an op without one.
        ctx: What the rule may ask.
        integers: Input slots that hold integers, whose mean is rounded, so that it is none of means.

    Returns:
        The signatures.

    Raises:
        DefinitionError: The rule gives something else.
    """
    found = [] if rule is None else list(rule(ctx))
    if not all(isinstance(s, Signature) for s in found):
        raise DefinitionError(
            f"op {ctx.op_type}: its rule sbp returned {found!r}; expected a list of oprack.op.sbp.Signature, as "
            "factors() makes it"
        )
    known = default_manager()
    split_here = [s for s in found if any(sbp != broadcast for sbp in s.inputs.values())]
    found = [s for s in split_here if not s.via or known.has_op(s.via)]
    rounded = {s.share[0] for s in found if s.share is not None}.intersection(integers)

    def averages(signature: Signature, slot: str) -> bool:
        return signature.inputs.get(slot, broadcast).kind == "P" or bool(signature.share and signature.share[0] == slot)

    return [REPLICATED, *(s for s in found if not any(averages(s, slot) for slot in rounded))]


def choose(
    found: Sequence[Signature],
    placement: Placement,
    slots_in: Sequence[str],
    slots_out: Sequence[str],
    sources: Sequence[Layout | None],
    shapes: Shapes,
    itemsizes: Sequence[int],
    allowed: Callable[[Signature, int], bool] | None = None,
    results: Shapes = (),
    differentiated: Sequence[bool] = (),
) -> Choice:
    """The cheapest combination of signatures, one for each axis; of equal ones, that which changes least.

    What a call costs is the boxing of its arguments, of their gradients on the way back, and the sum that somebody has
    to take later where an output is left in summands. With the first alone, a slice would be free though its gradient
    is gathered, and a product of parts cheap though its sum is not.

    Args:
        found: Signatures of the op.
        placement: Where the tensors are.
        slots_in: The input slot of each argument.
        slots_out: The output slot of each output.
        sources: The layout of each argument; None for an absent one.
        shapes: The logical shape of each argument.
        itemsizes: Bytes of an element of each argument.
        allowed: Whether a signature may be used along an axis; where it allows none, all may be.
        results: The logical shape of each output, where sums of outputs count.
        differentiated: Of which arguments gradients are asked for.

    Returns:
        The choice.
    """
    axes = len(placement.shape)
    fitting = [[s for s in found if _fits(s, slots_in, shapes, n)] for n in placement.shape]
    if allowed is not None:
        fitting = [[s for s in options if allowed(s, k)] or options for k, options in enumerate(fitting)]
    if math.prod(map(len, fitting)) > _MOST:
        fitting = [_best_of_axis(k, options, slots_in, sources) for k, options in enumerate(fitting)]
    best: tuple[tuple[float, int], Choice] | None = None
    for signatures in itertools.product(*fitting):
        inputs = tuple(
            None if source is None else placement.layout([sbp(sig.inputs, slot) for sig in signatures])
            for slot, source in zip(slots_in, sources, strict=True)
        )
        # Two axes may split one dim into parts, of which none may be empty.
        if axes > 1 and not _share(signatures, placement):
            continue
        if axes > 1 and any(
            0 in layout.local_shape(shape, [n - 1 for n in placement.shape])
            for layout, shape in zip(inputs, shapes, strict=True)
            if layout is not None and shape is not None and 0 not in shape and not layout.is_broadcast
        ):
            continue
        outputs = tuple(placement.layout([sbp(sig.outputs, slot) for sig in signatures]) for slot in slots_out)
        choice = Choice(signatures, inputs, outputs, 0.0)
        seconds, changed = _owed(outputs, results, max(itemsizes, default=4)), 0
        for k, (source, target, shape, size) in enumerate(zip(sources, inputs, shapes, itemsizes, strict=True)):
            if source is not None and target is not None and shape is not None and source is not target:
                seconds += cost(source, target, shape, size)
                if k < len(differentiated) and differentiated[k]:
                    leaving = of_input(target, choice.splits)
                    seconds += cost(leaving, dual(source, leaving), shape, size)
                changed += 1
        rank = (seconds, changed)
        if best is None or rank < best[0]:
            best = rank, replace(choice, seconds=seconds)
    assert best is not None  # that everything is whole always fits
    return best[1]


def _owed(outputs: Sequence[Layout], results: Shapes, itemsize: int) -> float:
    """Seconds that it takes at least to add up, once they are read, the outputs that ranks hold as summands."""
    seconds = 0.0
    for layout, shape in zip(outputs, results, strict=False):
        if shape is None or not layout.is_partial:
            continue
        placement = layout.placement
        size = math.prod(layout.largest_part(shape)) * itemsize
        for axis, s in enumerate(layout.sbps):
            if s.kind == "P":
                link = placement.world.links.of(placement.axes[axis])
                seconds += link.seconds("reduce_scatter", size, placement.shape[axis])
    return seconds


def sbp(slots: Mapping[str, Sbp], slot: str) -> Sbp:
    """What a signature says of a slot."""
    return slots.get(slot, broadcast)


def _share(signatures: Sequence[Signature], placement: Placement) -> bool:
    """Whether axes go together: those that split the same dims give ranks whole groups, one alone names another op."""
    return sum(bool(one.via) for one in signatures) < 2 and all(
        not one.shared
        or one.shared % math.prod(n for s, n in zip(signatures, placement.shape, strict=True) if s.inputs == one.inputs)
        == 0
        for one in signatures
    )


def _fits(signature: Signature, slots_in: Sequence[str], shapes: Shapes, ranks: int) -> bool:
    """Whether each rank gets something of what is split; kernels are not asked to compute on nothing."""
    if signature.shared % ranks:
        return False
    for slot, shape in zip(slots_in, shapes, strict=True):
        s = signature.inputs.get(slot)
        if s is not None and s.kind == "S" and shape is not None and (s.dim >= len(shape) or shape[s.dim] < ranks):
            return False
    return True


def _best_of_axis(
    axis: int, options: Sequence[Signature], slots_in: Sequence[str], sources: Sequence[Layout | None]
) -> list[Signature]:
    """A few signatures that leave most arguments as they are along one axis."""

    def changed(signature: Signature) -> int:
        return sum(
            source is not None and source.sbps[axis] != sbp(signature.inputs, slot)
            for slot, source in zip(slots_in, sources, strict=True)
        )

    return sorted(options, key=changed)[:4]
