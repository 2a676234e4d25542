"""Attributes of primitives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oprack.cache import Cache

from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.handle import Native, call, create


class Attributes(Native):
    """Attributes of a primitive: scratch memory from the caller, scales, and operations after the main one.

    Those with the same operations and scales are one object, which never changes.
    """

    __slots__ = ()
    destroy = "primitive_attr_destroy"

    def __new__(cls, post_ops: Sequence[tuple[Any, ...]] = (), scales: Sequence[tuple[int, int]] = ()) -> Attributes:
        """Find or make attributes.

        Args:
            post_ops: ("eltwise", algorithm, alpha, beta), ("sum", scale) or ("binary", algorithm, MemoryDesc).
            scales: (argument, mask) of what is multiplied by numbers that are given at each run, or divided by them if
                it is a result; a mask has a bit for each dim along which these numbers differ.

        Returns:
            The attributes.
        """
        key: tuple[Any, ...] = tuple([tuple([id(x) if isinstance(x, Native) else x for x in op]) for op in post_ops])
        key += (tuple(scales),) if scales else ()
        entry: tuple[Attributes, tuple[tuple[Any, ...], ...]] | None = _KNOWN[key]
        if entry is None:
            # with the operations, so that no other descriptor can get the id of one of theirs
            entry = _made(cls, post_ops, scales), tuple(post_ops)
            _KNOWN[key] = entry
        return entry[0]

    def __init__(self, post_ops: Sequence[tuple[Any, ...]] = (), scales: Sequence[tuple[int, int]] = ()) -> None:
        """Nothing: the object is complete when it is found or made."""


def _made(cls: type[Attributes], post_ops: Sequence[tuple[Any, ...]], scales: Sequence[tuple[int, int]]) -> Attributes:
    found = Native.__new__(cls)
    found.pointer = create("primitive_attr_create")
    call("primitive_attr_set_scratchpad_mode", found, _c.SCRATCHPAD_USER)
    for argument, mask in scales:
        call("primitive_attr_set_scales_mask", found, argument, mask)
    if not post_ops:
        return found
    chain = _PostOps(create("post_ops_create"))
    for kind, *rest in post_ops:
        if kind == "eltwise":
            call("post_ops_append_eltwise", chain, *rest)
        elif kind == "sum":
            call("post_ops_append_sum", chain, rest[0], 0, 0)
        else:
            call("post_ops_append_binary", chain, rest[0], rest[1])
    call("primitive_attr_set_post_ops", found, chain)
    return found


_KNOWN = Cache(4096)


class _PostOps(Native):
    __slots__ = ()
    destroy = "post_ops_destroy"
