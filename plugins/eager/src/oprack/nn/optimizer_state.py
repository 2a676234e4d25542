"""The names in an optimizer's state_dict, and the checks of a state before any of it is loaded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from oprack.eager_tensor import Tensor
from oprack.eager_tensor.devices import context
from oprack.errors import InvalidArgumentError, NotFoundError
from oprack.tensor import LoDTensor

SCHEDULE = "LR_Scheduler"
NOT_UPDATED = "not_updated"
_SHOWN = 6


@dataclass(frozen=True)
class Entry:
    """One array of the state, under the key `<parameter>.<accumulator>`; `position` is that of the parameter.

    elementwise: it has the parameter's shape, whatever that is, and not one of its own.
    """

    key: str
    position: int
    accumulator: str
    shape: tuple[int, ...]
    dtype: str
    elementwise: bool


class StateNames:
    """The names of the arrays in an optimizer's state.

    A parameter is identified by its path if the optimizer was given (path, parameter) pairs, otherwise by its position
    in the list. Its own name won't do, since it depends on what else the process has built.
    """

    def __init__(self, optimizer: Any, parameters: Sequence[Tensor], paths: Sequence[str] | None) -> None:
        self._owner = type(optimizer).__name__
        self._by_path = paths is not None
        self.parameters = list(parameters)
        self.paths = [str(i) for i in range(len(self.parameters))] if paths is None else list(paths)
        self._optimizer = optimizer

    def entries(self) -> dict[str, Entry]:
        """All arrays of the state, by key."""
        entries = {}
        for i, (path, p) in enumerate(zip(self.paths, self.parameters, strict=True)):
            for a in self._optimizer.accumulators():
                shape = p.shape if a.shape is None else tuple(a.shape)
                key = f"{path}.{a.name}"
                entries[key] = Entry(key, i, a.name, shape, str(p.dtype), a.shape is None)
        return entries

    def checked(self, state: Mapping[str, Any], strict: bool) -> dict[str, np.ndarray]:
        """Check a state, and copy its arrays.

        Raises NotFoundError for missing or unknown keys if `strict`, InvalidArgumentError for a wrong shape or dtype.
        """
        entries = self.entries()
        arrays = {k: v for k, v in state.items() if k not in (SCHEDULE, NOT_UPDATED)}
        not_updated = self._not_updated(state)
        arrays, by_program_name = self._from_program_names(arrays, entries)
        if strict:
            optional = self._optional(not_updated, by_program_name)
            missing = [k for k, e in entries.items() if k not in arrays and e.position not in optional]
            unknown = [k for k in arrays if k not in entries]
            unknown += [f"{p!r} in {NOT_UPDATED}" for p in not_updated if p not in self.paths]
            self._require_all(missing, unknown, SCHEDULE in state)
        return {key: self._array(entries[key], value) for key, value in arrays.items() if key in entries}

    def require_forms(self, forms: Mapping[str, tuple[Sequence[int], str]], has_schedule: bool) -> None:
        """Check the arrays of a state by their shapes and dtypes; parameters without any were not updated yet.

        Raises NotFoundError for missing or unknown keys, InvalidArgumentError for a wrong shape or dtype.
        """
        entries = self.entries()
        updated = {e.position for key, e in entries.items() if key in forms}
        missing = [key for key, e in entries.items() if key not in forms and e.position in updated]
        unknown = [key for key in forms if key not in entries]
        wanted = self._optimizer.schedule is not None
        missing, unknown = (
            missing + [SCHEDULE] * (wanted > has_schedule),
            unknown + [SCHEDULE] * (has_schedule > wanted),
        )
        if missing or unknown:
            raise NotFoundError(
                f"{self._owner}: the state has no {_some(missing) or 'name missing'}; not expected: "
                f"{_some(unknown) or 'none'}; {self._advice(unknown)}make the optimizer as it was when it was saved"
            )
        for key, (shape, dtype) in forms.items():
            self._require_form(entries[key], tuple(shape), dtype)

    def _optional(self, not_updated: Sequence[str], by_program_name: bool) -> set[int]:
        """Positions of parameters that no step has changed, so that a state need not have them.

        States by names of variables don't say which those are: there it may be any parameter that is not trained.
        """
        named = {i for i, path in enumerate(self.paths) if path in not_updated}
        return named | {i for i, p in enumerate(self.parameters) if by_program_name and not p.requires_grad}

    def _require_all(self, missing: list[str], unknown: list[str], has_schedule: bool) -> None:
        """Raise NotFoundError for keys that only the optimizer has, or only the state, its schedule among them."""
        if self._optimizer.schedule is not None and not has_schedule:
            missing = [*missing, SCHEDULE]
        if self._optimizer.schedule is None and has_schedule:
            unknown = [*unknown, SCHEDULE]
        if missing or unknown:
            raise NotFoundError(
                f"{self._owner}: the state has no {_some(missing) or 'name missing'}; not expected: "
                f"{_some(unknown) or 'none'}; {self._advice(unknown)}pass strict=False to take what fits"
            )

    def _not_updated(self, state: Mapping[str, Any]) -> list[str]:
        paths = state.get(NOT_UPDATED, [])
        if not isinstance(paths, list | tuple) or not all(isinstance(r, str) for r in paths):
            raise InvalidArgumentError(
                f"{self._owner}: {NOT_UPDATED} of the state is {paths!r}; expected a list of the parameters that no "
                "step has changed"
            )
        return list(paths)

    def _array(self, entry: Entry, value: Any) -> np.ndarray:
        if isinstance(value, Tensor):
            value = value.numpy()
        elif isinstance(value, LoDTensor):
            value = context(value.place).to_host(value.array)
        array = np.array(value)
        self._require_form(entry, array.shape, array.dtype.name)
        return array

    def _require_form(self, entry: Entry, shape: tuple[int, ...], dtype: str) -> None:
        if shape != entry.shape or dtype != entry.dtype:
            raise InvalidArgumentError(
                f"{self._owner}: {entry.key} of the state is {dtype}{list(shape)}; expected "
                f"{entry.dtype}{list(entry.shape)}, for {self.parameters[entry.position].describe()}; the "
                "state is that of another network, or its parameters are listed in another order"
            )

    # States that go by the names of variables -------------------------------------------------------------------------
    def _program_name(self, entry: Entry) -> str:
        label = f"{self._optimizer.name}_{entry.accumulator}" if self._optimizer.name else entry.accumulator
        return f"{self.parameters[entry.position].name}_{label}_0"

    def _from_program_names(self, arrays: dict[str, Any], entries: Mapping[str, Entry]) -> tuple[dict[str, Any], bool]:
        """Rename a state to keys if all its names are variables in the program of these parameters.

        Returns:
            (the state, whether it was renamed).
        """
        names = {self._program_name(e): k for k, e in entries.items()}
        plain = {k: v for k, v in arrays.items() if k != "learning_rate_0"}
        if plain and all(k in names for k in plain):
            return {names[k]: v for k, v in plain.items()}, True
        return arrays, False

    def _advice(self, unknown: Sequence[str]) -> str:
        accumulators = "|".join(re.escape(a.name) for a in self._optimizer.accumulators())
        if accumulators and any(re.search(rf"_({accumulators})_\d+$", k) for k in unknown):
            own = ", ".join(str(p.name) for p in self.parameters[:3])
            return (
                "it goes by names of variables, which depend on all that its process had built; build the network as "
                f"there, so that its parameters, now {own} and so on, have those names, then save the state anew; or "
            )
        paths = [k.rpartition(".")[0] for k in unknown]
        if not self._by_path and any(p and not p.isdigit() for p in paths):
            return "it goes by paths: give the optimizer parameter_list=net.named_parameters(); or "
        if self._by_path and any(p.isdigit() and p not in self.paths for p in paths):
            return "it goes by positions: give the optimizer parameter_list=net.parameters(); or "
        return ""


def _some(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
    return ", ".join(listed[:_SHOWN]) + more
