"""Functions of tensors by the names that users know: those that packs write, and ops.

`oprack.functional` has every op under its own type. Packs write functions beside them, with the signatures of Paddle 2,
through the hook oprack_layers (namespace "functional"). They are found as `oprack.<name>`, as
`oprack.nn.functional.<name>` and, where the first argument is a tensor, as methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from oprack.errors import UnknownOpError, did_you_mean
from oprack.functional.generated import UnknownFunctionError
from oprack.functional.generated import function as function_of
from oprack.names.spellings import instead, same_method, with_other_names
from oprack.names.tables import home
from oprack.packs.changes import on_change
from oprack.packs.manager import default_manager

NAMESPACE = "functional"
_public: dict[str, Callable[..., Any]] = {}
on_change(_public.clear)


def written(name: str) -> Callable[..., Any] | None:
    """The function that a pack writes under a name.

    Args:
        name: The name.

    Returns:
        The function; None when no pack writes one.

    Raises:
        AlreadyExistsError: Two packs write it.
        PackImportError: Its module can't be imported.
    """
    manager = default_manager()
    if not manager.has_layer(NAMESPACE, name):
        return None
    return with_other_names(manager.layer(NAMESPACE, name))


def public(name: str) -> Callable[..., Any]:
    """What `oprack.<name>` and `oprack.nn.functional.<name>` are: a written function, else an op.

    Args:
        name: The name.

    Returns:
        The function, kept until packs change.

    Raises:
        UnknownFunctionError: There is neither.
        UnknownLayerError: A pack that is not installed writes it.
    """
    found = _public.get(name)
    if found is None:
        found = written(name)
        if found is None:
            try:
                found = function_of(name)
            except UnknownFunctionError:
                if not home(NAMESPACE, name):
                    raise
                found = default_manager().layer(NAMESPACE, name)  # raises: it names the pack to install
        _public[name] = found
    return found


def written_names() -> list[str]:
    """The names of all functions that packs write, sorted."""
    return default_manager().layer_names(NAMESPACE)


def public_names() -> list[str]:
    """The names that `public` knows, sorted: of ops those that users call, not gradients and the like."""
    return sorted({*written_names(), *forward_ops(default_manager().op_types())})


def forward_ops(op_types: Iterable[str]) -> list[str]:
    """The op types that are no gradients, among some.

    Args:
        op_types: The op types.

    Returns:
        Those that no autodiff appended.
    """
    return [t for t in op_types if not t.endswith("_grad") and "_grad_" not in t]


class _NoMember(AttributeError):
    """A tensor has no such member. hasattr() asks for many, so what to write instead is looked for by who prints it."""

    def __init__(self, owner: str, name: str) -> None:
        super().__init__(owner, name)

    def __str__(self) -> str:
        owner, name = self.args
        advice = instead("tensor", name) or did_you_mean(name, public_names())
        return f"{owner!r} object has no attribute or op {name!r}{advice}"


def method(owner: str, name: str) -> Callable[..., Any]:
    """What `x.<name>` calls where Tensor itself has no such member: a written function, else an op.

    Args:
        owner: The class, for the message.
        name: The name.

    Returns:
        The function, whose first argument is the tensor.

    Raises:
        AttributeError: There is neither; the message says what to write instead, where that is known.
    """
    if name.startswith("_"):
        raise AttributeError(f"{owner!r} object has no attribute {name!r}")
    found = written(name)
    if found is not None:
        return found
    if not default_manager().has_op(name) and not home("ops", name):
        if (other := same_method(name)) is not None:
            return other
        if home(NAMESPACE, name):
            default_manager().layer(NAMESPACE, name)  # raises: it names the pack to install
        raise _NoMember(owner, name)
    try:
        return function_of(name)
    except UnknownOpError as error:  # of a pack that is not there, blocked or broken
        advice = instead("tensor", name)
        raise AttributeError(f"{owner!r} object has no attribute or op {name!r}{advice or f': {error}'}") from error
