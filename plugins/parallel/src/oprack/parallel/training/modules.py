"""Modules on several ranks: parameters laid out over a placement, and gradients clipped by the norm of all."""

from __future__ import annotations

import fnmatch
import math
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from oprack.autograd.followers import follow_backward, follow_leaf
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import context
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError, InvalidArgumentError, NotFoundError, PreconditionNotMetError
from oprack.nn.parameter import DeferredParameter
from oprack.nn.update_program import square
from oprack.nn.updates import register_global_gradients
from oprack.parallel.eager.global_tensor import box_part, global_tensor
from oprack.parallel.layouts.boxing import route
from oprack.parallel.layouts.layout import Layout, Placement, layout_of
from oprack.parallel.training.buckets import Bucket
from oprack.parallel.training.data_parallel import copy_from_first
from oprack.parallel.transfers import Transfer
from oprack.tensor import SelectedRows
from oprack.tensor.shape_only import shape_array

if TYPE_CHECKING:
    from oprack.nn.module import Module
    from oprack.parallel.communicator import Communicator

M = TypeVar("M", bound="Module")
_BUCKET = 4 << 20
"""Bytes of gradients that travel as one message."""
_SENDS: ContextVar[bool] = ContextVar("oprack_no_sync", default=True)
"""Whether passes add up the gradients of global parameters."""


def to_global(module: M, placement: Placement, layouts: Mapping[str, Any] | None = None) -> M:
    """Lay a module's parameters and buffers out over a placement, in place. They become those of rank 0.

    Of parameters that were made inside `oprack.nn.deferred()` each rank draws its part alone, of the numbers that rank
    0 would have drawn.

    Args:
        module: The module.
        placement: The grid of ranks.
        layouts: Path of a parameter, or a pattern such as "blocks.*.weight" -> its sbp; the first that matches counts.
            What matches none is whole on each rank.

    Returns:
        The module itself.

    Raises:
        InvalidArgumentError: A layout does not fit a shape, or a parameter is global already.
        NotFoundError: A pattern matches nothing.
        CollectiveError: The modules of the ranks differ in names, shapes or dtypes.
    """
    rules = dict(layouts or {})
    used: set[str] = set()
    members = [*module.named_parameters(), *module.named_buffers()]
    made = [(path, t) for path, t in members if not isinstance(t, DeferredParameter)]
    for _, tensor in made:
        placement.world.adopt(tensor)
    # Ranks that were seeded each by itself would have other values in parameters that are "whole on each".
    copy_from_first("to_global", [(path, t) for path, t in made if t._meta.layout is None], placement.world)
    _draw_as_first([(path, t) for path, t in members if isinstance(t, DeferredParameter)], placement.world)
    for path, tensor in members:
        pattern = next((p for p in rules if fnmatch.fnmatchcase(path, p)), None)
        if pattern is not None:
            used.add(pattern)
        sbp = rules[pattern] if pattern is not None else ["B"] * len(placement.shape)
        lay_out(tensor, placement.layout(sbp), path)
    unused = [p for p in rules if p not in used]
    if unused:
        paths = ", ".join(path for path, _ in members[:5])
        raise NotFoundError(f"to_global: {unused} match no parameter of {module.full_name}; its paths are {paths} ...")
    return module


def _draw_as_first(members: Sequence[tuple[str, DeferredParameter]], ranks: Communicator) -> None:
    """Let parameters that are not made yet be drawn as rank 0 would; collective where there are any."""
    if not members:
        return
    facts = ranks.gather_facts([[path, list(p.shape), p.draw.dtype, repr(p.draw.initializer)] for path, p in members])
    for rank, found in enumerate(facts):
        if found != facts[0]:
            raise CollectiveError(
                f"to_global: ranks 0 and {rank} have different deferred parameters, as {_difference(facts[0], found)}; "
                "expected the same module on each"
            )
    states = ranks.gather_facts([p.draw.state for _, p in members])[0]
    for (_, p), state in zip(members, states, strict=True):
        p.draw.state = state


def _difference(first: Sequence[Any], other: Sequence[Any]) -> str:
    found = next(((a, b) for a, b in zip(first, other, strict=False) if a != b), None)
    return f"{len(first)} and {len(other)}" if found is None else f"{found[0]} and {found[1]}"


