"""One op of a program: its primitive for each shape that it meets, with what stays the same set once.

A kernel that is called again and again for one op would otherwise look its primitive up by shapes and attributes, and
tell oneDNN every address, each time; for small images that takes longer than the primitives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from oprack.kernel import KernelSpecialization, decline
from oprack.tensor import numpy_dtype

from oprack_onednn.library import LIBRARY
from oprack_onednn.memory import Outlet, Weights, is_constant, last_strides
from oprack_onednn.native import NotServedError
from oprack_onednn.operands import FLOAT, OperandError, address
from oprack_onednn.primitive_chain import THREAD, BoundChain, PerThread, PrimitiveChain
from oprack_onednn.stretch import Bound, Part, joins

_MISALIGNED = FLOAT.itemsize - 1
# Of shapes that did not run yet.
_AHEAD = 64
_NONE = False  # nothing can be bound: it stands in for a _Bound


class ShapedPrimitive:
    """Primitives for arrays of certain shapes, as a chain.

    The chain's external memory is that of the present inputs, in the op's order, and then of the result.

    Attributes:
        chain: The primitives.
        shape: Of the result: [N, C, *spatial] in channels-last memory, or fewer dims in row-major memory.
        weights: Layouts of inputs that the chain wants packed, by their position among the present inputs.
        dtype: Of the result.
    """

    dtype = FLOAT
    chain: PrimitiveChain
    shape: tuple[int, ...]
    weights: dict[int, Weights]

    def outlet(self) -> Outlet:
        """Allocates results of this shape."""
        strides = last_strides(self.shape) if len(self.shape) > 2 else (self.shape[-1], 1)[-len(self.shape) :]
        return Outlet(self.shape, tuple(self.dtype.itemsize * s for s in strides), self.dtype)

    def outlets(self) -> Sequence[Outlet]:
        """Allocate each array of a result."""
        return (self.outlet(),)

    @cached_property
    def _outlet(self) -> Outlet:
        return self.outlet()

    def operand(self, i: int, array: np.ndarray) -> np.ndarray:
        """Input number i as the primitive wants it. Raises OperandError when it is not what the primitive packs."""
        weights = self.weights.get(i)
        return array if weights is None else weights.of(array)

    def results(self, made: Any) -> Sequence[np.ndarray]:
        """The arrays of a result from the outlet, as the primitive wants them."""
        return (made,)

    def called(self, run: Callable[..., None]) -> Callable[..., None]:
        """`run`, a function of addresses, as one of the inputs' and of what the outlet gives with a result."""
        return run

    def run(self, *arrays: np.ndarray | None) -> Any:
        """Compute the result.

        Args:
            arrays: The op's inputs in order, None for an absent one.

        Raises:
            OperandError: An array is not what the chain reads.
        """
        if not self.chain.is_compiled:
            self.chain.compile_ahead()  # while parameters are packed
        result, _ = self._outlet.take()
        given = [a for a in arrays if a is not None]
        self.chain.run(*(self.operand(i, a) for i, a in enumerate(given)), *self.results(result))
        return result


def attempt(find: Callable[..., ShapedPrimitive | None], *arrays: Any) -> Any:
    """Compute an op once, without a call site.

    Args:
        find: Returns the primitive for an op's inputs, or None.
        arrays: The inputs.

    Returns:
        The result; NotImplemented, with a reason, where oneDNN has no primitive for them.
    """
    if not LIBRARY.usable():
        return decline(LIBRARY.problem)
    try:
        shaped = find(*arrays)
        return NotImplemented if shaped is None else shaped.run(*arrays)
    except (NotServedError, OperandError) as error:
        return decline(str(error))


_FREE = object()


class _Bound:
    """A primitive bound to an op's parameters.

    Attributes:
        others: The inputs but the first, _FREE for those that vary from call to call.
        run: Takes the addresses of what varies. Their arrays must have the dtypes, shapes and strides of those that the
            primitive was bound with, since nothing is checked any more.
        take: Allocates a result and returns it with its address.
        part: The same for a stretch.
    """

    __slots__ = ("others", "part", "run", "take")

    def __init__(self, shaped: ShapedPrimitive, arrays: Sequence[Any], free: Collection[int]) -> None:
        operands = {
            i: shaped.operand(n, arrays[i]) for n, i in enumerate(i for i, a in enumerate(arrays) if a is not None)
        }
        self.take = shaped.outlet().take
        results = shaped.results(self.take()[0])
        fixed = [None if i in free else operand for i, operand in operands.items()]
        if any(operands[i] is not arrays[i] for i in free if i in operands):
            raise NotServedError("an input that varies would have to be packed in every call")
        bound = BoundChain(shaped.chain, [*fixed, *[None] * len(results)])
        self.run = shaped.called(bound.like(*[operands[i] for i in operands if i in free], *results))
        self.others = [_FREE if i in free else a for i, a in enumerate(arrays)][1:]
        self.part = Bound(bound, shaped.outlets(), [i for i in operands if i in free])

    def fits(self, others: Sequence[Any]) -> bool:
        """Whether the parameters are the same objects as before, so no other memory."""
        return all(known is a or known is _FREE for known, a in zip(self.others, others, strict=True))


