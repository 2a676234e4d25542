"""Python's operators of Variables and tensors: `x + y`, `x < y`, `x[0]`. Packs bring what they do.

A pack registers the function of `x + y` in the hook oprack_layers, by `register.layer("add",
"my_pack.arithmetic:add", namespace="operators")`, and that of `1 + x` as "radd". Its operands are Variables or eager
tensors; both have a method `_apply`, which calls an op. For eager tensors a function of the namespace
"tensor_operators" comes first, which may be faster.

A class starts with a placeholder for each operator. Its first use looks the function up and puts it on the class, as an
ordinary method, which stays there until packs change.
"""

# mypy: disable-error-code="override, empty-body"
from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from oprack.errors import UnknownLayerError
from oprack.names.tables import home
from oprack.packs import advice
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager

_BINARY = "add + sub - mul * truediv / floordiv // mod % pow ** matmul @ and & or | xor ^ lshift << rshift >>".split()
_OTHERS = "lt < le <= gt > ge >= eq == ne != neg - pos + invert ~ abs abs() getitem [...]".split()
SIGNS = {
    **dict(zip(_BINARY[::2], _BINARY[1::2], strict=True)),
    **{f"r{name}": sign for name, sign in zip(_BINARY[::2], _BINARY[1::2], strict=True) if name != "matmul"},
    **dict(zip(_OTHERS[::2], _OTHERS[1::2], strict=True)),
}
"""The operators of Variables: the name of Python's method without underscores -> how the operator is written."""
OF_TENSORS = {"rmatmul": "@", "setitem": "[...] ="}
"""Operators that only eager tensors have."""

T = TypeVar("T", covariant=True)


class _Placeholder:
    """Stands on a class for an operator that nobody has used since packs changed.

    Args:
        owner: The class.
        name: The name of Python's method without underscores.
        sign: How the operator is written.
        namespaces: The namespaces in which packs register its function, in order of preference.
    """

    def __init__(self, owner: type, name: str, sign: str, namespaces: tuple[str, ...]) -> None:
        self.owner, self.name, self.sign, self.namespaces = owner, name, sign, namespaces

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        # An error is left to the call: one from the look-up of == would tell Python that the class has no ==.
        return self._function() if instance is None else MethodType(self, instance)

    def __call__(self, *operands: Any) -> Any:
        return self._function()(*operands)

    def _function(self) -> Callable[..., Any]:
        """Put a pack's function on the class. Raises UnknownLayerError, which names the pack to install."""
        manager = default_manager()
        for namespace in self.namespaces:
            if manager.has_layer(namespace, self.name):
                function: Callable[..., Any] = manager.layer(namespace, self.name)
                setattr(self.owner, f"__{self.name}__", function)
                return function
        pack = next(filter(None, (home(namespace, self.name) for namespace in self.namespaces)), "")
        raise UnknownLayerError(
            f"operator {self.sign} of {self.owner.__name__}s is unknown: no installed pack brings it; "
            + (advice.install(pack, manager.discovered()) if pack else "install the pack that does")
            + f", or a pack of your own does by register.layer({self.name!r}, 'module:function', "
            f"namespace={self.namespaces[-1]!r})"
        )


_placeholders: list[_Placeholder] = []


def offer_operators(cls: type, signs: dict[str, str], *namespaces: str) -> None:
    """Give a class the operators that packs bring.

    Args:
        cls: The class.
        signs: Name and sign of each operator.
        namespaces: The namespaces in which packs register functions, in order of preference.
    """
    new = [_Placeholder(cls, name, sign, namespaces) for name, sign in signs.items()]
    _placeholders.extend(new)
    _install(new)


def _install(placeholders: list[_Placeholder]) -> None:
    for placeholder in placeholders:
        setattr(placeholder.owner, f"__{placeholder.name}__", placeholder)


on_change(lambda: _install(_placeholders))


if TYPE_CHECKING:

    class Operators(Generic[T]):
        """The operators as type checkers see them: their results are of type T."""

        def __add__(self, other: Any) -> T: ...
        def __radd__(self, other: Any) -> T: ...
        def __sub__(self, other: Any) -> T: ...
        def __rsub__(self, other: Any) -> T: ...
        def __mul__(self, other: Any) -> T: ...
        def __rmul__(self, other: Any) -> T: ...
        def __truediv__(self, other: Any) -> T: ...
        def __rtruediv__(self, other: Any) -> T: ...
        def __floordiv__(self, other: Any) -> T: ...
        def __rfloordiv__(self, other: Any) -> T: ...
        def __mod__(self, other: Any) -> T: ...
        def __rmod__(self, other: Any) -> T: ...
        def __pow__(self, other: Any) -> T: ...
        def __rpow__(self, other: Any) -> T: ...
        def __matmul__(self, other: Any) -> T: ...
        def __and__(self, other: Any) -> T: ...
        def __rand__(self, other: Any) -> T: ...
        def __or__(self, other: Any) -> T: ...
        def __ror__(self, other: Any) -> T: ...
        def __xor__(self, other: Any) -> T: ...
        def __rxor__(self, other: Any) -> T: ...
        def __lshift__(self, other: Any) -> T: ...
        def __rlshift__(self, other: Any) -> T: ...
        def __rshift__(self, other: Any) -> T: ...
        def __rrshift__(self, other: Any) -> T: ...
        def __lt__(self, other: Any) -> T: ...
        def __le__(self, other: Any) -> T: ...
        def __gt__(self, other: Any) -> T: ...
        def __ge__(self, other: Any) -> T: ...
        def __eq__(self, other: object) -> T: ...
        def __ne__(self, other: object) -> T: ...
        def __neg__(self) -> T: ...
        def __pos__(self) -> T: ...
        def __abs__(self) -> T: ...
        def __invert__(self) -> T: ...
        def __getitem__(self, index: Any) -> T: ...

        __hash__ = object.__hash__
