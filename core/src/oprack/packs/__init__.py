"""Packs: finding them, what they bring, and who brings which op. The module itself can be called: `oprack.packs()`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from oprack.packs.changes import on_change

if TYPE_CHECKING:
    from oprack.op import OpDef, OpFacets, OpInfo
    from oprack.packs.manager import PackManager, default_manager, use_manager
    from oprack.packs.pack import BrokenPackWarning, PackInfo, PackWarning
    from oprack.packs.register import Register

_HOMES = {
    "BrokenPackWarning": "pack",
    "PackInfo": "pack",
    "PackManager": "manager",
    "PackWarning": "pack",
    "Register": "register",
    "default_manager": "manager",
    "use_manager": "manager",
}
__all__ = [
    "BrokenPackWarning",
    "PackInfo",
    "PackManager",
    "PackWarning",
    "Register",
    "default_manager",
    "op_for",
    "op_info",
    "register_kernel",
    "register_operator",
    "use_manager",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'oprack.packs' has no attribute {name!r}")
    return getattr(importlib.import_module(f"oprack.packs.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


Op = TypeVar("Op", bound="str | type[OpDef] | OpFacets")


def op_info(op_type: str) -> OpInfo:
    """Everything known about an op type but its kernels; its definition is imported on first use.

    Args:
        op_type: The op type, such as "relu".

    Returns:
        The OpInfo.

    Raises:
        UnknownOpError: No installed pack brings it; the message names the pack that does, if one is known.
        DuplicateOpError: Two packs bring it.
        PackImportError: Its pack can't be imported.
    """
    from oprack.packs.manager import default_manager

    return default_manager().op_info(op_type)


_players: dict[str, str] = {}
on_change(_players.clear)


def op_for(role: str) -> str:
    """The op type that plays a role of the vocabulary, cached until packs change.

    Args:
        role: The role, such as "copy".

    Returns:
        The op type.

    Raises:
        UnknownRoleError: No pack plays the role.
        DefinitionError: No pack plays it, and the vocabulary has no such role.
    """
    found = _players.get(role)
    if found is None:
        from oprack.packs.manager import default_manager

        found = _players[role] = default_manager().op_for(role)
    return found


def register_operator(op: Op, *facets: Any) -> Op:
    """Bring an op, or facets of one, in this process: in a program or a notebook, without a pack.

    >>> from oprack.kernel import kernel
    >>> from oprack.op import Input, OpDef, Output
    >>> class MySquare(OpDef, type="my_square"):
    ...     "$$Out = X^2$$"
    ...     X = Input("Any tensor.")
    ...     Out = Output("As X.")
    ...
    ...     def infer_shape(ctx):
    ...         ctx.set_dim("Out", ctx.dim("X"))
    >>> op = register_operator(MySquare)
    >>> @register_kernel
    ... @kernel("my_square")
    ... def my_square(X):
    ...     return X * X
    >>> oprack.functional.my_square(oprack.to_tensor([1.0, 3.0])).numpy().tolist()
    [1.0, 9.0]

    A class or a kernel of the same name takes the place of the one before, so a cell of a notebook can be run again.

    Args:
        op: A definition class, which the function may decorate; or OpFacets; or an op type, when `facets` say what it
            is.
        facets: Beside an op type: a definition class, `register_operator("my_square", MySquare)`, which may have no
            type of its own; or classes derived from the facet bases of oprack.op, or instances of them, in any order.

    Returns:
        `op`.

    Raises:
        DefinitionError: For something that is no definition and no facet.
        DuplicateOpError: When a pack brings an op of this type.
        AlreadyExistsError: When a facet is set already.
    """
    from oprack.packs.manager import default_manager

    default_manager().register_operator(op, *facets)
    return op


def register_kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Bring the kernels that @kernel declared on a function, in this process.

    Args:
        function: The function.

    Returns:
        The function.

    Raises:
        DefinitionError: When it is no kernel or does not match its op.
    """
    from oprack.packs.manager import default_manager

    default_manager().register_kernel(function)
    return function


class _PacksModule(ModuleType):
    """`oprack.packs` is this package, and by contract also the call that lists the packs."""

    def __call__(self) -> list[PackInfo]:
        """Every installed pack: name, distribution, version, status and error."""
        from oprack.packs.manager import default_manager

        return default_manager().packs()


sys.modules[__name__].__class__ = _PacksModule
# for type checkers, to which a module can not be called: `oprack` says that `oprack.packs` is this
packs = cast(_PacksModule, sys.modules[__name__])
