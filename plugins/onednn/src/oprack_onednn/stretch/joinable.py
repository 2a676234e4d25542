"""Joinable: how a prepared function of one op becomes part of a stretch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from oprack.python.records import dataclass

from oprack_onednn.chain.memory import Outlet
from oprack_onednn.dnnl.operands import FLOAT

if TYPE_CHECKING:
    from oprack_onednn.chain.primitive_chain import BoundChain


@dataclass(frozen=True)
class Link:
    """One op's chain for certain shapes and parameters.

    Attributes:
        chain: The chain, which takes the inputs that vary, and then the results.
        outlets: Allocate the results.
        given: Positions of the inputs that the chain takes.
        is_faithful: Whether NaN and infinities come out as the other kernels have them, so that nobody looks for them.
    """

    chain: BoundChain
    outlets: Sequence[Outlet]
    given: Sequence[int]
    is_faithful: bool = False


@dataclass(frozen=True)
class Prepared:
    """What `prepare` of a function has bound.

    Attributes:
        link: The op's chain.
        results: Arrays like the results, whose elements nobody computed.
    """

    link: Link
    results: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Joinable:
    """What a stretch has to know about a prepared function of one op.

    Attributes:
        free: Positions of the inputs that vary from run to run, after `arrange`; all others are parameters.
        link: Called with the inputs, it returns their Link, or None when nothing can be bound for them.
        arrange: Turns the function's arguments into a flat sequence of inputs.
        looks_at: "input" or "result" where the function declines for NaN and infinities in its first input, or in what
            it returns, unless its Link is faithful; else "".
        is_exact: Whether the chain gives the same bits as the kernel that takes over for small inputs, so that it may
            compute those, too.
        prepare: `prepare` of the function, for inputs after `arrange`; see oprack.kernel.specialization.
        dtypes: The dtypes of the inputs that vary, in the order of `free`; default: float32.
    """

    free: Sequence[int]
    link: Callable[..., Link | None]
    arrange: Callable[..., Sequence[Any]] = lambda *arguments: arguments
    looks_at: str = ""
    is_exact: bool = False
    prepare: Callable[..., Any] = lambda *inputs: None
    dtypes: Sequence[np.dtype] = ()

    def dtype(self, position: int) -> np.dtype | None:
        """The dtype of an input that varies; None of a parameter."""
        if position not in self.free:
            return None
        return self.dtypes[list(self.free).index(position)] if self.dtypes else FLOAT
