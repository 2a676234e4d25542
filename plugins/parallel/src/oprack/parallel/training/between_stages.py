"""What stages of a pipeline hand each other: tensors in tuples and dicts, of any shapes, LoD and layouts, in messages.

A message begins with the number of its form: what is in it, with dtypes, shapes, offsets and layouts. A form is sent
once on each way, so that messages of equal ones are the arrays and two numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor, new_tensor
from oprack.eager_tensor.meta import meta_of_value
from oprack.errors import CollectiveError, InvalidArgumentError
from oprack.parallel.communicator import Communicator
from oprack.parallel.eager.global_tensor import global_tensor
from oprack.parallel.eager.sequences import Rows
from oprack.parallel.layouts.layout import Placement, layout_of
from oprack.tensor import LoDTensor, Place, numpy_dtype

_PLAIN = (bool, int, float, str, type(None))
_MOST = 1 << 26
"""A form of more bytes than this is none."""


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in tuples, lists and dicts, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from tensors_in(item)


def with_tensors(value: Any, change: Callable[[Tensor], Any]) -> Any:
    """The same tuples, lists and dicts with something in place of each tensor.

    Args:
        value: Tensors, in any of them.
        change: Gives what is to stand for a tensor.

    Returns:
        The copy; a named tuple becomes a tuple.
    """
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {k: with_tensors(v, change) for k, v in value.items()}
    if isinstance(value, tuple | list):
        items = [with_tensors(v, change) for v in value]
        return items if isinstance(value, list) else tuple(items)
    return value


def handed_on(value: Any, owner: str) -> Any:
    """What a stage gave, as a stage of another rank gets it: tensors of the same values outside of any graph.

    Args:
        value: What it gave.
        owner: The stage, for messages.

    Returns:
        The copy, on the same memory. Tensors in it want gradients where those that were given do.

    Raises:
        InvalidArgumentError: There is something in it that can't be handed on.
    """
    _form_of(value, owner)
    return with_tensors(value, lambda x: _leaf(x.detach(), x.requires_grad))


class Mail:
    """The messages of this rank along a line of stages.

    Args:
        line: The ranks that have the stages, one of each.
        placement: The ranks that have the same stage as this one, on which global tensors arrive.
        place: Where tensors of this process arrive.
    """

    def __init__(self, line: Communicator, placement: Placement, place: Place) -> None:
        self._line, self._placement, self._place = line, placement, place
        self._sent: dict[tuple[Any, ...], dict[str, int]] = {}
        self._known: dict[tuple[Any, ...], list[Any]] = {}

    def send(self, way: tuple[Any, ...], to: int, value: Any, owner: str) -> None:
        """Send tensors, in tuples, lists and dicts.

        Args:
            way: Which way of messages this is one of; the same for sender and receiver.
            to: The rank, in the line.
            value: What is sent.
            owner: The stage that gives it, for messages.

        Raises:
            InvalidArgumentError: There is something in it that can't be sent.
        """
        arrays: list[Any] = []
        text = json.dumps(_form_of(value, owner, arrays))
        forms = self._sent.setdefault(way, {})
        number, data = forms.get(text), np.frombuffer(text.encode(), np.uint8)
        is_new = number is None
        # Offsets of sequences are others in each batch, and not kept.
        kept = '"lod"' not in text
        if number is None:
            number = len(forms) if kept else -1
            if kept:
                forms[text] = number
        self._line.send(np.array([number, data.size if is_new else 0], np.int64), to)
        if is_new:
            self._line.send(data, to)
        for array in arrays:
            self._line.send(array, to)

    def receive(self, way: tuple[Any, ...], source: int) -> Any:
        """What `send` on the other rank was given.

        Args:
            way: Which way of messages.
            source: The rank, in the line.

        Returns:
            Tensors that want gradients where those that were sent do, in the same tuples, lists and dicts.

        Raises:
            CollectiveError: Something else arrives.
        """
        head = _on_host(self._line.receive((2,), np.int64, source))
        number, size = int(head[0]), int(head[1])
        forms = self._known.setdefault(way, [])
        if not 0 <= size <= _MOST or not -1 <= number <= len(forms) or (not size and not 0 <= number < len(forms)):
            raise CollectiveError(f"{self._line!r}: rank {source} sent no activations of stages of a pipeline")
        if size:
            form = json.loads(_on_host(self._line.receive((size,), np.uint8, source)).tobytes())
            if number >= 0:
                forms.append(form)
        else:
            form = forms[number]
        return self._made(form, source)

    def _made(self, form: Any, source: int) -> Any:
        kind = form[0]
        if kind == "tensor":
            return self._tensor(form[1], source)
        if kind == "dict":
            return {k: self._made(v, source) for k, v in form[1]}
        if kind == "plain":
            return form[1]
        items = [self._made(v, source) for v in form[1]]
        return tuple(items) if kind == "tuple" else items

    def _tensor(self, facts: dict[str, Any], source: int) -> Tensor:
        array = self._line.receive(facts["part"], numpy_dtype(facts["dtype"]), source)
        lod = facts.get("lod", [])
        meta = meta_of_value(array, self._place, len(lod))
        if "sbps" not in facts:
            return _leaf(new_tensor(array, meta, lod), facts["grad"])
        layout = self._placement.layout(facts["sbps"])
        rows = None
        if "cuts" in facts:
            rows = Rows(tuple(facts["cuts"]), tuple(map(tuple, facts["whole lod"])))
            layout = layout.by_rows
        found = global_tensor(array, layout.meta(meta), facts["shape"])
        found._rows = rows
        if lod:
            found._lod = lod
        return _leaf(found, facts["grad"])


def _leaf(x: Tensor, wanted: bool) -> Tensor:
    x.requires_grad = wanted
    return x


def _form_of(value: Any, owner: str, arrays: list[Any] | None = None) -> Any:
    """What is in a message, as JSON can write it; its arrays are appended in order."""
    if isinstance(value, Tensor):
        return ["tensor", _facts(value, owner, [] if arrays is None else arrays)]
    if isinstance(value, dict) and all(isinstance(k, str) for k in value):
        return ["dict", [[k, _form_of(v, owner, arrays)] for k, v in value.items()]]
    if isinstance(value, tuple | list):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return [kind, [_form_of(v, owner, arrays) for v in value]]
    if isinstance(value, _PLAIN):
        return ["plain", value]
    raise InvalidArgumentError(
        f"Pipeline: {owner} gives {type(value).__name__}; expected what the next one takes: tensors, numbers, text and "
        "None, in tuples, lists and dicts with names"
    )


def _facts(x: Tensor, owner: str, arrays: list[Any]) -> dict[str, Any]:
    meta, layout = x._meta, layout_of(x._meta)
    if meta.container is not LoDTensor or meta.dtype is None:
        raise InvalidArgumentError(f"Pipeline: {owner} gives {x.describe()}; expected a dense tensor, or one with LoD")
    arrays.append(x._value)
    facts: dict[str, Any] = {"dtype": meta.name, "part": list(x._value.shape), "grad": x.requires_grad}
    if meta.lod_level:
        facts["lod"] = [list(map(int, level)) for level in x._lod]
    if layout is not None:
        facts |= {"sbps": [repr(s) for s in layout.sbps], "shape": list(x.shape)}
        rows: Rows | None = x._rows
        if rows is not None:
            facts |= {"cuts": list(map(int, rows.cuts)), "whole lod": [list(map(int, level)) for level in rows.lod]}
    return facts


def _on_host(x: Any) -> np.ndarray:
    found: np.ndarray = x.get() if hasattr(x, "get") else x
    return found


# Micro-batches --------------------------------------------------------------------------------------------------------
def micro_batches(value: Any, pieces: int) -> list[Any]:
    """Cut a batch along dim 0 into micro-batches of one size.

    A tensor with LoD is cut between sequences of its outermost level. Of a global tensor each rank cuts its part, so
    that nothing moves: a micro-batch is made of pieces of all parts.

    Args:
        value: Tensors, in tuples, lists and dicts; what is no tensor belongs to each micro-batch.
        pieces: How many.

    Returns:
        The micro-batches.

    Raises:
        InvalidArgumentError: A tensor has rows that do not make micro-batches of equal size.
    """
    cut = {id(x): _cut(x, pieces) for x in tensors_in(value)}
    return [with_tensors(value, lambda x, i=i: cut[id(x)][i]) for i in range(pieces)]  # type: ignore[misc]


def _cut(x: Tensor, pieces: int) -> list[Tensor]:
    layout, value, shape = layout_of(x._meta), x._value, x.shape
    parts = 1
    if layout is not None:
        for size, s in zip(layout.placement.shape, layout.sbps, strict=True):
            parts *= size if s.dim == 0 else 1
    rows = shape[0] if shape else 0
    count = len(x._lod[0]) - 1 if x._meta.lod_level else rows
    what = "sequences" if x._meta.lod_level else "rows"
    if not rows or count % (pieces * parts) or (layout is not None and (x._meta.lod_level or x._rows is not None)):
        if layout is not None and (x._meta.lod_level or x._rows is not None):
            hint = "; give the batch as a tensor of one process, and let the first stage call to_global"
        else:
            hint = f" on each of {parts} ranks" if parts > 1 else ""
        raise InvalidArgumentError(
            f"Pipeline: {count} {what} of {x.describe()} make no {pieces} micro-batches; expected {what} that make "
            f"micro-batches of equal size{hint}"
        )
    if x._meta.lod_level:
        return [_sequences(x, i * count // pieces, (i + 1) * count // pieces) for i in range(pieces)]
    step, found = value.shape[0] // pieces, []
    for i in range(pieces):
        part, meta = value[i * step : (i + 1) * step], x._meta.without_grad
        logical = (rows // pieces, *shape[1:])
        found.append(new_tensor(part, meta) if layout is None else global_tensor(part, meta, logical))
    return found


def _sequences(x: Tensor, start: int, stop: int) -> Tensor:
    lod = []
    for level in x._lod:
        taken = level[start : stop + 1]
        lod.append([int(n - taken[0]) for n in taken])
        start, stop = int(taken[0]), int(taken[-1])
    return new_tensor(x._value[start:stop], x._meta.without_grad, lod)
