"""`dataclass` of the standard library, made in less time: a start of a process makes a hundred such classes.

The standard library (before Python 3.13) compiles six functions for each class. Here `__init__`, `__eq__` and
`__hash__` are compiled when somebody looks them up, and the others are closures. What comes out is a dataclass to all
who ask: its fields, `dataclasses.replace`, inheritance, pattern matching and pickles are the same.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from reprlib import recursive_repr
from types import FunctionType
from typing import TYPE_CHECKING, Any


def _dataclass(cls: type[Any] | None = None, /, *, frozen: bool = False, eq: bool = True, slots: bool = False) -> Any:
    """Make a dataclass.

    Args:
        cls: The class; None where the decorator has options.
        frozen: Whether its fields can't be set after `__init__`.
        eq: Whether instances are compared by their fields.
        slots: Whether its instances have no dict.
    """
    if cls is None:
        return lambda found: _made(found, frozen, eq, slots)
    return _made(cls, frozen, eq, slots)


class _Factory:
    """Stands for a default that is made for each instance."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _made(cls: type[Any], frozen: bool, eq: bool, slots: bool) -> type[Any]:
    own = cls.__dict__
    is_hashable = own.get("__hash__") is not None or ("__hash__" in own and "__eq__" not in own)
    # A class may not be less frozen than its bases, and who looks at a class finds out whether it is.
    derived = any("__dataclass_fields__" in base.__dict__ for base in cls.__mro__[1:])
    if cls.__doc__ is None:  # else it is put together by the module inspect, for which that compiles Python's grammar
        cls.__doc__ = f"{cls.__name__}({', '.join(own.get('__annotations__', ()))})"
    cls = dataclasses.dataclass(cls, init=False, repr=False, eq=False, slots=slots, frozen=frozen and derived)
    params = cls.__dataclass_params__
    params.init, params.repr, params.eq, params.frozen = True, True, eq, frozen
    fields = dataclasses.fields(cls)
    found: dict[str, Any] = {
        "__init__": _init(cls, fields, frozen),
        "__repr__": _repr([f.name for f in fields if f.repr]),
    }
    compared = [f for f in fields if f.compare]
    if eq:
        found["__eq__"] = _comparison(cls, [f.name for f in compared])
        if frozen and not is_hashable:
            hashed = [f.name for f in fields if (f.compare if f.hash is None else f.hash)]
            found["__hash__"] = _Late(cls, "__hash__", "self", [f"return hash({_row('self', hashed)})"], {}, {})
        elif not is_hashable:
            found["__hash__"] = None
    if frozen and not derived:
        names = frozenset(f.name for f in fields)
        found |= {"__setattr__": _refusal(cls, names, "assign to"), "__delattr__": _refusal(cls, names, "delete")}
    if frozen and slots:
        found |= _pickling([f.name for f in fields])
    for name, value in found.items():
        if name in ("__init__", "__hash__") or name not in cls.__dict__:
            setattr(cls, name, value)
            if isinstance(value, FunctionType):
                value.__name__, value.__qualname__ = name, f"{cls.__qualname__}.{name}"
                value.__module__ = cls.__module__
    return cls


class _Late:
    """A method that is compiled when it is looked up first, and takes the place of this.

    Args:
        cls: The class that has it.
        name: Its name.
        arguments: What it takes.
        lines: What it does.
        known: What these read.
        annotations: Of its arguments.
    """

    def __init__(
        self,
        cls: type[Any],
        name: str,
        arguments: str,
        lines: list[str],
        known: dict[str, Any],
        annotations: dict[str, Any],
    ) -> None:
        self._made = cls, name, arguments, lines, known, annotations

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Any:
        cls, name, arguments, lines, known, annotations = self._made
        exec(f"def made({arguments}):\n " + "\n ".join(lines or ["pass"]), known)
        made = known["made"]
        made.__name__, made.__qualname__, made.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
        made.__annotations__ = annotations
        setattr(cls, name, made)
        return made.__get__(instance, owner)


def _init(cls: type[Any], fields: Sequence[dataclasses.Field[Any]], frozen: bool) -> Any:
    """`__init__`, unless the class has one of its own."""
    if "__init__" in cls.__dict__:
        return cls.__dict__["__init__"]
    known: dict[str, Any] = {"_set": object.__setattr__, "_FACTORY": _FACTORY}
    plain, by_name, lines = ["self"], ["*"], []
    for field in fields:
        name, value = field.name, field.name
        has_factory = field.default_factory is not dataclasses.MISSING
        if has_factory:
            known[f"_make_{name}"] = field.default_factory
            value = f"_make_{name}() if {name} is _FACTORY else {name}" if field.init else f"_make_{name}()"
        elif field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
        if field.init:
            default = "=_FACTORY" if has_factory else f"=_default_{name}" if f"_default_{name}" in known else ""
            (by_name if field.kw_only else plain).append(name + default)
        elif not has_factory:
            if "__slots__" in cls.__dict__ and f"_default_{name}" in known:
                value = f"_default_{name}"
            else:
                continue  # the class has the default
        lines.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    arguments = ", ".join([*plain, *(by_name if by_name[1:] else [])])
    annotations = {f.name: f.type for f in fields if f.init} | {"return": None}
    return _Late(cls, "__init__", arguments, lines, known, annotations)


def _row(owner: str, names: Sequence[str]) -> str:
    return "(" + "".join(f"{owner}.{name}, " for name in names) + ")"


def _comparison(cls: type[Any], names: Sequence[str]) -> _Late:
    rows = f"{_row('self', names)} == {_row('other', names)}"
    line = f"return {rows} if other.__class__ is self.__class__ else NotImplemented"
    return _Late(cls, "__eq__", "self, other", [line], {}, {})


def _repr(names: Sequence[str]) -> Callable[..., str]:
    @recursive_repr()
    def represent(self: Any) -> str:
        return f"{self.__class__.__qualname__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

    return represent


def _refusal(cls: type[Any], names: Collection[str], what: str) -> Callable[..., None]:
    method = "__setattr__" if what == "assign to" else "__delattr__"

    def refuse(self: Any, name: str, *value: Any) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot {what} field {name!r}")
        getattr(super(cls, self), method)(name, *value)

    return refuse


def _pickling(names: Sequence[str]) -> dict[str, Callable[..., Any]]:
    """Of frozen classes with slots: to pickle would set what can't be set."""

    def state_of(self: Any) -> list[Any]:
        return [getattr(self, name) for name in names]

    def set_state(self: Any, state: list[Any]) -> None:
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return {"__getstate__": state_of, "__setstate__": set_state}


if TYPE_CHECKING:  # to type checkers it is the function that they know
    from dataclasses import dataclass as dataclass
else:
    dataclass = _dataclass
    dataclass.__name__ = dataclass.__qualname__ = "dataclass"
