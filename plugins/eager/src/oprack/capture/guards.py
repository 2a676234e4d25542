"""Guards: what a captured program took from outside its arguments, compared before it serves another call.

The Python code of a captured function runs once. What it read then, of Modules, closures and globals, became part of
the program, so a call may use the program only while reading would give the same again.

Modules note every attribute that is read of them while the function is captured, and tensors that their numbers were
asked for. Of functions the code says which globals and closure cells they read; functions, classes and objects that are
found there are followed, those of oprack, NumPy and the standard library excepted. Numbers, text and lists, tuples,
sets and dicts of them are compared by value and type, small arrays by their elements, objects of the user's classes by
identity and attributes, tensors, Modules and all other objects by identity.

Not compared: what lies deeper than six levels or in containers of more than 1,024 items; the elements of larger
arrays; attributes of objects with __slots__; files, the clock and other things outside; functions that are called by
code that is not followed.
"""

from __future__ import annotations

import dis
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from operator import is_
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple
from weakref import WeakSet

import numpy as np
from oprack.capture.frozen import ITEMS, containers, frozen, is_foreign, items_of
from oprack.eager_tensor import Tensor
from oprack.errors import PreconditionNotMetError
from oprack.layers.framework import VariableHandle
from oprack.nn.module import CHANGES, Module

_MISSING: Any = type("missing", (), {"__repr__": lambda self: "nothing"})()
_Row = tuple[Callable[[Any, Any], Any], Any, Any]
"""(how to read, where, which): `read(where, which)` is what the captured function found there."""


# What is read ---------------------------------------------------------------------------------------------------------
class _Reads:
    """What is read while a function is captured.

    Attributes:
        members: (Module, attribute, key of the value at the first read).
        tensors: (tensor, value, version) of those that their numbers were asked for.
    """

    def __init__(self) -> None:
        self.members: dict[tuple[int, str], tuple[Module, str, Any]] = {}
        self.tensors: dict[int, tuple[Tensor, Any, int]] = {}


_reads: ContextVar[_Reads | None] = ContextVar("oprack_reads", default=None)
# Methods of tensors that give numbers to Python; most others call one of them.
_PLAIN_METHOD = "__oprack_plain__"
_VALUES = ("numpy", "item", "tolist", "__array__", "__float__", "__int__", "__bool__", "__index__", "__complex__")
_lock = threading.Lock()
# Captures under way. One that was interrupted between two lines goes with its object.
_under_way: WeakSet[_Reads] = WeakSet()


def _noting_read(self: Module, name: str) -> Any:
    reads = _reads.get()
    if reads is not None and not name.startswith("__") and (id(self), name) not in reads.members:
        # As it is before the function may change it.
        reads.members[id(self), name] = self, name, frozen(_member(self, name))
    return object.__getattribute__(self, name)


@contextmanager
def _noted() -> Iterator[_Reads]:
    """Within the with block, note what is read of Modules and tensors; what other threads read is not noted."""
    reads = _Reads()
    token = None
    try:
        token = _reads.set(reads)
        with _lock:
            _under_way.add(reads)
            _note_reads()
        yield reads
    finally:
        with _lock:
            _under_way.discard(reads)
            if not _under_way:
                _note_nothing()
        if token is not None:
            _reads.reset(token)


