"""How names and arguments of other libraries are spelled here, by the table spellings.toml beside this file.

Paddle's own names are in no entry of it: `oprack.names.paddle` has where they lead, and is asked for what is not here.

What means the same under another name runs: names of [same.<space>], and arguments of [keywords] that are only called
otherwise (`dim = ["axis=..."]`). What means something else, or is not there, is an error that says what to write: each
entry of [write.<space>] is a line that runs, with the tensors and modules of tests/data/names.toml, and tests run every
one of them; those of [absent.<space>] are sentences about what there is not.

An entry of [same.<space>] is a path below `oprack` ("io.DataLoader"), or below the object where the space is one of
objects (`clamp = "clip"` of a tensor), and may be called with arguments before the user's (`float =
'astype("float32")'`). "optimizer.*" makes the name a module of its own, with the names of that space and those of
`oprack.optimizer`; "*" makes it one with the names of its space alone. Where only the first positional arguments of a
function agree, an entry says how many, and why other arguments don't: `{to = "nn.BatchNorm2D", positional = 1,
differs = {momentum = "..."}}`.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from oprack.errors import did_you_mean
from oprack.names import paddle
from oprack.names.paddle import ABSENT as ABSENT
from oprack.names.tables import text


@cache
def spellings() -> dict[str, Any]:
    """The table: "same", "write" and "absent" by space and name, and "keywords" by name."""
    import tomllib

    return tomllib.loads(text("spellings.toml"))


# Names that lead on ---------------------------------------------------------------------------------------------------
def same(space: str, name: str, owner: Any = None) -> Any:
    """What a name of another library is here.

    Args:
        space: Where it was looked for: "oprack", "tensor", "module" (methods of modules), or a namespace such as "nn".
        name: The name.
        owner: The object that was asked; None: the name is one of a module.

    Returns:
        The function, class or module; ABSENT when the table has none of that name.
    """
    entry = spellings()["same"].get(space, {}).get(name, ABSENT)
    if entry is ABSENT:
        return ABSENT if owner is not None else paddle.found(space, name)
    if isinstance(entry, Mapping):
        return _guarded(name, entry)
    if entry.endswith("*"):
        return importlib.import_module(f"oprack.{name}" if space == "oprack" else f"oprack.{space}.{name}")
    return _value(entry, owner)


def same_method(name: str) -> Callable[..., Any] | None:
    """A function whose first argument is the tensor that was asked for a method of another library.

    Args:
        name: The method.

    Returns:
        The function; None when the table has none.
    """
    entry = spellings()["same"].get("tensor", {}).get(name)
    if entry is None:
        return None

    def method(x: Any, *args: Any, **kwargs: Any) -> Any:
        return _value(entry, x)(*args, **kwargs)

    method.__name__, method.__doc__ = name, f"The same as `x.{entry}`."
    return method


def _value(entry: str, owner: Any) -> Any:
    node = ast.parse(entry, mode="eval").body
    if not isinstance(node, ast.Call):
        return _member(entry, owner)
    args = [ast.literal_eval(a) for a in node.args]
    keywords = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords}
    return functools.partial(_member(ast.unparse(node.func), owner), *args, **keywords)


def _member(path: str, owner: Any) -> Any:
    if owner is None:
        return pkgutil.resolve_name(f"oprack.{path}")
    found = owner
    for part in path.split("."):
        found = getattr(found, part)
    return found


def _guarded(name: str, entry: Mapping[str, Any]) -> Callable[..., Any]:
    """A function that passes on arguments that mean the same, and refuses others."""
    target, positional, differs = entry["to"], entry["positional"], entry.get("differs", {})
    called = _member(target, None)

    @functools.wraps(called, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        other = next((n for n in kwargs if n in differs), None)
        if other is not None:
            raise TypeError(f"{name}: {other} means something else in oprack.{target}: {differs[other]}")
        if len(args) > positional:
            raise TypeError(
                f"{name}: got {len(args)} arguments by position, and from {positional + 1} on they mean something else "
                f"in oprack.{target}{inspect.signature(called)}; write them by keyword"
            )
        return called(*args, **kwargs)

    return call


def door_target(room: str) -> str | None:
    """Of which namespace a module of another library has the names.

    Args:
        room: The module below `oprack`, such as "optim" or "utils.data".

    Returns:
        "optimizer"; "" for a module with names of its own, or one of Paddle's; None for no such module.
    """
    space, _, name = room.rpartition(".")
    entry = spellings()["same"].get(space or "oprack", {}).get(name)
    if isinstance(entry, str) and entry.endswith("*"):
        return entry.rstrip("*").rstrip(".")
    return "" if paddle.is_door(room) else None


class Door(ModuleType):
    """A module of another library, such as `oprack.optim`, whose names lead to those here.

    Args:
        room: Its name below `oprack`.
        target: The namespace whose names it has beside its own; "" for none.
    """

    def __init__(self, room: str, target: str) -> None:
        super().__init__(f"oprack.{room}", f"Names of another library's module {room}, where oprack has them.")
        self.__path__: list[str] = []  # modules below it are doors, too
        self._room, self._target = room, target

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            found = same(self._room, name)
            if found is not ABSENT:
                return found
            if advice := instead(self._room, name):
                raise AttributeError(f"oprack.{self._room} has no {name!r}{advice}")
            if self._target:
                return getattr(_member(self._target, None), name)
        near = did_you_mean(name, self.__dir__())
        raise AttributeError(f"oprack.{self._room} has no {name!r}{near}; dir(oprack.{self._room}) lists what it has")

    def __dir__(self) -> list[str]:
        below = dir(_member(self._target, None)) if self._target else ()
        return sorted({*spellings()["same"].get(self._room, {}), *below, *(paddle.door(self._room) or ())})


# Errors that say what to write ----------------------------------------------------------------------------------------
def instead(space: str, name: str) -> str:
    """The end of a message about an unknown name.

    Args:
        space: Where it was looked for: "oprack", "tensor", "module" (methods of modules), or a namespace such as "nn".
        name: The name.

    Returns:
        "; write ..." or "; ...", "" when the table does not have the name.
    """
    table = spellings()
    line = table["write"].get(space, {}).get(name)
    if line:
        return f"; write {line}"
    sentence = table["absent"].get(space, {}).get(name)
    return f"; {sentence}" if sentence else paddle.where(space, name)


# Arguments ------------------------------------------------------------------------------------------------------------
def renamed(parameters: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Keyword arguments under the names that a call has.

    Args:
        parameters: The names that the call has.
        given: What the user gave; those that only have another name in another library are renamed.

    Returns:
        The arguments; those that mean nothing to the call are as they were.
    """
    table = spellings()["keywords"]
    found = dict[str, Any]()
    for name, value in given.items():
        forms = () if name in parameters else table.get(name, ())
        to = next((f[:-4] for f in forms if f.endswith("=...") and f[:-4] in parameters), name)
        found[name if to in given else to] = value
    return found


