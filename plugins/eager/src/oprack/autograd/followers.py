"""Who follows backward passes: what is told when a leaf's gradient is complete, and what runs at the end of a pass."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable
from typing import Protocol

from oprack.eager_tensor import Leaf, Tensor


class Follower(Protocol):
    """What follows backward passes, such as the averaging of gradients over ranks."""

    def gradient_ready(self, tensor: Tensor) -> None:
        """The gradient of a tensor is complete and in its `grad`; the pass goes on."""

    def after_backward(self, error: BaseException | None) -> None:
        """A pass has ended, and the gradients of all leaves are there; or it has failed."""


class _Pass(threading.local):
    depth = 0


_pass = _Pass()
_followers: list[weakref.ref[Follower]] = []


def follow_backward(follower: Follower, tensors: Iterable[Tensor] = ()) -> None:
    """Let an object follow every backward pass, for as long as anybody has it.

    Args:
        follower: It.
        tensors: Of which it is told when their gradients are complete; see `follow_leaf`.
    """
    _followers.append(weakref.ref(follower))
    for tensor in tensors:
        follow_leaf(follower, tensor)


def follow_leaf(follower: Follower, tensor: Tensor) -> None:
    """Tell a follower when a tensor's gradient is complete, unless the tensor requires none.

    A tensor whose requires_grad was cleared and set again has to be followed anew.
    """
    leaf = tensor._node
    if type(leaf) is Leaf:
        leaf.ready = _Ready(follower)


class _Ready:
    """Tells a follower, which it does not keep alive."""

    def __init__(self, follower: Follower) -> None:
        self._follower = weakref.ref(follower)

    def __call__(self, tensor: Tensor) -> None:
        follower = self._follower()
        if follower is not None:
            follower.gradient_ready(tensor)


def in_pass(walk: Callable[[], None]) -> None:
    """Run a backward pass. Followers are told when the outermost one has ended or failed: some run inside of others."""
    _pass.depth += 1
    try:
        walk()
    except BaseException as error:
        _pass.depth -= 1
        _tell(error)
        raise
    _pass.depth -= 1
    _tell(None)


def _tell(error: BaseException | None) -> None:
    if _pass.depth or not _followers:
        return
    for reference in list(_followers):
        follower = reference()
        if follower is not None:
            follower.after_backward(error)
        elif reference in _followers:
            _followers.remove(reference)