def _unlock() -> None:
    """In a process that was forked: a thread that is not in it may have had the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlock)


def _note_reads() -> None:
    """Note reads, which makes every one of them slower; goes on where it was interrupted before."""
    Module.__getattribute__ = _noting_read  # type: ignore[method-assign,assignment]
    for name in _VALUES:
        plain = getattr(Tensor, name, None)
        if plain is not None and not hasattr(plain, _PLAIN_METHOD):
            setattr(Tensor, name, _noting_values(plain))


def _note_nothing() -> None:
    if "__getattribute__" in vars(Module):
        del Module.__getattribute__
    for name in _VALUES:
        plain = getattr(getattr(Tensor, name, None), _PLAIN_METHOD, None)
        if plain is not None:
            setattr(Tensor, name, plain)


def _noting_values(plain: Any) -> Any:
    """A method of tensors that notes that the numbers of a tensor were asked for."""

    @functools.wraps(plain)
    def read(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        reads = _reads.get()
        if reads is not None:
            reads.tensors.setdefault(id(self), (self, self._value, self._version))
        return plain(self, *args, **kwargs)

    setattr(read, _PLAIN_METHOD, plain)
    return read


def _own(module: Module, name: str) -> Any:
    own = object.__getattribute__(module, "__dict__")
    if name in own:
        return own[name]
    for table in (own["_parameters"], own["_modules"], own["_buffers"]):
        if name in table:
            return table[name]
    return _MISSING


def _member(module: Module, name: str) -> Any:
    found = _own(module, name)
    return _attribute(type(module), name) if found is _MISSING else found


def _item(table: Mapping[str, Any], name: str) -> Any:
    return table.get(name, _MISSING)


def _attribute(owner: Any, name: str) -> Any:
    if not isinstance(owner, type):
        return getattr(owner, name, _MISSING)
    # As it stands there: a class method would be bound anew by each look at it.
    return next((vars(c)[name] for c in owner.__mro__ if name in vars(c)), _MISSING)


def _itself(value: Any, _: None) -> Any:
    return value


def _content(cell: Any, _: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it yet
        return _MISSING


class _Reach:
    """Goes through functions, and what their code refers to; `rows` are the places that were found."""

    def __init__(self) -> None:
        self.rows: dict[Any, _Row] = {}
        self._seen: dict[int, Any] = {}

    def follow(self, value: Any) -> None:
        """Note what a value reads when it is called, if it is something that can be called."""
        if id(value) in self._seen or isinstance(value, Tensor | ModuleType):
            return
        self._seen[id(value)] = value
        if isinstance(value, functools.partial):
            for name in ("func", "args", "keywords"):
                self.note(_attribute, value, name)
        elif isinstance(value, MethodType):
            self.note(_attribute, value, "__self__")
            self.follow(value.__func__)
        elif isinstance(value, FunctionType):
            self._follow_function(value)
        elif isinstance(value, staticmethod | classmethod | property):
            self.follow(value.fget if isinstance(value, property) else value.__func__)
        elif isinstance(value, list | tuple | dict):
            self._follow_items(value)
        elif not isinstance(value, type | Module):
            self._follow_object(value)

    def _follow_items(self, value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> None:
        if len(value) <= ITEMS:
            for part in value.values() if isinstance(value, dict) else value:
                self.follow(part)

    def _follow_object(self, value: Any) -> None:
        wrapped = getattr(value, "__wrapped__", None)
        if wrapped is not None:
            self.follow(wrapped)
        elif not is_foreign(type(value).__module__):
            for cls in type(value).__mro__:
                if not is_foreign(cls.__module__):
                    for part in vars(cls).values():
                        if isinstance(part, FunctionType | staticmethod | classmethod | property):
                            self.follow(part)

    def _follow_function(self, function: FunctionType) -> None:
        wrapped = getattr(function, "__wrapped__", None)
        if wrapped is not None:
            self.follow(wrapped)
        if is_foreign(function.__module__):
            return
        for name in ("__code__", "__defaults__", "__kwdefaults__"):
            self.note(_attribute, function, name)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            self.note(_content, cell, name)
        variables, names = _names(function.__code__)
        for name in sorted(variables & function.__globals__.keys()):
            found = function.__globals__[name]
            if isinstance(found, ModuleType):
                self._note_members(found, vars(found), names)
            else:
                self.note(_item, function.__globals__, name)
            if isinstance(found, type):
                self._note_members(found, vars(found), names)

    def _note_members(self, owner: Any, members: Mapping[str, Any], names: frozenset[str]) -> None:
        """Attributes of a module or class of the user's of which the code speaks, such as config.SCALE."""
        if not is_foreign(owner.__name__ if isinstance(owner, ModuleType) else owner.__module__):
            for name in sorted(names & members.keys()):
                if not isinstance(members[name], ModuleType):
                    self.note(_attribute, owner, name)

    def note(self, read: Callable[[Any, Any], Any], where: Any, which: Any) -> None:
        """Note a place, and what is read by calling what is there."""
        self.rows.setdefault((read, id(where), which), (read, where, which))
        found = read(where, which)
        if found is not _MISSING:
            self.follow(found)


