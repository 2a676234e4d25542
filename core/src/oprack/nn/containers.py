"""Modules that contain others: Sequential and ModuleList."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from oprack.nn.module import Module


class Sequential(Module):
    """Parts that are called one after the other.

    Args:
        modules: The parts, in order.
    """

    def __init__(self, *modules: Module) -> None:
        super().__init__()
        for i, module in enumerate(modules):
            self.add_module(str(i), module)

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

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]

    def __len__(self) -> int:
        return len(self._modules)


class ModuleList(Module):
    """Parts in a list, each a part of this module.

    Args:
        modules: The parts.
    """

    def __init__(self, modules: Sequence[Module] = ()) -> None:
        super().__init__()
        for module in modules:
            self.append(module)

    def append(self, module: Module) -> None:
        """Add a part at the end.

        Args:
            module: The part.
        """
        self.add_module(str(len(self._modules)), module)

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]

    def __len__(self) -> int:
        return len(self._modules)
