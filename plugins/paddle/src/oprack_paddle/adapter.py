"""Functions and classes with Paddle's parameters that call those of oprack, written from both signatures.

A parameter of Paddle that the callee has is passed on; leading ones that it calls otherwise are passed by position;
`name` is dropped. What is left over has to be Paddle's default, or the call is refused.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from oprack.errors import UnimplementedError
from oprack.names.paddle import signatures

_IGNORED = frozenset(
    ["name", "use_cudnn", "multi_precision", "use_multi_tensor", "verbose", "do_model_average", "group_name"]
)
"""Parameters that change no result: names of outputs in programs, how a GPU computes, and what is printed."""

_SYNONYMS = frozenset(
    [("mean", "loc"), ("std", "scale"), ("x", "x1"), ("y", "x2"), ("sublayers", "modules"), ("input", "predict")]
)
"""Parameters that mean the same under two names. The first one of a function may have any."""


def is_value(name: str) -> bool:
    """Whether a name of Paddle is no function and no class."""
    return signatures().get(name, "()") == ""


def parameters(text: str) -> list[tuple[str, str | None]]:
    """The parameters in a text such as "x, axis=-1, name=None", with the text of their defaults.

    Args:
        text: Parameters as in a definition.

    Returns:
        Names, `*args` and `**kwargs` among them, each with its default or None.
    """
    args = ast.parse(f"def f({text}): pass").body[0].args  # type: ignore[attr-defined]
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    found = [(a.arg, d) for a, d in zip(plain, defaults, strict=True)]
    if args.vararg:
        found.append((f"*{args.vararg.arg}", None))
    elif args.kwonlyargs:
        found.append(("*", None))
    found += [(a.arg, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    if args.kwarg:
        found.append((f"**{args.kwarg.arg}", None))
    return [(n, None if d is None else ast.unparse(d)) for n, d in found]


def adapted(name: str, callee: Any) -> Any:
    """A callee with Paddle's parameters.

    Args:
        name: Paddle's name, such as "nn.functional.relu".
        callee: The function or class of oprack.

    Returns:
        A function; for a class, a class derived from it. The callee itself, where its parameters are Paddle's, or where
        nothing is known of them.
    """
    text = signatures().get(name)
    if not text or "**" in text or "*" in text:
        return callee
    wanted = parameters(text)
    of_class = isinstance(callee, type)
    try:
        taken = list(inspect.signature(callee).parameters.values())
    except (TypeError, ValueError):
        return callee
    if agrees(wanted, taken):
        return callee
    passed, refused = _split(wanted, taken)
    short = name.rpartition(".")[2]
    head = ", ".join(n if d is None else f"{n}={d}" for n, d in wanted)
    checks = "".join(f"    if {p} != {d}: _refuse({name!r}, {p!r}, {p})\n" for p, d in refused)
    call = f"_callee({', '.join(passed)})"
    if of_class:
        source = f"def __init__(self, {head}):\n{checks}    _callee.__init__(self, {', '.join(passed)})\n"
        made = _compiled(source, "__init__", name, callee)
        members = {"__init__": made, "__doc__": callee.__doc__, "__module__": callee.__module__, "_adapts": callee}
        kind = Adapted if type(callee) is type else type(callee)
        return kind(short, (callee,), members)
    made = _compiled(f"def {short}({head}):\n{checks}    return {call}\n", short, name, callee)
    made.__doc__ = callee.__doc__
    return made


class Adapted(type):
    """The class of adapted classes: what the callee, which is `_adapts`, makes is an instance of them, too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, vars(cls).get("_adapts", ())) or type.__instancecheck__(cls, instance)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, vars(cls).get("_adapts", ())) or type.__subclasscheck__(cls, other)


def _compiled(source: str, function: str, name: str, callee: Any) -> Callable[..., Any]:
    known = {"_callee": callee, "_refuse": refuse, "nan": float("nan"), "inf": float("inf"), "__name__": __package__}
    exec(compile(source, f"<oprack_paddle: {name}>", "exec"), known)  # texts of this package's own tables
    found: Callable[..., Any] = known[function]
    return found


def agrees(wanted: Sequence[tuple[str, str | None]], taken: Sequence[inspect.Parameter]) -> bool:
    """Whether a callee takes what Paddle takes, in the same order, with the same defaults.

    Args:
        wanted: Paddle's parameters, as `parameters` gives them.
        taken: The callee's.

    Returns:
        Whether each parameter of Paddle is one of the callee's, at the same place.
    """
    head = taken[: len(wanted)]
    return len(head) == len(wanted) and all(
        p.kind is p.POSITIONAL_OR_KEYWORD
        and p.name == n
        and (d is None) == (p.default is p.empty)
        and (d is None or repr(p.default) == d)
        for (n, d), p in zip(wanted, head, strict=True)
    )


def _split(
    wanted: Sequence[tuple[str, str | None]], taken: Sequence[inspect.Parameter]
) -> tuple[list[str], list[tuple[str, str]]]:
    """What the call passes on, and which parameters the callee lacks."""
    names = {p.name for p in taken if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}
    own = {p.name: p.default for p in taken if p.default not in (p.empty, None)}
    positional = [p.name for p in taken if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    passed, refused, in_order = [], list[tuple[str, str]](), True
    wanted_names = {n for n, _ in wanted}
    for i, (name, default) in enumerate(wanted):
        here = positional[i] if i < len(positional) else None
        other = here not in wanted_names and name not in names and (i == 0 or (name, here) in _SYNONYMS)
        if in_order and here is not None and (here == name or other):
            if name in _IGNORED and here != name:
                in_order = False
                continue
            passed.append(_or_default(name, default, own.get(here)))
            continue
        in_order = False
        if name in names:
            passed.append(f"{name}={_or_default(name, default, own.get(name))}")
        elif name not in _IGNORED:
            refused.append((name, default if default is not None else "..."))
    return passed, refused


def _or_default(name: str, default: str | None, own: Any) -> str:
    """An argument for which None stands for a default that the callee has as a value."""
    if default == "None" and isinstance(own, int | float | str | list):
        return f"({own!r} if {name} is None else {name})"
    return name


def refuse(name: str, parameter: str, value: Any) -> NoReturn:
    """Refuse an argument that oprack has nothing for.

    Args:
        name: Paddle's name of the function.
        parameter: The argument.
        value: What was passed.

    Raises:
        UnimplementedError: Always.
    """
    raise UnimplementedError(f"paddle.{name}: {parameter}={value!r} is not served by oprack; leave {parameter} out")
