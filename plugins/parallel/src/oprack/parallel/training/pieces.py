"""Pieces of checkpoints: what a rank holds of the states of modules and optimizers, and what it takes from others'."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from oprack.checkpoint.manifest import check_plain
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import context
from oprack.errors import CheckpointMismatchError, InvalidArgumentError, NotFoundError, UnimplementedError
from oprack.nn.module import Module
from oprack.nn.optimizer_state import SCHEDULE
from oprack.nn.parameter import DeferredParameter, Region
from oprack.parallel.layouts.layout import layout_of

Read = Callable[[str, Region], np.ndarray]
"""Reads a region of a tensor, by its key."""
Forms = Mapping[str, tuple[tuple[int, ...], str]]
"""Key -> (shape, dtype)."""


@dataclass
class Held:
    """What a rank has of a state.

    Attributes:
        forms: Shape and dtype of each tensor of which it has something.
        pieces: Key and region -> the array, in host memory.
        values: What else there is, of kinds that JSON can hold, by key.
    """

    forms: dict[str, tuple[tuple[int, ...], str]] = field(default_factory=dict)
    pieces: dict[tuple[str, Region], np.ndarray] = field(default_factory=dict)
    values: dict[str, Any] = field(default_factory=dict)

    def add(self, key: str, shape: tuple[int, ...], dtype: str, region: Region, array: np.ndarray) -> None:
        """Add a piece of a tensor."""
        self.forms[key] = (shape, dtype)
        self.pieces[key, tuple(region)] = array

    @property
    def facts(self) -> list[Any]:
        """The keys, forms and regions, for the other ranks."""
        return [[key, list(region), *self.forms[key]] for key, region in self.pieces]


def held_by(states: Mapping[str, Any]) -> Held:
    """What this rank has.

    Args:
        states: Name -> a module, an optimizer, Zero, or what else has state_dict() and set_state_dict().

    Returns:
        It; keys are the name and the state's own, joined by ".".

    Raises:
        InvalidArgumentError: Something has no state_dict, or holds a value that JSON can't.
    """
    held = Held()
    for name, owner in states.items():
        updates = _updates_of(owner)
        if updates is not None:
            for key, (shape, dtype, regions) in updates.state_parts().items():
                for region, array in regions:
                    held.add(f"{name}.{key}", shape, dtype, region, array)
            schedule = updates._optimizer.schedule
            if schedule is not None:
                held.values[f"{name}.{SCHEDULE}"] = _plain(schedule.state_dict(), f"{name}.{SCHEDULE}")
            continue
        for key, value in _state_of(name, owner).items():
            path = f"{name}.{key}"
            if isinstance(value, Tensor):
                held.add(path, value.shape, str(value.dtype), _region(value, path), _on_host(value))
            elif hasattr(value, "__array__"):
                array = np.asarray(value)
                held.add(path, array.shape, array.dtype.name, tuple((0, n) for n in array.shape), array)
            else:
                held.values[path] = _plain(value, path)
    return held


def take(states: Mapping[str, Any], forms: Forms, values: Mapping[str, Any], read: Read) -> None:
    """Set states from a checkpoint, each rank what it needs.

    Args:
        states: As `held_by` got them, on any number of ranks.
        forms: Of all tensors in the checkpoint.
        values: What else is in it.
        read: Reads a region of a tensor.

    Raises:
        CheckpointMismatchError: Keys, shapes or dtypes differ.
    """
    for name, owner in states.items():
        prefix = f"{name}."
        own = {key.removeprefix(prefix): form for key, form in forms.items() if key.startswith(prefix)}
        other = {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}

        def piece(key: str, region: Region, prefix: str = prefix) -> np.ndarray:
            return read(prefix + key, region)

        updates = _updates_of(owner)
        try:
            if updates is not None:
                updates.set_state_parts(own, piece, other.get(SCHEDULE))
            elif isinstance(owner, Module):
                _take_module(owner, own, piece)
            else:
                arrays = {key: piece(key, tuple((0, n) for n in shape)) for key, (shape, _) in own.items()}
                owner.set_state_dict(arrays | other)
        except (NotFoundError, InvalidArgumentError) as error:
            raise CheckpointMismatchError(f"{name!r} is not what the checkpoint is of: {error}") from error


def _take_module(module: Module, forms: Forms, read: Read) -> None:
    tensors = module.state_dict()
    missing, unknown = [n for n in tensors if n not in forms], [n for n in forms if n not in tensors]
    differing = [
        f"{n} is {forms[n][1]}{list(forms[n][0])}, in the module {t.dtype}{list(t.shape)}"
        for n, t in tensors.items()
        if n in forms and (tuple(forms[n][0]), forms[n][1]) != (t.shape, str(t.dtype))
    ]
    if missing or unknown or differing:
        raise InvalidArgumentError(
            f"the checkpoint has no {', '.join(missing[:5]) or 'path missing'}; not in the module: "
            f"{', '.join(unknown[:5]) or 'none'}; {'; '.join(differing[:5]) or 'all others agree'}"
        )
    for name, tensor in tensors.items():
        part = read(name, _region(tensor, name))
        if isinstance(tensor, DeferredParameter):
            tensor.set_value(part)
        else:
            tensor._overwrite(context(tensor.place).from_host(part), None, "Checkpointer.load")


def _updates_of(owner: Any) -> Any:
    """The Updates of an optimizer; None of what is none."""
    return getattr(owner, "updates", None) if hasattr(owner, "step") and not isinstance(owner, Module) else None


def _state_of(name: str, owner: Any) -> Mapping[str, Any]:
    if not hasattr(owner, "state_dict") or not hasattr(owner, "set_state_dict"):
        raise InvalidArgumentError(
            f"Checkpointer: {name!r} is a {type(owner).__name__}; expected a module, an optimizer, or what else has "
            "state_dict() and set_state_dict(state)"
        )
    found: Mapping[str, Any] = owner.state_dict()
    return found


def _region(tensor: Tensor, path: str) -> Region:
    """Where what this rank has of a tensor lies in it."""
    layout = layout_of(tensor._meta)
    if isinstance(tensor, DeferredParameter):
        return tuple((0, n) for n in tensor.shape)
    if layout is None:
        return tuple((0, n) for n in tensor.shape)
    if layout.is_partial or layout.even is not layout:
        raise UnimplementedError(
            f"Checkpointer: {path} is {tensor.describe()}; expected splits into even parts, and broadcasts"
        )
    return layout.region(tensor.shape)


def _on_host(tensor: Tensor) -> np.ndarray:
    if isinstance(tensor, DeferredParameter):
        return tensor.numpy()  # raises, and says what to do
    found: np.ndarray = context(tensor.place).to_host(tensor._value)
    return found


def _plain(value: Any, key: str) -> Any:
    """The value as JSON gives it back, where tuples are lists. Raises InvalidArgumentError that names it."""
    try:
        value = json.loads(json.dumps(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"Checkpointer: {key} is {value!r}; expected an array, or values of JSON") from error
    check_plain(value, key)
    return value
