"""@onednn_kernel: declares a kernel of this library, which declines what oneDNN does not serve or NumPy does faster."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

from oprack.errors import DefinitionError
from oprack.kernel import Array, KernelQuery, Predicate, decline, kernel
from oprack.kernel.specialization import Specialize
from oprack.op import slot_name

from oprack_onednn.dnnl.library import LIBRARY, usable
from oprack_onednn.dnnl.operands import OperandError

PRIORITY = 10


class Limits:
    """Below these sizes NumPy is faster than a primitive's call, or one thread than several.

    Attributes:
        eltwise, binary, moved, costly: Elements; costly are functions that take NumPy long.
        product: m n k of a matrix product.
        apart: Operations of a recurrent layer's direction, from which on it has a thread of its own.
    """

    eltwise = 1 << 12
    costly = 1 << 6
    binary = 1 << 14
    moved = 1 << 14
    product = 1 << 18
    apart = 1 << 21


@contextmanager
def no_limits() -> Iterator[None]:
    """Every entry of Limits is 0 for the length of a with block."""
    # Kernels read the class at each call, so that the change reaches all threads.
    before = {name: value for name, value in vars(Limits).items() if isinstance(value, int)}
    try:
        for name in before:
            setattr(Limits, name, 0)
        yield
    finally:
        for name, value in before.items():
            setattr(Limits, name, value)


def onednn_kernel(
    *op_types: str,
    view: bool = False,
    min_numel: str = "",
    specialize: Specialize | None = None,
    unread: Collection[str] = (),
    bare: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a float32 kernel of this library; it may decline, and does so where an operand does not fit.

    Args:
        op_types: the ops.
        view: as in oprack.kernel.
        min_numel: the entry of Limits below whose number of elements of the first input the next kernel is taken.
        specialize: as in oprack.kernel.
        unread: the parameters that no primitive reads, so that they may have another dtype than float32; where one of
            the others has another, the kernel is not chosen.
        bare: whether the function asks itself if the library serves, and lets no OperandError out. Nothing is between
            it and who calls it, then, where Python could stop when it has overwritten a parameter (see Commit).

    Raises:
        DefinitionError: `unread` has a name that is no input of the function.
    """

    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        parameters, library = inspect.signature(function).parameters, LIBRARY
        inputs = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD]
        unknown = set(unread) - set(inputs)
        if unknown:
            raise DefinitionError(f"{function.__qualname__}: unread has {sorted(unknown)}; expected some of {inputs}")
        read = [name for name in inputs if name not in unread]

        @wraps(function)
        def run(
            *args: Array | Sequence[Array] | None, **named: Any
        ) -> Array | dict[str, Array | list[Array] | None] | tuple[Array | None, ...]:
            # `ready` is one attribute; it is False before the first use and after a fork.
            if not (library.ready or library.usable()):
                return decline(library.problem)
            try:
                return function(*args, **named)
            except OperandError as error:
                return decline(str(error))

        for op_type in op_types:
            kernel(
                op_type,
                dtypes={"float32"},
                library="onednn",
                when=_serves([slot_name(name, grads=op_type.endswith("_grad")) for name in read], bool(min_numel)),
                priority=PRIORITY,
                view=view,
                min_numel=getattr(Limits, min_numel) if min_numel else 0,
                specialize=specialize,
                may_decline=True,
            )(function if bare else run)
        return function if bare else run

    return declare


def guarded(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives that `specialize` returns without a call site; it declines as kernels do."""
    if not (LIBRARY.ready or LIBRARY.usable()):
        return decline(LIBRARY.problem)
    try:
        return function(*arguments)
    except OperandError as error:
        return decline(str(error))


def _serves(slots: Sequence[str], later: bool) -> Predicate:
    """Whether this library serves, and all of these slots that are given hold float32.

    later: the kernel leaves small inputs to NumPy, and many a program has no others, so that the first large one opens
    the library. Where that fails, the kernel declines, and from then on it is not chosen.
    """

    def test(query: KernelQuery) -> bool:
        if any(query.dtypes.get(slot, "float32") != "float32" for slot in slots):
            return False
        return (later and not LIBRARY.tried) or usable.test(query)

    return Predicate(test, f"{usable.text} and float32 in {', '.join(slots)}")