def lay_out(tensor: Tensor, target: Layout, path: str) -> None:
    """Make a tensor that all ranks hold, or that none has made yet, a global one, in place."""
    if tensor._meta.layout is not None:
        raise InvalidArgumentError(
            f"to_global: {path} is {tensor.describe()} already; expected a tensor of one process"
        )
    if target.is_partial:
        raise InvalidArgumentError(f"to_global: {path} in {target!r}; expected splits and broadcasts for parameters")
    world, shape = target.placement.world, tensor.shape
    if isinstance(tensor, DeferredParameter):
        target.require_dims(shape)
        # Of simulated ranks parts are never made.
        if world.place_kind == tensor.place.kind:
            tensor.make(shape_array(target.local_shape(shape), tensor._value.dtype), tensor.place)
        else:
            tensor.make(context(tensor.draw.place).from_host(tensor.draw.part(target.region(shape))))
        part = tensor._value
    else:
        world.adopt(tensor)
        part = tensor._value[target.part(shape)].copy()
    tensor._value, tensor._logical_shape, tensor._grad = part, shape, None
    tensor._meta = target.meta(tensor._meta)
    world = target.placement.world
    sums = world.__dict__.get("gradient_sums")
    if sums is None:
        sums = world.__dict__["gradient_sums"] = _Sums()
        follow_backward(sums)
    follow_leaf(sums, tensor)


def settled(tensor: Tensor) -> Any:
    """The gradient of a parameter, an array or SelectedRows, in the parameter's layout; collective for global ones.

    A gradient of a tensor that is whole on each rank stays in summands until it is read, so that two uses of a
    parameter need one sum.
    """
    gradient = tensor._grad
    assert gradient is not None
    layout, arrived = layout_of(tensor._meta), layout_of(gradient._meta)
    if layout is None or arrived is None:
        return gradient._value
    return box_part(gradient._value, tensor.shape, arrived, layout)


def settle(parameters: Iterable[Tensor]) -> None:
    """Add up the gradients of global parameters that ranks have in summands, in messages of many; collective.

    Args:
        parameters: Tensors, in the same order on every rank. What is no sum alone is left to `settled`.
    """
    sums = _Sums()
    for p in parameters:
        sums.add(p)
    sums.finish()


@contextmanager
def no_sync() -> Iterator[None]:
    """Gradients of global parameters of backward passes inside stay in summands until a step, or a pass, adds them up.

    For batches that are taken in pieces: what adds up on each rank travels once.
    """
    token = _SENDS.set(False)
    try:
        yield
    finally:
        _SENDS.reset(token)


class _Sums:
    """Adds up gradients of global parameters that ranks have in summands, bucket by bucket, while backward goes on.

    All ranks make the same calls, so gradients become ready in the same order on all of them. Those on their way are
    not in `grad`.
    """

    def __init__(self) -> None:
        self._waiting: dict[Any, list[tuple[Tensor, Any]]] = {}
        self._sent: list[tuple[Placement, tuple[int, ...], Bucket, Transfer]] = []
        self._thread = 0

    def gradient_ready(self, tensor: Tensor) -> None:
        """See Follower."""
        if _SENDS.get():
            self._thread = threading.get_ident()
            self.add(tensor)
            if self._sent:
                self._sent[-1][3].test()  # engines may go on inside of calls alone

    def after_backward(self, error: BaseException | None) -> None:
        """See Follower."""
        if self._thread != threading.get_ident():  # ranks may be threads
            return
        self._thread = 0
        if error is None:
            self.finish()
        else:
            self._waiting, self._sent = {}, []

    def add(self, p: Tensor) -> None:
        """Take a parameter's gradient if ranks have it in summands; a bucket that is full is sent."""
        axes, gradient = _summed_axes(p), p._grad
        if not axes or gradient is None:
            return
        layout = layout_of(p._meta)
        assert layout is not None
        key = layout.placement, axes, p._meta.dtype
        members = self._waiting.setdefault(key, [])
        members.append((p, gradient._value))
        p._grad = None
        if sum(value.nbytes for _, value in members) >= _BUCKET:
            self._send(key)

    def _send(self, key: Any) -> None:
        placement, axes, _ = key
        tensors, values = zip(*self._waiting.pop(key), strict=True)
        bucket = Bucket(tensors)
        with context(tensors[0].place).activate():
            transfer = placement.group(axes[0]).beside().start_all_reduce(bucket.flat(values))
        self._sent.append((placement, axes, bucket, transfer))

    def finish(self) -> None:
        """Send what is left, and give all sums to the parameters; collective."""
        for key in list(self._waiting):
            self._send(key)
        sent, self._sent = self._sent, []
        for placement, axes, bucket, transfer in sent:
            with context(bucket.tensors[0].place).activate():
                flat = transfer.wait()
                for axis in axes[1:]:
                    flat = placement.group(axis).all_reduce(flat, in_place=True)
            for p, value in zip(bucket.tensors, bucket.views(flat), strict=True):
                assert p._meta.layout is not None
                total = value if p._grad is None else p._grad._value + value  # of a pass inside of the pass
                p._grad = global_tensor(total, p._meta.layout.meta(meta_of_value(total, p.place)), p.shape)


