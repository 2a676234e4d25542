"""Attributes of primitives."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from oprack_onednn import _c
from oprack_onednn.handle import Native, call, create


class Attributes:
    """Attributes of a primitive: scratch memory from the caller, and operations after the main one.

    Those with the same operations share one native object, which never changes.
    """

    __slots__ = ("_as_parameter_", "native")

    def __init__(self, post_ops: Sequence[tuple] = ()) -> None:
        """post_ops: ("eltwise", algorithm, alpha, beta), ("sum", scale) or ("binary", algorithm, MemoryDesc)."""
        key = tuple([tuple([id(x) if isinstance(x, Native) else x for x in op]) for op in post_ops])
        entry = _ATTRIBUTES.get(key)
        if entry is None:
            if len(_ATTRIBUTES) >= _MOST_ATTRIBUTES:
                _ATTRIBUTES.clear()
            # with the operations, so that no other descriptor can get the id of one of theirs
            entry = _ATTRIBUTES[key] = _NativeAttributes(post_ops), tuple(post_ops)
        self.native = entry[0]
        self._as_parameter_ = self.native.pointer


_MOST_ATTRIBUTES = 1024
_ATTRIBUTES: dict[Hashable, tuple[_NativeAttributes, tuple[tuple, ...]]] = {}


class _NativeAttributes(Native):
    __slots__ = ()
    destroy = "primitive_attr_destroy"

    def __init__(self, post_ops: Sequence[tuple]) -> None:
        super().__init__(create("primitive_attr_create"))
        call("primitive_attr_set_scratchpad_mode", self, _c.SCRATCHPAD_USER)
        if not post_ops:
            return
        chain = _PostOps(create("post_ops_create"))
        for kind, *rest in post_ops:
            if kind == "eltwise":
                call("post_ops_append_eltwise", chain, *rest)
            elif kind == "sum":
                call("post_ops_append_sum", chain, rest[0], 0, 0)
            else:
                call("post_ops_append_binary", chain, rest[0], rest[1])
        call("primitive_attr_set_post_ops", self, chain)


class _PostOps(Native):
    __slots__ = ()
    destroy = "post_ops_destroy"
