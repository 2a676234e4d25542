"""Call sites: for one op of a program, its primitive for each shape that it meets, bound to the op's parameters.

Without it a kernel would look the primitive up by shapes and attributes in each call, and set every address; for small
images that takes longer than the primitive.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, partial, reduce
from operator import or_
from typing import Any

import numpy as np
from oprack.kernel import KernelSpecialization, decline
from oprack.tensor import numpy_dtype

from oprack_onednn.chain.memory import Outlet, last_strides
from oprack_onednn.chain.parameters import Weights, is_constant
from oprack_onednn.chain.primitive_chain import BoundChain, PrimitiveChain
from oprack_onednn.chain.thread import THREAD, PerThread
from oprack_onednn.dnnl.layout import NotServedError, contiguous_strides
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.operands import FLOAT, OperandError, address
from oprack_onednn.stretch.joinable import Joinable, Link, Prepared
from oprack_onednn.stretch.stretch import JoinableFunction, joins

_MISALIGNED = FLOAT.itemsize - 1
# How many entries one call site keeps to resize: sizes differ in the steps that suit them.
_VARIANTS = 4
_NONE = False  # nothing can be bound: it stands in for an _Entry


class ShapedPrimitive:
    """Primitives for arrays of certain shapes, as a chain.

    The chain's external memory is that of the present inputs, in the op's order, and then of the result.

    Attributes:
        chain: The primitives.
        shape: The shape of the result: [N, C, *spatial] in channels-last memory, or fewer dims in row-major memory.
        weights: Layouts of inputs that the chain wants packed, by their position among the present inputs.
        dtype: The dtype of the result.
        is_faithful: Whether NaN and infinities come out as the other kernels have them.
    """

    dtype: np.dtype[Any] = FLOAT
    is_faithful = False
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

    def taker(self, outlets: Sequence[Outlet]) -> Callable[[], tuple[Any, Any]]:
        """A function that allocates a result, and returns it with what `called` adapts: most often its address."""
        return outlets[0].take

    @cached_property
    def _take(self) -> Callable[[], tuple[Any, Any]]:
        return self.taker(self.outlets())

    def operand(self, i: int, array: np.ndarray) -> np.ndarray:
        """Input number i as the primitive takes it, packed if need be. Raises OperandError when it can't be packed."""
        weights = self.weights.get(i)
        return array if weights is None else weights.of(array)

    def results(self, result: Any) -> Sequence[np.ndarray]:
        """The arrays of a result from the outlet, as the primitive takes them."""
        return (result,)

    def resized(self, x: np.ndarray, *others: np.ndarray) -> ShapedPrimitive | None:
        """The primitive for arrays of other shapes, with the same parameters at the same places.

        It saves what it takes to build one and to compare its operands, so it makes sure that these arrays are what the
        chain reads.

        Args:
            x: The first input.
            *others: The other inputs that vary.

        Returns:
            The primitive, whose chain is `PrimitiveChain.resized`; None where it has to be built.
        """
        return None

    def called(self, run: Callable[..., None]) -> Callable[..., None]:
        """Adapt `run`, a function of all addresses, to what call sites pass: addresses of inputs, then the second item
        of what `taker`'s function returns. Overridden where that item is not an address."""
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
        result, _ = self._take()
        given = [a for a in arrays if a is not None]
        self.chain.run(*(self.operand(i, a) for i, a in enumerate(given)), *self.results(result))
        return result


class RowMajorPrimitive(ShapedPrimitive):
    """A chain whose result is a row-major array of `shape`."""

    def outlet(self) -> Outlet:
        strides = tuple(self.dtype.itemsize * s for s in contiguous_strides(self.shape))
        return Outlet(self.shape, strides, self.dtype)


class SizedPrimitive(ShapedPrimitive):
    """What `resized` returns.

    Args:
        chain: The chain.
        shape: Of the result.
    """

    def __init__(self, chain: PrimitiveChain, shape: tuple[int, ...]) -> None:
        self.chain, self.shape, self.weights = chain, shape, {}


class SizedRowMajorPrimitive(SizedPrimitive, RowMajorPrimitive):
    """The same for row-major results."""


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