def _summed_axes(p: Tensor) -> tuple[int, ...]:
    """The axes over which the gradient of a parameter has to be added up, if that is all that is to be done with it."""
    layout, gradient = layout_of(p._meta), p._grad
    arrived = None if gradient is None else layout_of(gradient._meta)
    if layout is None or gradient is None or arrived is None or arrived.placement is not layout.placement:
        return ()
    steps = route(arrived.even, layout)
    sums = all(s.source.kind == "P" and s.target.kind == "B" for s in steps)
    return tuple([s.axis for s in steps]) if sums and not gradient.is_sparse and gradient.dtype == p.dtype else ()


def clip_grad_norm(parameters: Iterable[Tensor], max_norm: float) -> float:
    """Scale gradients so that the norm of all of them together is at most `max_norm`; collective for global parameters.

    Args:
        parameters: Tensors; those without a gradient are left out.
        max_norm: The largest norm, above 0.

    Returns:
        The norm before.

    Raises:
        InvalidArgumentError: The norm is not above 0.
        PreconditionNotMetError: No parameter has a gradient.
    """
    return clip_by(parameters, max_norm, lambda _, squares: float(squares.sum()))


def clip_by(
    parameters: Iterable[Tensor], max_norm: float, total: Callable[[Sequence[Tensor], np.ndarray], float]
) -> float:
    """As `clip_grad_norm`, for ranks that have gradients of other parameters as well.

    Args:
        parameters: Tensors.
        max_norm: The largest norm.
        total: The sum of squares of all gradients, of the parameters that have one and the squares of each.

    Returns:
        The norm before.
    """
    if not max_norm > 0:
        raise InvalidArgumentError(f"clip_grad_norm: max_norm is {max_norm!r}; expected a number above 0")
    given = list(parameters)
    chosen = [p for p in given if p._grad is not None]
    if given and not chosen:
        raise PreconditionNotMetError(
            f"clip_grad_norm: none of {len(given)} parameters has a gradient; call it between backward() and step(); "
            "under parallel.Zero(optimizer, stage=2) ranks keep parts of gradients: give the optimizer "
            "grad_clip=ClipGradByGlobalNorm(norm)"
        )
    settle(chosen)
    local = {}
    for p in chosen:
        value = settled(p)
        local[id(p)] = value.to_dense() if isinstance(value, SelectedRows) else value
    parts = np.array([square(local[id(p)]) for p in chosen])
    norm = math.sqrt(total(chosen, squares_of_all(parts, [layout_of(p._meta) for p in chosen])))
    factor = min(1.0, max_norm / (norm + 1e-6))
    if factor < 1.0:
        for p in chosen:
            assert p._grad is not None
            value = local[id(p)] * np.asarray(factor, local[id(p)].dtype)
            p._grad = p._grad.detach()
            p._grad._value = value
            if p._meta.layout is not None:
                p._grad._meta = p._meta.layout.meta(p._meta.local.without_grad)
                p._grad._logical_shape = p.shape
    return norm


def squares_of_all(parts: np.ndarray, layouts: Sequence[Layout | None]) -> np.ndarray:
    """For each tensor, the sum over the ranks that have parts of it, of which this one's is given; collective.

    Args:
        parts: Of this rank; copies count once.
        layouts: Of the tensors.

    Returns:
        The sums.
    """
    found = parts.copy()
    lines: dict[tuple[Placement, int], list[int]] = {}
    for k, layout in enumerate(layouts):
        for axis, s in enumerate(() if layout is None else layout.sbps):
            if layout is not None and s.kind == "S":
                lines.setdefault((layout.placement, axis), []).append(k)
    # The axes of a grid in one order on all ranks; a sum over two of them goes over one after the other.
    for (placement, axis), chosen in lines.items():
        found[chosen] = placement.group(axis).all_reduce(found[chosen])
    return found


register_global_gradients(sys.modules[__name__])
