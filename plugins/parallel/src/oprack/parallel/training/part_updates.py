"""PartUpdates: the steps of an optimizer on this rank's parts of its parameters' elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.errors import InvalidArgumentError, UnimplementedError
from oprack.nn.optimizer_state import Entry, StateNames
from oprack.nn.parameter import Region
from oprack.nn.update_program import update_program
from oprack.nn.updates import Updates, host_copy
from oprack.op.sbp import SbpContext, split
from oprack.packs.manager import default_manager
from oprack.parallel.communicator import Communicator
from oprack.parallel.layouts.signatures import candidates
from oprack.tensor import LoDTensor

_LENGTH = 7
"""Of the vectors by which an optimizer is tried: nothing else in its program has this size."""

Pieces = Sequence[Sequence[tuple[int, int]]]
"""For each parameter and rank, (start, stop) of the rank's elements, in the order of ranks."""


class PartUpdates(Updates):
    """As Updates, for parameters of which each rank updates some elements and keeps the state of these alone.

    Its `parameters` are vectors of this rank's elements, with the names of the parameters and gradients of their own.
    A state_dict is that of one rank with all elements, and any number of ranks loads it.

    Args:
        optimizer: See Updates; its updates must go element by element.
        whole: The parameters.
        paths: See Updates.
        pieces: Which rank has what.
        ranks: The ranks.
        owner: Who asks, for messages.

    Raises:
        InvalidArgumentError: A parameter is a global tensor.
        UnimplementedError: An op of the optimizer's program has no rule of splitting.
    """

    def __init__(
        self,
        optimizer: Any,
        whole: Sequence[Tensor],
        paths: Sequence[str] | None,
        pieces: Pieces,
        ranks: Communicator,
        owner: str,
    ) -> None:
        for p in whole:
            if p._meta.layout is not None:
                raise InvalidArgumentError(
                    f"{owner}: {p.describe()} lies on several ranks already; expected parameters that each rank has "
                    'whole; the state of a parameter in "split(0)" is split without this'
                )
        require_elementwise(optimizer, whole, owner)
        self.whole, self._pieces, self._ranks = list(whole), pieces, ranks
        super().__init__(optimizer, [self._part_of(p, spans) for p, spans in zip(whole, pieces, strict=True)], paths)
        self._names = StateNames(optimizer, self.whole, paths)
        self._versions = [-1] * len(self.whole)  # of the parameters whose values the parts have
        self._homes = list[Any]()

    @classmethod
    def of(cls, updates: Updates, pieces: Pieces, ranks: Communicator, owner: str) -> PartUpdates:
        """The same steps in parts, without state.

        Args:
            updates: The steps on whole parameters.
            pieces: Which rank has what.
            ranks: The ranks.
            owner: Who asks, for messages.

        Raises:
            InvalidArgumentError: A parameter is a global tensor.
            UnimplementedError: The optimizer's updates do not go element by element.
        """
        return cls(updates._optimizer, updates.parameters, updates._paths, pieces, ranks, owner)

    def _part_of(self, p: Tensor, spans: Sequence[tuple[int, int]]) -> Tensor:
        part = new_tensor(p._value.reshape(-1)[slice(*spans[self._ranks.rank])], p._meta.without_grad)
        part.name, part.attr = p.name, getattr(p, "attr", None)  # type: ignore[attr-defined]
        return part

    # Steps ------------------------------------------------------------------------------------------------------------
    def elements(self, position: int, array: Any) -> Any:
        """This rank's elements of an array of a parameter's shape, on the same memory where that has no gaps."""
        return array.reshape(-1)[slice(*self._pieces[position][self._ranks.rank])]

    def lie_in(self, homes: Sequence[Any]) -> None:
        """Let the parts lie in memory of others, where steps update them in place.

        Args:
            homes: For each parameter an array of its shape, in which this rank's elements are updated.
        """
        self._homes = [self.elements(k, home) for k, home in enumerate(homes)]

    def given_back(self, position: int) -> None:
        """Note that a parameter has got the elements that this rank has updated."""
        self._versions[position] = self.whole[position]._version

    def step(self) -> None:
        """Update this rank's elements of every parameter whose part has a gradient; collective."""
        self._bring_home()
        chosen = [p for p in self._with_gradient() if p.size]
        gradients = [LoDTensor(p._grad._value, place=p.place, shared=True) for p in chosen if p._grad is not None]
        self._update(chosen, gradients, True)
        self._bring_home()

    def _bring_home(self) -> None:
        """Let all parts lie where they are to: some may have been set by others, some updated in other memory."""
        for k, (p, part, home) in enumerate(zip(self.whole, self.parameters, self._homes, strict=True)):
            if self._versions[k] != p._version:  # set by others since
                home[...] = self.elements(k, p._value)
                self.given_back(k)
            elif part._value is not home:
                home[...] = part._value
            part._value, part.requires_grad = home, p.requires_grad

    def _is_shared(self, p: Tensor) -> bool | None:
        return None

    def _summed(self, squares: np.ndarray, chosen: set[int]) -> np.ndarray:
        found: np.ndarray = self._ranks.all_reduce(squares)
        return found

    # State ------------------------------------------------------------------------------------------------------------
    def _arrays(self) -> dict[str, Any]:
        entries = self._names.entries()
        own = {}
        for key in entries:
            var = self.scope.find_var(self._variables.get(key, ""))
            if var is not None and var.value is not None:
                own[key] = var.value
            elif key in self._restored_parts:
                own[key] = LoDTensor(self._restored_parts[key])
        # A rank without elements of a parameter has no state of it, and does not know whether there is some.
        made = [set(keys) for keys in self._ranks.gather_facts(list(own))]
        arrays = {}
        for key, e in entries.items():
            having = [r for r, keys in enumerate(made) if key in keys]
            if having:
                like = self.whole[e.position]
                if not e.elementwise:
                    given = own[key].array if key in own else np.zeros_like(like._value, shape=e.shape)
                    found = self._ranks.broadcast(given, having[0])
                else:
                    given = own[key].array if key in own else np.zeros_like(like._value, shape=(0,))
                    counts = [stop - start for start, stop in self._pieces[e.position]]
                    found = self._ranks.all_gather(given, counts).reshape(e.shape)
                arrays[key] = host_copy(LoDTensor(found, place=own[key].place if key in own else like.place))
            elif key in self._restored:
                arrays[key] = self._restored[key].copy()
        return arrays

    def _part(self, position: int, array: np.ndarray) -> np.ndarray:
        whole = self.whole[position]
        return self.elements(position, array).copy() if array.shape == whole.shape else array

    def _regions(self, e: Entry) -> list[Region]:
        start, stop = self._pieces[e.position][self._ranks.rank]
        if start == stop:
            return []  # nor has it what is one for all elements
        return boxes(e.shape, start, stop) if e.elementwise else [tuple((0, n) for n in e.shape)]

    def _joined(self, e: Entry, pieces: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate([piece.reshape(-1) for piece in pieces]) if e.elementwise else pieces[0]

    def forget_restored(self, positions: set[int]) -> None:
        """Let go of loaded state of parameters that a step has updated: the ranks have its parts."""
        done = {e.key for e in self._names.entries().values() if e.position in positions}
        self._restored = {key: value for key, value in self._restored.items() if key not in done}


def boxes(shape: Sequence[int], start: int, stop: int) -> list[Region]:
    """The regions of an array that together are its elements from `start` to `stop`, in their order.

    Args:
        shape: Its dims.
        start: The first element.
        stop: The one behind the last.

    Returns:
        Regions, (start, stop) for each dim: the rest of a row, whole rows, the beginning of one; of rows of rows alike.
    """
    if start >= stop:
        return []
    if not shape:
        return [()]
    row = math.prod(shape[1:])
    first, last = -(-start // row), stop // row
    if first > last:  # inside one row
        return [((last, last + 1), *inner) for inner in boxes(shape[1:], start - last * row, stop - last * row)]
    found: list[Region] = [
        ((first - 1, first), *inner)
        for inner in boxes(shape[1:], start - (first - 1) * row, row)
        if first * row > start
    ]
    if first < last:
        found.append(((first, last), *((0, n) for n in shape[1:])))
    return found + [((last, last + 1), *inner) for inner in boxes(shape[1:], 0, stop - last * row)]


def require_elementwise(optimizer: Any, parameters: Sequence[Tensor], owner: str) -> None:
    """Raise UnimplementedError unless an optimizer's program may be run on any part of its parameters' elements.

    Each op that reads a parameter, its gradient or its state must have a rule by which all of them may be split.

    Args:
        optimizer: The optimizer.
        parameters: The parameters.
        owner: Who runs it on parts, for messages.
    """
    shapes = [(_LENGTH,)] * len(parameters)
    program, _, _ = update_program(optimizer, parameters, shapes, [False] * len(parameters), True)
    block = program.global_block()
    for op in block.ops:
        dims = {
            slot: [tuple(block.var(n).shape or ()) for n in names]
            for slot, names in (*op.inputs.items(), *op.outputs.items())
        }
        split_in = {slot for slot in op.inputs if (_LENGTH,) in dims[slot]}
        split_out = {slot for slot in op.outputs if (_LENGTH,) in dims[slot]}
        info = default_manager().op_info(op.type)
        found = candidates(info.sbp, SbpContext(op.type, op.attrs, dims))
        if split_in and not any(
            all((s.inputs.get(slot) == split(0)) == (slot in split_in) for slot in op.inputs)
            and all(s.outputs.get(slot) == split(0) for slot in split_out)
            for s in found
        ):
            raise UnimplementedError(
                f"{owner}: {type(optimizer).__name__} runs op {op.type} (pack {info.pack}), which has no rule by which "
                "it may be computed on a part of a parameter's elements; expected updates that go element by element, "
                "as those of SGD, Momentum or Adam"
            )
