"""Python's operators of Variables and tensors: `x + y`, `x < y`, `x[0]`. Packs bring them; the core knows their signs.

A pack names the function of `x + y` and that of `1 + x` in the hook oprack_layers, by `register.layer("add",
"my_pack.arithmetic:add", namespace="operators")` and "radd". Such a function takes whatever has `_apply`, which calls
an op: Variables and tensors. One of the namespace "tensor_operators" goes before it for eager tensors, as a shorter
way.

The first use of an operator puts its function on the class. Every later one is an ordinary method of Python, until
packs change.
"""

# mypy: disable-error-code="override, empty-body"
from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from oprack.errors import UnknownLayerError
from oprack.packs import advice
from oprack.packs.advice import home
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager

_BETWEEN = "add + sub - mul * truediv / floordiv // mod % pow ** matmul @ and & or | xor ^ lshift << rshift >>".split()
_ALONE = "lt < le <= gt > ge >= eq == ne != neg - pos + invert ~ abs abs() getitem [...]".split()
SIGNS = {
    **dict(zip(_BETWEEN[::2], _BETWEEN[1::2], strict=True)),
    **{f"r{name}": sign for name, sign in zip(_BETWEEN[::2], _BETWEEN[1::2], strict=True) if name != "matmul"},
    **dict(zip(_ALONE[::2], _ALONE[1::2], strict=True)),
}
"""The operators of Variables, by the name of Python's method without underscores, and how they are written."""
OF_TENSORS = {"rmatmul": "@", "setitem": "[...] ="}
"""Those that only eager tensors have."""

T = TypeVar("T", covariant=True)


class _Awaited:
    """Stands on a class for an operator that nobody has used since packs changed.

    Args:
        owner: The class.
        name: The operator.
        sign: How it is written.
        namespaces: Where packs name its function, the first one first.
    """

    def __init__(self, owner: type, name: str, sign: str, namespaces: tuple[str, ...]) -> None:
        self.owner, self.name, self.sign, self.namespaces = owner, name, sign, namespaces

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        # Python takes an error of a look-up of == for "has none", so it is raised by the call.
        return self._function() if instance is None else MethodType(self, instance)

    def __call__(self, *operands: Any) -> Any:
        return self._function()(*operands)

    def _function(self) -> Callable[..., Any]:
        """What a pack brings, from now on on the class; raises UnknownLayerError, which names the pack to install."""
        manager = default_manager()
        for namespace in self.namespaces:
            if manager.has_layer(namespace, self.name):
                found: Callable[..., Any] = manager.layer(namespace, self.name)
                setattr(self.owner, f"__{self.name}__", found)
                return found
        pack = next(filter(None, (home(namespace, self.name) for namespace in self.namespaces)), "")
        raise UnknownLayerError(
            f"operator {self.sign} of {self.owner.__name__}s is unknown: no installed pack brings it; "
            + (advice.install(pack, manager.discovered()) if pack else "install the pack that does")
            + f", or a pack of your own does by register.layer({self.name!r}, 'module:function', "
            f"namespace={self.namespaces[-1]!r})"
        )


_awaited: list[_Awaited] = []


def offer_operators(cls: type, signs: dict[str, str], *namespaces: str) -> None:
    """Let a class have the operators that packs bring.

    Args:
        cls: The class.
        signs: The operators, and how they are written.
        namespaces: Where packs name their functions, the first one first.
    """
    mine = [_Awaited(cls, name, sign, namespaces) for name, sign in signs.items()]
    _awaited.extend(mine)
    _await(mine)


def _await(some: list[_Awaited]) -> None:
    for one in some:
        setattr(one.owner, f"__{one.name}__", one)


on_change(lambda: _await(_awaited))


if TYPE_CHECKING:

    class Operators(Generic[T]):
        """The operators as type checkers read them: what they give is a T."""

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
