"""Descriptors of primitives, which the chains of a Python thread share where they need the same.

A descriptor takes up to half a millisecond, its primitive as much again, and both take many kilobytes. Many that a net
needs do not depend on the size of its inputs, and several of its ops need the same.
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


class _Cache(threading.local):
    """One Python thread's descriptors, each with the arguments that it was made of; in place of one that oneDNN refused
    stands the text of the error."""

    def __init__(self) -> None:
        self.descs = Cache(_DESCS, "chains")


_CACHE = _Cache()


def primitive_desc(kind: str, *args: Any, any_speed: bool = False) -> PrimitiveDesc:
    """The descriptor of a primitive.

    Args:
        kind: What comes before "_primitive_desc_create" in the name of the function that makes it.
        args: What that function takes.
        any_speed: Whether a slow implementation will do.

    Raises:
        NotServedError: oneDNN has none, or a slow one where a fast one is wanted.
    """
    return cached_desc(_make, any_speed, kind, *args)


def _make(any_speed: bool, kind: str, *args: Any) -> PrimitiveDesc:
    return PrimitiveDesc(kind, *args, any_speed=any_speed)


def cached_desc(make: Callable[..., PrimitiveDesc], *args: Any) -> PrimitiveDesc:
    """`make(*args)`, or what it returned or raised before, in this Python thread and for as many threads of primitives.

    Nobody may change such a descriptor. Raises NotServedError as `make` does.
    """
    cache = _CACHE.descs
    # By identity, which is fastest: descriptors of memory, attributes and dims are one object for equal content. The
    # entry holds them, so that their ids can't become those of other objects.
    key = (make, THREAD.threads, *map(id, args))
    entry: tuple[tuple[Any, ...], PrimitiveDesc | str] | None = cache[key]
    if entry is None:
        try:
            desc: PrimitiveDesc | str = make(*args)
        except NotServedError as error:
            desc = str(error)
        entry = cache.keep(key, (args, desc))
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
