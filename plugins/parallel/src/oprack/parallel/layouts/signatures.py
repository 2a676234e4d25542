"""Which Sbp signature an op is computed with: the cheapest of those that its rule offers, for the tensors' layouts."""

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
from oprack.parallel.layouts.layout import Layout, Placement, grad_layout, input_grad_layout

_MOST = 256
"""How many combinations of signatures over the axes are compared. Of more, each axis first keeps its best few."""
REPLICATED = Signature({}, {})
Shapes = Sequence[tuple[int, ...] | None]


@dataclass(frozen=True)
class Choice:
    """How one call of an op is computed on parts.

    Attributes:
        signatures: One for each axis of the placement.
        inputs: The layout in which each argument is read; None for an absent one.
        outputs: The layout of each output, those of duplicable slots one by one.
        seconds: The modelled cost: boxing of the arguments and of their gradients, and adding up partial outputs.
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
    """The signatures that an op may be computed with: REPLICATED, and those of its rule that apply here.

    A signature that only splits outputs, of inputs that are whole, is left out: taking a part costs nothing, so it
    would always be chosen, and the output would have to be gathered later.

    Args:
        rule: The op's rule; None for an op without one.
        ctx: What the rule may ask.
        integers: Input slots that hold integers. Their mean is rounded, so it can't be computed from means of parts.

    Returns:
        The signatures.

    Raises:
        DefinitionError: The rule gives something else.
    """
    offered = [] if rule is None else list(rule(ctx))
    if not all(isinstance(s, Signature) for s in offered):
        raise DefinitionError(
            f"op {ctx.op_type}: its rule sbp returned {offered!r}; expected a list of oprack.op.sbp.Signature, as "
            "factors() makes it"
        )
    manager = default_manager()
    splitting = [s for s in offered if any(sbp != broadcast for sbp in s.inputs.values())]
    available = [s for s in splitting if not s.via or manager.has_op(s.via)]
    rounded = {s.share[0] for s in available if s.share is not None}.intersection(integers)

    def averages(signature: Signature, slot: str) -> bool:
        return signature.inputs.get(slot, broadcast).kind == "P" or bool(signature.share and signature.share[0] == slot)

    return [REPLICATED, *(s for s in available if not any(averages(s, slot) for slot in rounded))]


def choose(
    signatures: Sequence[Signature],
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
    """The cheapest combination of signatures, one for each axis; of equally cheap ones, that which changes least.

    The cost of a call is the boxing of its arguments, the boxing of their gradients on the way back, and adding up
    outputs that are partial sums. The first alone would make a slice free, although its gradient is gathered, and a
    product of parts cheap, although its sum is not.

    Args:
        signatures: The candidates.
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
    fitting = [[s for s in signatures if _fits(s, slots_in, shapes, n)] for n in placement.shape]
    if allowed is not None:
        fitting = [[s for s in options if allowed(s, k)] or options for k, options in enumerate(fitting)]
    if math.prod(map(len, fitting)) > _MOST:
        fitting = [_best_of_axis(k, options, slots_in, sources) for k, options in enumerate(fitting)]
    best: tuple[tuple[float, int], Choice] | None = None
    for combination in itertools.product(*fitting):
        inputs = tuple(
            None if source is None else placement.layout([sbp(sig.inputs, slot) for sig in combination])
            for slot, source in zip(slots_in, sources, strict=True)
        )
        # Two axes may split one dim into parts, of which none may be empty.
        if axes > 1 and not _compatible(combination, placement):
            continue
        if axes > 1 and any(
            0 in layout.local_shape(shape, [n - 1 for n in placement.shape])
            for layout, shape in zip(inputs, shapes, strict=True)
            if layout is not None and shape is not None and 0 not in shape and not layout.is_broadcast
        ):
            continue
        outputs = tuple(placement.layout([sbp(sig.outputs, slot) for sig in combination]) for slot in slots_out)
        choice = Choice(combination, inputs, outputs, 0.0)
        seconds, changed = _summing_seconds(outputs, results, max(itemsizes, default=4)), 0
        for k, (source, target, shape, size) in enumerate(zip(sources, inputs, shapes, itemsizes, strict=True)):
            if source is not None and target is not None and shape is not None and source is not target:
                seconds += cost(source, target, shape, size)
                if k < len(differentiated) and differentiated[k]:
                    leaving = input_grad_layout(target, choice.splits)
                    seconds += cost(leaving, grad_layout(source, leaving), shape, size)
                changed += 1
        rank = (seconds, changed)
        if best is None or rank < best[0]:
            best = rank, replace(choice, seconds=seconds)
    assert best is not None  # REPLICATED always fits
    return best[1]


def _summing_seconds(outputs: Sequence[Layout], results: Shapes, itemsize: int) -> float:
    """A lower bound for the seconds that it takes to add up those outputs that are partial sums, once they are read."""
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
    """The Sbp of a slot by a signature's `inputs` or `outputs`; broadcast where these say nothing."""
    return slots.get(slot, broadcast)


def _compatible(signatures: Sequence[Signature], placement: Placement) -> bool:
    """Whether signatures of several axes may be combined.

    At most one may name another op that computes on parts, and axes that split the same dims must give every rank whole
    groups.
    """
    return sum(bool(one.via) for one in signatures) < 2 and all(
        not one.shared
        or one.shared % math.prod(n for s, n in zip(signatures, placement.shape, strict=True) if s.inputs == one.inputs)
        == 0
        for one in signatures
    )


def _fits(signature: Signature, slots_in: Sequence[str], shapes: Shapes, ranks: int) -> bool:
    """Whether every rank gets a part that is not empty of what is split, since kernels do not compute on nothing."""
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