class _Entry:
    """What a call site keeps for one shape: a primitive bound to the op's parameters.

    Attributes:
        parameters: The inputs that do not vary, each with its position behind the first.
        run: Takes the addresses of what varies. Their arrays must have the dtypes, shapes and strides of those that the
            primitive was bound with, since nothing is checked any more.
        take: Allocates a result and returns it with its address.
        link: The same for a stretch.
    """

    __slots__ = ("_shaped", "link", "parameters", "run", "take")

    def __init__(self, shaped: ShapedPrimitive, arrays: Sequence[Any], free: Collection[int]) -> None:
        operands = {
            i: shaped.operand(n, arrays[i]) for n, i in enumerate(i for i, a in enumerate(arrays) if a is not None)
        }
        outlets = shaped.outlets()
        results = [outlet.blank() for outlet in outlets]
        fixed = [None if i in free else operand for i, operand in operands.items()]
        if any(operands[i] is not arrays[i] for i in free if i in operands):
            raise NotServedError("an input that varies would have to be packed in every call")
        bound = BoundChain(shaped.chain, [*fixed, *[None] * len(results)])
        run = bound.runner_for(*[operands[i] for i in operands if i in free], *results)
        parameters = [(i - 1, a) for i, a in enumerate(arrays) if i and i not in free]
        link = Link(bound, outlets, [i for i in operands if i in free], shaped.is_faithful)
        self._fill(shaped, run, link, parameters)

    def _fill(self, shaped: ShapedPrimitive, run: Any, link: Link, parameters: list[tuple[int, Any]]) -> None:
        self._shaped, self.link, self.parameters = shaped, link, parameters
        self.take, self.run = shaped.taker(link.outlets), shaped.called(run)

    def resized(self, arrays: Sequence[Any]) -> _Entry | None:
        """The entry for arrays of other shapes, where the parameters are the same and it need not be built."""
        link = self.link
        shaped = self._shaped.resized(*[arrays[i] for i in link.given]) if self.fits(arrays[1:]) else None
        if shaped is None:
            return None
        bound, entry = link.chain.resized(shaped.chain), _Entry.__new__(_Entry)
        fresh = Link(bound, shaped.outlets(), link.given, link.is_faithful)
        entry._fill(shaped, bound.run_addresses, fresh, self.parameters)
        return entry

    def fits(self, others: Sequence[Any]) -> bool:
        """Whether the parameters are the same objects as before, so no other memory."""
        for i, known in self.parameters:
            if others[i] is not known:
                return False
        return True


def varying(call: KernelSpecialization, slots: Mapping[str, int]) -> tuple[list[int], tuple[np.dtype, ...]]:
    """`free` and `dtypes` of a call site, as the plan knows them: for ops that read other dtypes than float32, too.

    Args:
        call: The op.
        slots: The slots that vary, each with its position; the first one is always present.
    """
    present = [slot for i, slot in enumerate(slots) if call.has_input(slot) or not i]
    dtypes = [numpy_dtype(call.dtypes[slot][0]) if slot in call.dtypes else FLOAT for slot in present]
    return [slots[slot] for slot in present], tuple(dtypes)


class CallSite:
    """What one op's call site keeps, for each shape of its inputs and each Python thread.

    Args:
        find: Returns the primitive for the inputs, or None.
        free: Positions, in order, of the inputs that vary; the first input is one of them.
        dtypes: Of the inputs that vary, in the order of `free`.
        resizes: Whether primitives see the inputs as they are, so that they can be resized.

    Attributes:
        entries: By key; _NONE where nothing can be bound.
        others: (position behind the first, dtype) of the other inputs that vary.
    """

    def __init__(
        self,
        find: Callable[..., ShapedPrimitive | None],
        free: Sequence[int],
        dtypes: Sequence[np.dtype],
        resizes: bool = True,
    ) -> None:
        self._find, self._free, self.dtypes, self._resizes = find, free, dtypes, resizes
        self.others = [(i - 1, dtype) for i, dtype in zip(free[1:], dtypes[1:], strict=True)]
        self.entries = PerThread()

    @cached_property
    def _built(self) -> PerThread:
        """Entries to resize, a list for each thread; made when there is one, as small inputs never bind anything."""
        return PerThread()

    def key(self, x: Any, others: Sequence[Any]) -> tuple[Any, ...]:
        """The key of an entry: the thread, and the shapes and strides of the inputs that vary."""
        key: tuple[Any, ...] = (THREAD.cache_key, x.shape, x.strides)
        for i, _ in self.others:
            key += (others[i].shape, others[i].strides)
        return key

    def reads(self, x: Any, others: Sequence[Any]) -> bool:
        """Whether the inputs that vary have the dtypes that the call site is for."""
        return x.dtype is self.dtypes[0] and all(others[i].dtype is dtype for i, dtype in self.others)

    def _bind(self, arrays: tuple[Any, ...]) -> _Entry | None:
        """Bind the primitive for the inputs, if there is one. Raises NotServedError."""
        # Addresses are kept for constant parameters only: any other may be replaced, or written to.
        built: list[_Entry] = self._built[key := (THREAD.cache_key,)] or self._built.keep(key, [])
        for known in built if self._resizes else ():
            if (entry := known.resized(arrays)) is not None:
                return entry
        constant = all(a is None or i in self._free or is_constant(a) for i, a in enumerate(arrays))
        shaped = self._find(*arrays)
        if shaped is None or not constant:
            return None
        entry = _Entry(shaped, arrays, self._free)
        built[:] = [entry, *built[: _VARIANTS - 1]]
        return entry

    def enter(self, key: tuple[Any, ...], arrays: tuple[Any, ...]) -> _Entry | None:
        """Bind the primitive for these inputs, and keep it; its primitives are compiled when it is used."""
        try:
            entry = self._bind(arrays)
        except NotServedError:
            entry = None
        self.entries.keep(key, _NONE if entry is None else entry)
        return entry

    def _entry(self, x: Any, others: Sequence[Any]) -> _Entry | None:
        """What is bound for these inputs, now or before."""
        if not self.reads(x, others) or not THREAD.ready():
            return None
        key = self.key(x, others)
        entry = self.entries[key]
        if entry is None or (entry and not entry.fits(others)):
            entry = self.enter(key, (x, *others))
        return entry or None

    def prepare(self, x: Any, *others: Any) -> Any:
        """Bind the primitive for arrays like these, and have it compiled; returns a result that nobody computed."""
        entry = self._entry(x, others)
        if entry is None:
            return None
        link = entry.link
        link.chain.compile_ahead()
        THREAD.prepared = Prepared(link, results := tuple([outlet.blank() for outlet in link.outlets]))
        return results

    def link(self, x: Any, *others: Any) -> Link | None:
        """What is bound for these inputs."""
        entry = self._entry(x, others)
        return None if entry is None else entry.link


