"""Symbols: the Variables that stand for tensors, and OpenNumbers, for sizes, while a function is captured."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable
from contextvars import ContextVar
from types import FrameType
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from oprack.errors import PreconditionNotMetError, UnimplementedError
from oprack.layers import unique_name
from oprack.layers.append import append_op
from oprack.layers.operators import SIGNS
from oprack.layers.user_line import is_ours
from oprack.layers.variable import Variable
from oprack.packs import op_for
from oprack.types import dtype_enum

if TYPE_CHECKING:
    from oprack.eager_tensor import Tensor
    from oprack.eager_tensor.methods import SharedMethods

    class _Installed(SharedMethods, Variable): ...
else:
    _Installed = Variable


def _builds(frame: FrameType) -> bool:
    """Whether a frame's code builds programs: that of the core, and layers of packs."""
    name = frame.f_globals.get("__name__") or ""
    return is_ours(frame) and (not name.startswith("oprack_") or ".layers." in name)


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

        Code of the core and of layers reads -1 there, as in every program that is built.
        """
        if _builds(sys._getframe(1)):
            return self.desc.shape or ()
        return open_shape(self)

    @property
    def size(self) -> Any:
        """Number of elements."""
        if _builds(sys._getframe(1)):
            return math.prod(self.desc.shape or ())
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

    __array_priority__ = 1000  # makes `array + x` call this class's operator, not NumPy's

    # What needs a value -----------------------------------------------------------------------------------------------
    def _has_no_value(self, *_: Any, **__: Any) -> NoReturn:
        raise PreconditionNotMetError(
            f"variable {self.name!r} ({self.dtype}{list(self.shape)}) has no value while oprack.jit or "
            "oprack.to_program writes a function down as a program: Python runs once, for all inputs. Do this outside "
            "the function, with what it returns; inside it compute with tensors alone"
        )

    def __format__(self, spec: str) -> str:
        return self._has_no_value() if spec else str(self)

    def _lies_nowhere(self, *_: Any, **__: Any) -> NoReturn:
        raise UnimplementedError(
            f"variable {self.name!r} ({self.dtype}{list(self.shape)}) has no layout while oprack.jit or "
            "oprack.to_program writes a function down as a program: how tensors lie on ranks is found out when it "
            "runs. Give it tensors that lie as they should (x.to_global(...) before the call), and use what it returns "
            "by to_local() after it"
        )

    to_global = to_local = _lies_nowhere
    layout = is_global = property(_lies_nowhere)
    numpy = item = tolist = backward = set_value = _has_no_value
    __array__ = __array_function__ = __float__ = __int__ = __complex__ = __index__ = _has_no_value


def symbol(variable: Variable) -> Symbol:
    """Wrap a variable to give it the methods of tensors."""
    return Symbol(variable.program, variable.block, variable.desc)


def _between(name: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """An operator by its name in the module operator, and the reflected one."""

    def forward(self: OpenNumber, other: Any) -> Any:
        return self._with(other, name, False)

    def backward(self: OpenNumber, other: Any) -> Any:
        return self._with(other, name, True)

    return forward, backward


class OpenNumber(Symbol):
    """A Python number of eager calls that a captured program knows only when it runs, such as `x.shape[0]`.

    Arithmetic with it is done by ops. Beside a tensor it counts as a number, which leaves the tensor's dtype as it is.
    Ops take it where they take a size or an index. What Python would have to know its value for is refused.

    Args:
        source: The variable that has the number as its value, or the one whose dim it is the size of.
        text: What it is, for messages.
        dim: The dim; None: the variable itself is the number. The ops that read a dim are appended on first use.
    """

    __slots__ = ("_dim", "_source", "text")

    def __init__(self, source: Variable, text: str, dim: int | None = None) -> None:
        self.program, self.block = source.program, source.block
        self._source, self._dim, self.text = source, dim, text
        if dim is None:
            self.desc = source.desc

    def __getattr__(self, name: str) -> Any:
        if name != "desc":
            return super().__getattr__(name)
        # Beside its variable, which every block that can use the number sees.
        dims = self._appended("shape_of", {"Input": self._source}, {})
        at = self._dim or 0
        part = {"axes": [0], "starts": [at], "ends": [at + 1], "decrease_axis": [0], "infer_flags": [1]}
        size = self._appended("part", {"Input": dims}, part)
        kinds = {"in_dtype": int(dtype_enum(str(size.dtype))), "out_dtype": int(dtype_enum("int64"))}
        self.desc = self._appended("convert", {"X": size}, kinds).desc
        return self.desc

    def _appended(self, role: str, inputs: dict[str, Any], attrs: dict[str, Any]) -> Variable:
        op_type = op_for(role)
        out = Variable(self.program, self.block, self.block.create_var(unique_name.generate(f"{op_type}.tmp")))
        append_op(op_type, inputs, {"Out": out}, attrs, program=self.program, block=self.block).origin = 0
        out.stop_gradient = True
        return out

    def as_number_of(self, dtype: str | None) -> Symbol:
        """The number as an operand: a tensor of one element, without dims.

        Args:
            dtype: Its dtype; None: as it is.

        Returns:
            The tensor.
        """
        found = symbol(Variable(self.program, self.block, self.desc))
        return found if dtype in (None, found.dtype) else found.astype(dtype)  # type: ignore[return-value]

    @property
    def like(self) -> int | float:
        """A number of its kind: beside a tensor, that of an int is another than that of a float."""
        return 1 if self._is_whole else 1.0

    @property
    def _is_whole(self) -> bool:
        return self._dim is not None or self.dtype == "int64"

    def _with(self, other: Any, name: str, reverse: bool) -> Any:
        if not isinstance(other, numbers.Real | OpenNumber):
            return NotImplemented  # a tensor's operators take numbers that are open
        whole = self._is_whole and (other._is_whole if isinstance(other, OpenNumber) else isinstance(other, int))
        dtype = "int64" if whole and name != "truediv" else "float64"
        mine = self.as_number_of(dtype)
        x = other.as_number_of(dtype) if isinstance(other, OpenNumber) else other if dtype == "int64" else float(other)
        text = f"{other} {SIGNS[name]} {self.text}" if reverse else f"{self.text} {SIGNS[name]} {other}"
        compute = getattr(operator, name)
        found = compute(x, mine) if reverse else compute(mine, x)
        found.stop_gradient = True
        return OpenNumber(found, f"({text})")

    __add__, __radd__ = _between("add")
    __sub__, __rsub__ = _between("sub")
    __mul__, __rmul__ = _between("mul")
    __truediv__, __rtruediv__ = _between("truediv")
    __floordiv__, __rfloordiv__ = _between("floordiv")
    __mod__, __rmod__ = _between("mod")
    __pow__, __rpow__ = _between("pow")

    def __neg__(self) -> Any:
        return 0 - self

    def __pos__(self) -> Any:
        return self

    # What Python would have to know it for ----------------------------------------------------------------------------
    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise PreconditionNotMetError(
            f"{self.text} is open (None in an InputSpec or dependent on values), so it is known only when the program "
            "runs: Python, which runs once, can't compare it, count up to it or make an int of it. Compute with ops, "
            "which take it as a size (x.reshape([n, -1]), oprack.zeros([n, 3]), oprack.arange(n), x[: n - 1], x / n); "
            "branch and loop with oprack.layers.cond and while_loop; or give a dim that is None a size"
        )

    def _compare(self, other: Any) -> Any:
        """With a number there is no answer yet; with a tensor it is an op, which the tensor calls."""
        return self._refuse() if isinstance(other, numbers.Real | OpenNumber) else NotImplemented

    def __eq__(self, other: object) -> Any:
        if other is self:
            return True
        if isinstance(other, numbers.Real) and other == -1 and self._dim is not None:
            return True  # as an InputSpec writes it
        return self._compare(other)

    def __ne__(self, other: object) -> Any:
        if other is self or (isinstance(other, numbers.Real) and other == -1 and self._dim is not None):
            return False
        return self._compare(other)

    __hash__ = object.__hash__
    __lt__ = __le__ = __gt__ = __ge__ = _compare
    __bool__ = __len__ = __iter__ = _refuse
    numpy = item = tolist = __array__ = __float__ = __int__ = __complex__ = __index__ = __round__ = _refuse

    def __repr__(self) -> str:
        return self.text

    __str__ = __repr__


def declared_shape(x: Any) -> tuple[int, ...]:
    """The shape of a tensor or Variable as a program declares it, for code that compares shapes.

    Args:
        x: The tensor or Variable.

    Returns:
        The dims, -1 for one that is open while a function is captured.
    """
    return tuple(x.desc.shape or ()) if isinstance(x, Variable) else x.shape


def open_shape(x: Symbol) -> tuple[Any, ...]:
    """The shape of a variable of a captured program, with an OpenNumber for each dim that is open.

    Args:
        x: The variable.

    Returns:
        The dims; the same objects each time.
    """
    dims = x.desc.shape or ()
    capture = current_capture.get()
    if capture is None or all(d >= 0 for d in dims):
        return tuple(dims)
    for i, d in enumerate(dims):
        if d < 0 and (x.name, i) not in capture.dims:
            capture.dims[x.name, i] = OpenNumber(x, f"dim {i} of {x.name!r}", i)
    return tuple([d if d >= 0 else capture.dims[x.name, i] for i, d in enumerate(dims)])
