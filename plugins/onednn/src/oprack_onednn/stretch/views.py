"""Views between the ops of a stretch: where the elements of what they give lie, and the copies that some of them make.

A view needs no primitive: who reads it reads its source, at an offset. Where NumPy copies, as it does for a reshape of
what lies in another order, a reorder does, into the order in which the least is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from oprack.kernel import Array
from oprack.python.records import dataclass

from oprack_onednn.chain.memory import Outlet, empty_image
from oprack_onednn.chain.primitive_chain import PrimitiveChain
from oprack_onednn.chain.thread import THREAD
from oprack_onednn.dnnl.objects import MemoryDesc
from oprack_onednn.dnnl.operands import FLOAT, address
from oprack_onednn.stretch.joinable import Link

# Ops that keep the elements in the order of their indices: a result that is no view is a copy in that order.
_RESHAPES = frozenset(
    {
        *("reshape", "reshape2", "flatten", "flatten2", "flatten_contiguous_range"),
        *("squeeze", "squeeze2", "unsqueeze", "unsqueeze2"),
    }
)


@dataclass(frozen=True)
class View:
    """An array that lies in another one.

    Attributes:
        source: Number of the other array.
        offset: Bytes from its first element to that of the view.
        make: Makes the view of the other array.
    """

    source: int
    offset: int
    make: Callable[[Array], Array]


class _Copy:
    """The elements of x in the order of their indices.

    Args:
        x: What is copied.
        seen: The result, seen in the shape of x.
    """

    def __init__(self, x: Array, seen: Array) -> None:
        self.chain = PrimitiveChain()
        source = self.chain.input(MemoryDesc.of(x))
        self.chain.reorder(source, self.chain.output(MemoryDesc.of(seen)))


def view_of(x: Array, y: Array, source: int, function: Callable[[Array], Array]) -> View | None:
    """Where the result y of a view lies in x; None where it is an array of its own."""
    if y.dtype is not FLOAT or not np.may_share_memory(x, y):
        return None
    return View(source, address(y) - address(x), function)


def copied(op_type: str, x: Array, y: Array) -> tuple[Link, Array] | None:
    """What copies x where a view of this type gave the array y, and room for it; None when it may be something else."""
    if op_type not in _RESHAPES or y.dtype is not FLOAT or x.size != y.size:
        return None
    room, seen = _room(x, y.shape)
    found: _Copy | None = THREAD.primitive(("copy", x.shape, x.strides, seen.strides), _Copy, x, seen)
    if found is None:
        return None
    return Link(found.chain.bound(), (Outlet(room.shape, room.strides),), (0,)), room


def _room(x: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """An array for a copy of x, and the same seen in x's shape.

    It is row-major; or in channels-last memory where more dims of x lie so than in row-major memory.
    """
    dense = np.empty(shape, FLOAT)
    seen = dense.reshape(x.shape)
    if len(shape) == 4:
        image = empty_image(shape)
        image_seen = image.reshape(x.shape)
        if np.may_share_memory(image_seen, image) and _alike(x, image_seen) > _alike(x, seen):
            return image, image_seen
    return dense, seen


def _alike(x: Array, y: Array) -> int:
    """In how many dims two arrays of one shape lie alike."""
    return sum(n > 1 and s == t for n, s, t in zip(x.shape, x.strides, y.strides, strict=True))


def flat(results: Any) -> list[Any]:
    """The arrays that a view returned, those of lists one by one."""
    results = results if isinstance(results, tuple) else (results,)
    return [y for r in results for y in (r if isinstance(r, list) else [r])]
