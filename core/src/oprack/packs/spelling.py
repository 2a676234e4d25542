"""What to write instead of a name that oprack does not have: the spellings of PyTorch, NumPy and older Paddle.

`spellings.toml` beside this file is the table. Each entry of [write.<space>] is a line that runs, with the tensors and
modules of tests/data/names.toml; tests run every one of them. Those of [absent.<space>] are sentences about what there
is not, and [keywords] are arguments under another name.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

FILENAME = "spellings.toml"


@cache
def spellings() -> dict[str, Any]:
    """The table: "write" and "absent" by space and name, and "keywords" by name."""
    import tomllib

    return tomllib.loads(Path(__file__).with_name(FILENAME).read_text(encoding="utf-8"))


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
    return f"; {sentence}" if sentence else ""


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
    """Refuse keyword arguments that a class's `__init__` does not have, if the table knows them under another name.

    Args:
        owner: The class that is being created.
        given: The keyword arguments.

    Raises:
        TypeError: There is one.
    """
    if given.keys().isdisjoint(spellings()["keywords"]):
        return
    # `**options` passes what it holds on to the classes above.
    inits = [vars(cls)["__init__"] for cls in owner.__mro__[:-1] if "__init__" in vars(cls)]
    parameters = [name for init in inits for name in inspect.signature(init).parameters]
    other = {n: v for n, v in given.items() if n not in parameters}
    if advice := keywords_instead(parameters, other):
        raise TypeError(f"{owner.__name__}: {_unknown(other)}{advice}")


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
    text = "..." if value is ... else repr(value)
    return text if len(text) <= 60 and "\n" not in text else "..."
