"""Descriptors of primitives: made once for all chains of a Python thread that ask for the same.

Much of what a net asks for does not depend on the size of its inputs, and much of the rest is asked for by several of
its ops: a descriptor costs up to half a millisecond, its primitive as much again, and both many kilobytes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.cache import Cache

from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.library import LIBRARY
from oprack_onednn.dnnl.objects import Attributes, Memory, MemoryDesc, PrimitiveDesc
from oprack_onednn.dnnl.operands import FLOAT

_DESCS = 1 << 16


class _Known(threading.local):
    """Descriptors of one Python thread with what they were made for; a text where there is none."""

    def __init__(self) -> None:
        self.descs = Cache(_DESCS, "chains")


_KNOWN = _Known()


def primitive_desc(kind: str, *args: Any, any_speed: bool = False) -> PrimitiveDesc:
    """The descriptor of a primitive.

    Args:
        kind: What comes before "_primitive_desc_create" in the name of the function that makes it.
        args: What that function takes.
        any_speed: Whether a slow implementation will do.

    Raises:
        NotServedError: oneDNN has none, or a slow one where a fast one is wanted.
    """
    return once(_make, any_speed, kind, *args)


def _make(any_speed: bool, kind: str, *args: Any) -> PrimitiveDesc:
    return PrimitiveDesc(kind, *args, any_speed=any_speed)


def once(make: Callable[..., PrimitiveDesc], *args: Any) -> PrimitiveDesc:
    """`make(*args)`, or what it returned or raised before in this Python thread, for as many OpenMP threads.

    Nobody may change such a descriptor. Raises NotServedError as `make` does.
    """
    known = _KNOWN.descs
    # by identity, which is fastest: descriptors of memory, attributes and dims are made once for the same content, and
    # the entry keeps them, so nothing else can get the identity of one
    key = (make, THREAD.current, *map(id, args))
    entry: tuple[tuple[Any, ...], PrimitiveDesc | str] | None = known[key]
    if entry is None:
        try:
            found: PrimitiveDesc | str = make(*args)
        except NotServedError as error:
            found = str(error)
        entry = known.keep(key, (args, found))
        assert entry is not None
    if isinstance(entry[1], str):
        raise NotServedError(entry[1])
    return entry[1]


def reorder_desc(source: MemoryDesc, target: MemoryDesc, accumulate: bool = False) -> PrimitiveDesc:
    """A copy between layouts; slow implementations are taken, too: packing weights has no other way."""
    engine, attributes = LIBRARY.engine, Attributes([("sum", 1.0)] if accumulate else ())
    return primitive_desc("reorder", source, engine, target, engine, attributes, any_speed=True)


def one_number(value: float) -> Memory:
    """Memory with one number in it."""
    return Memory(MemoryDesc.strided((1,)), np.array([value], FLOAT))
