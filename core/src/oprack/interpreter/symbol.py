"""Symbols: the Variables that stand for tensors while a function is captured as a program."""

from __future__ import annotations

import math
import sys
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from oprack.errors import PreconditionNotMetError
from oprack.layers.call_site import is_ours
from oprack.layers.variable import Variable

if TYPE_CHECKING:
    from oprack.functional.tensor_methods import SharedMethods
    from oprack.tensor.eager_tensor import Tensor

    class _Installed(SharedMethods, Variable): ...
else:
    _Installed = Variable


class Capture(Protocol):
    """Turns tensors into variables of the program that is being captured.

    Attributes:
        owned: See ExportedProgram.
        dims: Sizes of open dims, by variable and dim.
    """

    owned: set[str]
    dims: dict[tuple[str, int], Any]

    def variable(self, tensor: Tensor) -> Variable: ...


current_capture: ContextVar[Capture | None] = ContextVar("oprack_capture", default=None)


class Symbol(_Installed):
    """A Variable with the methods of tensors, which oprack.functional.tensor installs."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[Any, ...]:
        """Dims; in a captured function an open one is an OpenNumber, with which ops compute.

        Code of oprack and of packs reads -1 there, as in every program that is built.
        """
        if is_ours(sys._getframe(1)):
            return self.desc.shape or ()
        from oprack.interpreter.dims import open_shape

        return open_shape(self)

    @property
    def size(self) -> Any:
        """Number of elements."""
        if is_ours(sys._getframe(1)):
            return math.prod(self.desc.shape or ())
        from oprack.interpreter.dims import open_shape

        return math.prod(open_shape(self))

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow through it."""
        return not self.stop_gradient

    @property
    def lod(self) -> list[list[int]]:
        """Always empty: offsets are known only when the program runs."""
        return []

    def __getitem__(self, index: Any) -> Variable:
        """x[2], x[1:3], x[..., 0], x[None], x[::-1], in memory of its own."""
        found = super().__getitem__(index)
        capture = current_capture.get()
        if capture is not None:
            capture.owned.add(found.name)
        return found

    # What needs a value -----------------------------------------------------------------------------------------------
    def _has_no_value(self, *_: Any, **__: Any) -> NoReturn:
        raise PreconditionNotMetError(
            f"variable {self.name!r} ({self.dtype}{list(self.shape)}) has no value while oprack.jit or "
            "oprack.to_program writes a function down as a program: Python runs once, for all inputs. Do this outside "
            "the function, with what it returns; inside it compute with tensors alone"
        )

    def __format__(self, spec: str) -> str:
        return self._has_no_value() if spec else str(self)

    numpy = item = tolist = backward = set_value = _has_no_value
    __array__ = __array_function__ = __float__ = __int__ = __complex__ = __index__ = _has_no_value


def symbol(variable: Variable) -> Symbol:
    """Wrap a variable to give it the methods of tensors."""
    return Symbol(variable.program, variable.block, variable.desc)