@functools.lru_cache(maxsize=1024)
def _names(code: CodeType) -> tuple[frozenset[str], frozenset[str]]:
    """(global variables, attributes) that code reads, that of functions inside it included."""
    variables, attributes = set[str](), set[str]()
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            variables.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inside = _names(constant)
            variables |= inside[0]
            attributes |= inside[1]
    return frozenset(variables), frozenset(attributes)


class Watch:
    """Notes what a function reads while it is captured, within `with`.

    Args:
        function: The function, or a Module.
    """

    def __init__(self, function: Any) -> None:
        self._reach = _Reach()
        self._reach.note(_itself, function, None)
        self._before = {key: frozen(read(where, which)) for key, (read, where, which) in self._reach.rows.items()}

    def __enter__(self) -> Watch:
        self._reading = _noted()
        self._reads = self._reading.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._reading.__exit__(*error)

    def guards(self) -> Guards:
        """The guards of what was read.

        What the function itself changed, such as a list of what it saw, is left out: in a program it changes no more.

        Raises:
            PreconditionNotMetError: It goes on from a result of its own that the call before kept in a Module.
        """
        members: list[_Row] = []
        classes: dict[Any, _Row] = {}  # once for all Modules of a class
        for module, name, before in self._reads.members.values():
            found = _member(module, name)
            if frozen(found) != before:
                _require_no_state(module, name, found)
                continue
            members.append((_own, module, name))
            if _own(module, name) is _MISSING:
                classes[type(module), name] = (_attribute, type(module), name)
            if name == "forward":  # a call looks for hooks as well
                members += [(_own, module, "_pre_hooks"), (_own, module, "_hooks")]
            if isinstance(found, FunctionType | property | staticmethod | classmethod):
                self._reach.follow(found)
        places = [
            (read, where, which)
            for key, (read, where, which) in self._reach.rows.items()
            if key not in self._before or frozen(read(where, which)) == self._before[key]
        ]
        return Guards([*members, *classes.values()], places, list(self._reads.tensors.values()))


def _require_no_state(module: Module, name: str, found: Any) -> None:
    if isinstance(found, VariableHandle):
        raise PreconditionNotMetError(
            f"{module.full_name}.{name} is read and then set to a result of the call, for the next one to go on from; "
            "a program can't keep it. Pass it as an argument and return the new one, or update a buffer in place: "
            f"self.{name}.copy_(new)"
        )


class _Seen(NamedTuple):
    """What is compared by identity: the epoch, what was found, containers with their items, and members likewise."""

    epoch: object
    found: list[Any]
    inside: list[tuple[Any, Sequence[Any]]]
    members: list[Any]
    tables: list[tuple[Any, Sequence[Any]]]


def naming(names: dict[str, Any]) -> Callable[[Any], str]:
    """A function that gives an object a name in generated code, the same each time.

    Args:
        names: The globals of the code, to which it adds.
    """
    known: dict[int, str] = {}

    def named(value: Any) -> str:
        found = known.setdefault(id(value), f"g{len(known)}")
        names[found] = value
        return found

    return named