def call_site(
    find: Callable[..., ShapedPrimitive | None],
    free: Sequence[int] = (0,),
    fallback: Callable[..., Any] | None = None,
    dtypes: Sequence[np.dtype] = (),
    resizes: bool = True,
) -> JoinableFunction:
    """Make a function of an op's inputs that computes its result, or declines.

    Args:
        find: Returns the primitive for the inputs, or None.
        free: Positions, in order, of the inputs that vary; the first input is one of them. All others are parameters,
            whose addresses are set once.
        fallback: Called for inputs for which nothing can be bound; None attempts the primitive without binding.
        dtypes: Of the inputs that vary, in the order of `free`; default: float32.
        resizes: Whether `find` asks for primitives of the inputs as they are, and not of others that it makes of them.
    """
    site = CallSite(find, free, dtypes or [FLOAT] * len(free), resizes)
    function = (_of_several if site.others else _of_one)(site, fallback or partial(attempt, find))
    return joins(function, Joinable(free, site.link, dtypes=site.dtypes, prepare=site.prepare))


# Both make closures instead of methods, since these run with every op and a closure's variables are read fastest.
def _of_one(site: CallSite, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a call site where the first input alone varies."""
    entries, enter, dtype = site.entries, site.enter, site.dtypes[0]

    def run(x: Any, *others: Any) -> Any:
        # a primitive was bound to arrays of this dtype and of the shapes and strides of the key, and found to fit them
        if x.dtype is not dtype or (THREAD.revision != LIBRARY.threads_revision and not THREAD.ready()):
            return fallback(x, *others)
        key = (THREAD.cache_key, x.shape, x.strides)
        entry = entries[key]
        if entry:
            # the same objects as before, so no other memory: this is all that a call has to know of its parameters
            for i, known in entry.parameters:
                if others[i] is not known:
                    entry = enter(key, (x, *others))
                    break
        elif entry is None:  # the shape is new; else oneDNN was found to have no primitive for it
            entry = enter(key, (x, *others))
        if not entry:
            return fallback(x, *others)
        start = address(x)
        # primitives were chosen for elements at multiples of four bytes
        if start & _MISALIGNED:
            return fallback(x, *others)
        try:
            y, out = entry.take()
            entry.run(start, out)
        except NotServedError:  # it was to be compiled
            entries.keep(key, _NONE)
            return fallback(x, *others)
        return y

    return run


def _of_several(site: CallSite, fallback: Callable[..., Any]) -> Callable[..., Any]:
    """The function of a call site where several inputs vary."""
    entries, enter, dtype, varying_others = site.entries, site.enter, site.dtypes[0], site.others
    positions = [i for i, _ in varying_others]

    def run(x: Any, *others: Any) -> Any:
        # as above
        if x.dtype is not dtype or (THREAD.revision != LIBRARY.threads_revision and not THREAD.ready()):
            return fallback(x, *others)
        key: tuple[Any, ...] = (THREAD.cache_key, x.shape, x.strides)
        for i, expected in varying_others:
            other = others[i]
            if other.dtype is not expected:
                return fallback(x, *others)
            key += (other.shape, other.strides)
        entry = entries[key]
        if entry is None or (entry and entry.parameters and not entry.fits(others)):
            entry = enter(key, (x, *others))
        if not entry:
            return fallback(x, *others)
        # all addresses are tested by one comparison
        starts = [address(x), *[address(others[i]) for i in positions]]
        if reduce(or_, starts) & _MISALIGNED:
            return fallback(x, *others)
        try:
            y, out = entry.take()
            entry.run(*starts, out)
        except NotServedError:  # it was to be compiled
            entries.keep(key, _NONE)
            return fallback(x, *others)
        return y

    return run