def varying(call: KernelSpecialization, slots: Mapping[str, int]) -> tuple[list[int], tuple[np.dtype, ...]]:
    """`free` and `dtypes` of a call site, as the plan knows them: for ops that read other dtypes than float32, too.

    Args:
        call: The op.
        slots: Those that vary, each with its position; the first one is always given.
    """
    given = [slot for i, slot in enumerate(slots) if call.given(slot) or not i]
    dtypes = [numpy_dtype(call.dtypes[slot][0]) if slot in call.dtypes else FLOAT for slot in given]
    return [slots[slot] for slot in given], tuple(dtypes)


def call_site(
    find: Callable[..., ShapedPrimitive | None],
    free: Sequence[int] = (0,),
    fallback: Callable[..., Any] | None = None,
    dtypes: Sequence[np.dtype] = (),
) -> Callable[..., Any]:
    """Make a function of an op's inputs that computes its result, or declines.

    Args:
        find: Returns the primitive for the inputs, or None.
        free: Positions, in order, of the inputs that vary; the first input is one of them. All others are parameters,
            whose addresses are set once.
        fallback: Called for inputs for which nothing can be bound; None attempts the primitive without binding.
        dtypes: Of the inputs that vary, in the order of `free`; default: float32.
    """
    if fallback is None:
        fallback = partial(attempt, find)
    entries, bound_ahead = PerThread(), PerThread(_AHEAD)
    first, *rest = dtypes or [FLOAT] * len(free)
    positions = [i - 1 for i in free[1:]]
    others_vary = list(zip(positions, rest, strict=True))

    def bind(arrays: tuple[Any, ...]) -> _Bound | None:
        """Bind the primitive for the inputs, if there is one. Raises NotServedError."""
        # only of constant parameters may addresses be remembered: any other may be replaced, or written to
        constant = all(a is None or i in free or is_constant(a) for i, a in enumerate(arrays))
        shaped = find(*arrays)
        return _Bound(shaped, arrays, free) if shaped is not None and constant else None

    def prepare(x: Any, *others: Any) -> Any:
        """Bind the primitive for arrays like these, and have it compiled; returns a result that nobody computed."""
        if not THREAD.ready():
            return None
        key: tuple[Any, ...] = (THREAD.setting, x.shape, x.strides)
        for i in positions:
            key += (others[i].shape, others[i].strides)
        known = entries[key]
        if known is not None:
            bound = known or None
        elif x.dtype is not first or any(others[i].dtype is not dtype for i, dtype in others_vary):
            bound = None
        else:
            bound = bind((x, *others))
            if bound is not None:
                bound_ahead.keep(key, bound)
                bound.part.chain.compile_ahead()
        return None if bound is None else bound.take()[0]

    def enter(key: tuple[Any, ...], arrays: tuple[Any, ...]) -> _Bound | None:
        bound = bound_ahead.pop(key, None)
        try:
            if bound is None or not bound.fits(arrays[1:]):
                bound = bind(arrays)
            if bound is not None:
                bound.part.chain.compiled()
        except NotServedError:
            bound = None
        entries.keep(key, _NONE if bound is None else bound)
        return bound

    def part_for(x: Any, *others: Any) -> Bound | None:
        """What is bound for these inputs, which `run` has computed with."""
        if x.dtype is not first or any(others[i].dtype is not d for i, d in others_vary) or not THREAD.ready():
            return None
        key: tuple[Any, ...] = (THREAD.setting, x.shape, x.strides)
        for i in positions:
            key += (others[i].shape, others[i].strides)
        bound = entries[key]
        if bound is None:
            bound = enter(key, (x, *others))
        return bound.part if bound and bound.fits(others) else None

    def run(x: Any, *others: Any) -> Any:
        # a primitive was bound to arrays of this dtype and of the shapes and strides of the key, and found to fit them
        if x.dtype is not first:
            return fallback(x, *others)
        if THREAD.revision != LIBRARY.threads_revision:
            if not LIBRARY.usable():
                return fallback(x, *others)
            THREAD.open()
        key: tuple[Any, ...] = (THREAD.setting, x.shape, x.strides)
        for i, dtype in others_vary:
            other = others[i]
            if other.dtype is not dtype:
                return fallback(x, *others)
            key += (other.shape, other.strides)
        bound = entries[key]
        if not bound:
            # the shape is new, or oneDNN was found to have no primitive for it
            bound = enter(key, (x, *others)) if bound is None else None
        else:
            # the same objects as before, so no other memory: this is all that a call has to know of its parameters
            for known, other in zip(bound.others, others, strict=True):
                if known is not other and known is not _FREE:
                    bound = enter(key, (x, *others))
                    break
        if bound is None:
            return fallback(x, *others)
        # primitives were chosen for elements at multiples of four bytes; all addresses are tested by one comparison
        start = misplaced = address(x)
        if positions:
            starts = [address(others[i]) for i in positions]
            for a in starts:
                misplaced |= a
        if misplaced & _MISALIGNED:
            return fallback(x, *others)
        y, out = bound.take()
        if positions:
            bound.run(start, *starts, out)
        else:
            bound.run(start, out)
        return y

    return joins(run, Part(free, part_for, dtypes=(first, *rest), prepare=prepare))