class Guards:
    """The places that a captured function read, and what it found there.

    Args:
        members: Those in Modules, whose changes change the epoch.
        places: All others.
        tensors: Tensors whose numbers it asked for, with values and versions.

    Attributes:
        seen: What `conditions` compares with; one object, since threads replace it.
    """

    def __init__(
        self, members: Sequence[_Row], places: Sequence[_Row], tensors: Sequence[tuple[Tensor, Any, int]]
    ) -> None:
        self._members, self._places, self._tensors = list(members), list(places), list(tensors)
        self._frozen, self.seen = self._look()

    def _look(self) -> tuple[list[Any], _Seen]:
        # First the epoch, then the values: what changes meanwhile is looked at again.
        epoch = CHANGES.epoch
        members = [read(where, which) for read, where, which in self._members]
        found = [read(where, which) for read, where, which in self._places]
        values = [*members, *found]
        # A change of these is a change of the epoch.
        tables = {
            id(t): t
            for _, m, _ in self._members
            if isinstance(m, Module)
            for t in (m._parameters, m._modules, m._buffers)
        }
        inside = [(c, items_of(c)) for v in values for c in containers(v) if id(c) not in tables]
        seen = _Seen(epoch, found, inside, members, [(t, items_of(t)) for t in tables.values()])
        return [frozen(v) for v in values], seen

    def lines(self, conditions: Sequence[str], named: Callable[[Any], str]) -> Iterator[str]:
        """Lines of a generated call that has an argument `guarded`: it returns MISSED where something has changed.

        Args:
            conditions: Code of what has to be true besides, and is looked at first.
            named: Gives an object a name in the code.

        Yields:
            The lines.
        """
        guards = named(self)
        yield "    if guarded:"
        yield f"        if not ({' and '.join(conditions)}): return MISSED"
        yield f"        epoch, found, inside, _, _ = {guards}.seen"
        yield "        try:"
        yield f"            holds = {' and '.join(self._conditions(named))}"
        yield "        except (AttributeError, KeyError, ValueError):"
        yield "            holds = False"
        yield f"        if not holds and not {guards}.hold(): return MISSED"

    def _conditions(self, named: Callable[[Any], str]) -> list[str]:
        """Code: what is true while reading gives the same objects as before; else `hold` knows whether they are equal.

        It may raise AttributeError, KeyError and ValueError where something is gone.
        """
        lines = [f"epoch is {named(CHANGES)}.epoch"] if self._members else []
        for i, (read, where, which) in enumerate(self._places):
            text = _text(read, where, which, self.seen.found[i], named)
            lines += [f"{text} is found[{i}]"] if text else []
        for tensor, value, version in self._tensors:
            name = named(tensor)
            lines.append(f"{name}._value is {named(value)} and {name}._version == {version}")
        return [*lines, f"(not inside or {named(_all_unchanged)}(inside))"]

    def hold(self) -> bool:
        """Whether reading would give what the captured function found."""
        if not all([t._value is value and t._version == version for t, value, version in self._tensors]):
            return False
        _, found, inside, members, tables = self.seen
        now = CHANGES.epoch
        if (
            _reads_the_same(self._places, found)
            and _all_unchanged(inside)
            and _reads_the_same(self._members, members)
            and _all_unchanged(tables)
        ):
            # Something else has changed, if anything has.
            self.seen = _Seen(now, found, inside, members, tables)
            return True
        if self.changed():
            return False
        frozen_now, seen = self._look()
        if frozen_now == self._frozen:
            self.seen = seen
        return frozen_now == self._frozen

    def changed(self) -> str:
        """The first place that is not as it was, for messages; "" when all are."""
        for (read, where, which), value in zip([*self._members, *self._places], self._frozen, strict=True):
            if frozen(read(where, which)) != value:
                return f"{where.full_name}.{which}" if isinstance(where, Module) else which or "an object of a closure"
        for tensor, value, version in self._tensors:
            if tensor._value is not value or tensor._version != version:
                return f"{tensor.describe()}, whose numbers it asks for,"
        return ""


def _text(read: Any, where: Any, which: Any, found: Any, named: Callable[[Any], str]) -> str:
    """Code that reads a place; "" where that gives the same object each time."""
    if read is _itself:
        return ""
    if found is not _MISSING:
        if read is _content:
            return f"{named(where)}.cell_contents"
        if read is _item:
            return f"{named(where)}[{which!r}]"
        if read is _attribute and not isinstance(where, type):
            return f"{named(where)}.{which}"
    return f"{named(read)}({named(where)}, {which!r})"


def _reads_the_same(places: Sequence[_Row], found: Sequence[Any]) -> bool:
    return all([read(where, which) is v for (read, where, which), v in zip(places, found, strict=True)])


def _all_unchanged(inside: Sequence[tuple[Any, Sequence[Any]]]) -> bool:
    return all([_unchanged(c, items) for c, items in inside])


def _unchanged(container: Any, items: Sequence[Any]) -> bool:
    if isinstance(container, dict):
        return 2 * len(container) == len(items) and all(map(is_, chain(container, container.values()), items))
    if isinstance(container, np.ndarray):
        return items_of(container) == items
    return len(container) == len(items) and all(map(is_, container, items))
