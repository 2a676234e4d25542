"""Tree: what a module consists of: its parts, their parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from oprack.functional.tensor import Tensor

if TYPE_CHECKING:
    from oprack.nn.module import Module
    from oprack.nn.parameter import Parameter


class Tree:
    """Base of Module: goes through a module and its parts."""

    _modules: dict[str, Module]

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all parts, with their paths."""
        yield prefix, self  # type: ignore[misc]
        for name, module in self._modules.items():
            yield from module.named_modules(f"{prefix}.{name}" if prefix else name)

    def modules(self) -> Iterator[Module]:
        """This module and all parts."""
        return (module for _, module in self.named_modules())

    def children(self) -> Iterator[Module]:
        """The direct parts of this module."""
        return iter(self._modules.values())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The direct parts of this module, with their names."""
        return iter(self._modules.items())

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Parameters with their paths; a shared parameter is listed once, under its first path."""
        return self._named("_parameters")

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Buffers with their paths."""
        return self._named("_buffers")

    def _named(self, table: str) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        for path, module in self.named_modules():
            for name, value in getattr(module, table).items():
                if id(value) not in seen:
                    seen.add(id(value))
                    yield f"{path}.{name}" if path else name, value

    def parameters(self) -> list[Parameter]:
        """All parameters, those of parts included."""
        return [p for _, p in self.named_parameters()]

    def buffers(self) -> list[Tensor]:
        """All buffers, those of parts included."""
        return [b for _, b in self.named_buffers()]

    def apply(self, function: Callable[[Module], Any]) -> Self:
        """Call a function with every part and then with this module, for example to fill parameters.

        Args:
            function: A function of a module; what it returns is not used.

        Returns:
            This module.
        """
        for module in self.children():
            module.apply(function)
        function(self)  # type: ignore[arg-type]
        return self

    def clear_grad(self) -> None:
        """Clear the gradients of all parameters."""
        for p in self.parameters():
            p.clear_grad()
