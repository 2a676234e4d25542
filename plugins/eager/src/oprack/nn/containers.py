"""Modules that contain others, or parameters: Sequential, ModuleList, ModuleDict, ParameterList."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from oprack.errors import InvalidArgumentError, NotFoundError, did_you_mean
from oprack.nn.module import CHANGES, Module
from oprack.nn.parameter import Parameter


class _List(Module):
    """What Sequential and ModuleList share: parts in order, under the names "0", "1" and so on or their own."""

    def append(self, module: Module) -> Self:
        """Add a part at the end; returns this module."""
        self.add_module(str(len(self._modules)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add parts at the end; returns this module."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Add a part before another one; those that follow are renumbered.

        Args:
            index: The place of the new part.
            module: The part.
        """
        parts = list(self._modules.values())
        parts.insert(index, module)
        self._modules.clear()
        self.extend(parts)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, str):
            return self._modules[index]
        parts = list(self.children())
        if isinstance(index, slice):
            return type(self)(*parts[index]) if isinstance(self, Sequential) else ModuleList(parts[index])
        return parts[index]

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(list(self._modules)[index], module)

    def __len__(self) -> int:
        return len(self._modules)


class Sequential(_List):
    """Parts that are called one after the other.

    Args:
        modules: The parts, in order; one list of them; or (name, part) pairs, for parts with names.
    """

    def __init__(self, *modules: Any) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            modules = tuple(modules[0].items())
        elif len(modules) == 1 and isinstance(modules[0], list):
            modules = tuple(modules[0])
        for i, module in enumerate(modules):
            name, part = module if isinstance(module, tuple) else (str(i), module)
            self.add_module(name, part)

    def forward(self, x: Any) -> Any:
        """Call the parts one after the other.

        Args:
            x: The input of the first part.

        Returns:
            The output of the last part.
        """
        for module in self.children():
            x = module(x)
        return x


class ModuleList(_List):
    """Parts in a list, each a part of this module. LayerList is Paddle's name for it.

    Args:
        modules: The parts.
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)


class ModuleDict(Module):
    """Parts by name, each a part of this module. LayerDict is Paddle's name for it.

    Args:
        modules: The parts by name.
    """

    def __init__(self, modules: Mapping[str, Module] | Sequence[tuple[str, Module]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def update(self, modules: Mapping[str, Module] | Sequence[tuple[str, Module]]) -> None:
        """Add or replace parts."""
        for name, module in dict(modules).items():
            self.add_module(name, module)

    def __getitem__(self, name: str) -> Module:
        if name not in self._modules:
            raise NotFoundError(f"{self.full_name} has no part {name!r}{did_you_mean(name, self._modules)}")
        return self._modules[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __delitem__(self, name: str) -> None:
        del self._modules[name]
        CHANGES.note()

    def __contains__(self, name: object) -> bool:
        return name in self._modules

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)

    def keys(self) -> Iterable[str]:
        """The names of the parts."""
        return self._modules.keys()

    def values(self) -> Iterable[Module]:
        """The parts."""
        return self._modules.values()

    def items(self) -> Iterable[tuple[str, Module]]:
        """The parts with their names."""
        return self._modules.items()


class ParameterList(Module):
    """Parameters in a list, each a parameter of this module.

    Args:
        parameters: The parameters.
    """

    def __init__(self, parameters: Iterable[Parameter] = ()) -> None:
        super().__init__()
        for parameter in parameters:
            self.append(parameter)

    def append(self, parameter: Parameter) -> Self:
        """Add a parameter at the end.

        Raises:
            InvalidArgumentError: It is no Parameter.
        """
        if not isinstance(parameter, Parameter):
            raise InvalidArgumentError(f"ParameterList: got {parameter!r}; expected an oprack.Parameter(array)")
        setattr(self, str(len(self._parameters)), parameter)
        return self

    def __getitem__(self, index: int) -> Parameter:
        found: Parameter = list(self._parameters.values())[index]
        return found

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._parameters.values())

    def __len__(self) -> int:
        return len(self._parameters)


LayerList = ModuleList
LayerDict = ModuleDict