def accept_other_names(cls: type, arranged: Callable[..., Any] | None = None) -> None:
    """Let the `__init__` that a class defines take arguments under the names that they have in other libraries.

    Args:
        cls: The class.
        arranged: Puts the arguments of other libraries in order: from (args, kwargs) to (args, kwargs).
    """
    init = vars(cls).get("__init__")
    if not isinstance(init, FunctionType) or not (arranged or _targets() & {*_parameters(init), "**"}):
        return

    @functools.wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if kwargs and not kwargs.keys().isdisjoint(spellings()["keywords"]):
            kwargs = renamed(_all_parameters(cls), kwargs)
        if arranged is not None:
            args, kwargs = arranged(args, kwargs)
        init(self, *args, **kwargs)

    cls.__init__ = __init__  # type: ignore[misc]


@cache
def with_other_names(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that takes arguments under the names that they have in other libraries.

    Args:
        function: The function.

    Returns:
        It, or the function itself, where the table has nothing for its parameters, or it takes `**other` on its own.
    """
    if not isinstance(function, FunctionType):
        return function
    parameters = frozenset(_parameters(function))
    # The first argument is hardly ever given by name, and a call costs less without this.
    if not (_targets() - {"x", "y", "**"}) & parameters or "other" in function.__annotations__:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if kwargs and not kwargs.keys() <= parameters:
            kwargs = renamed(parameters, kwargs)
        return function(*args, **kwargs)

    return call


def in_other_words(call: str, other: Mapping[str, Any], **accepted: Any) -> list[Any]:
    """The arguments of a call that may have been given under the names that they have in other libraries.

    Args:
        call: What is called, for the message.
        other: What was given under names that the call does not have.
        accepted: Its arguments, with what was given for them.

    Returns:
        The arguments, in order.

    Raises:
        TypeError: One of `other` is none of them.
    """
    named = renamed(accepted.keys(), other)
    if not named.keys() <= accepted.keys():
        refuse_others(call, ", ".join(accepted), {n: v for n, v in other.items() if n in named})
    return list({**accepted, **named}.values())


@cache
def _targets() -> frozenset[str]:
    forms = (form for forms in spellings()["keywords"].values() for form in forms)
    return frozenset(["**", *(form.partition("=")[0] for form in forms)])


def _parameters(function: FunctionType) -> list[str]:
    code = function.__code__
    named = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return [*named, "**"] if code.co_flags & inspect.CO_VARKEYWORDS else named


def _all_parameters(cls: type) -> list[str]:
    """Those of a class's `__init__`, and of the classes above, to which `**options` passes what it holds."""
    inits = [vars(c)["__init__"] for c in cls.__mro__[:-1] if "__init__" in vars(c)]
    return [name for init in inits for name in inspect.signature(init).parameters]


def refuse_others(call: str, accepted: str, other: Mapping[str, Any]) -> NoReturn:
    """Refuse keyword arguments that a call does not have.

    Args:
        call: What is called, for the message.
        accepted: Its arguments, for the message.
        other: What was given besides.

    Raises:
        TypeError: There is one; the message says under which name the call has it, where that is known.
    """
    raise TypeError(f"{call}: {_unknown(other)}; expected {accepted}{keywords_instead(accepted.split(', '), other)}")


def require_keywords(owner: type, given: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that a class's `__init__` does not have, if the table knows what to write instead.

    Args:
        owner: The class that is being created.
        given: The keyword arguments.

    Raises:
        TypeError: There is one.
    """
    if given.keys().isdisjoint(spellings()["keywords"]):
        return
    parameters = _all_parameters(owner)
    other = {n: v for n, v in renamed(parameters, given).items() if n not in parameters}
    if advice := keywords_instead(parameters, other):
        raise TypeError(f"{owner.__name__}: {_unknown(other)}{advice}")


class InitSignature:
    """`__signature__` of a class whose `__new__` takes anything, which Python before 3.11.4 would show instead."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        if instance is not None:  # what it is called with is not what its class is
            raise AttributeError("__signature__")
        found = inspect.signature(owner.__init__)  # type: ignore[misc]
        return found.replace(parameters=list(found.parameters.values())[1:])


def keywords_instead(parameters: Iterable[str], other: Mapping[str, Any]) -> str:
    """What to write for keyword arguments under another name.

    Args:
        parameters: The names that the call has.
        other: What was given under names that it does not have; `...` for a value that is not known.

    Returns:
        "; write axis=1", or "" when nothing is known.
    """
    known, table = set(parameters), spellings()["keywords"]
    found = []
    for name, value in other.items():
        forms = [form for form in table.get(name, ()) if form.partition("=")[0] in known]
        found += [form.replace("...", _short(value)) for form in forms[:1]]
    return f"; write {', '.join(found)}" if found else ""


def _unknown(other: Mapping[str, Any]) -> str:
    return f"got {', '.join(f'{n}={_short(v)}' for n, v in other.items())}, which is no argument of it"


def _short(value: Any) -> str:
    shown = "..." if value is ... else repr(value)
    return shown if len(shown) <= 60 and "\n" not in shown else "..."
