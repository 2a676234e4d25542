"""Every installed op as a function: `oprack.functional.relu(x)`.

Inputs go in slot order, attributes as keywords; see `help(oprack.functional.relu)`. With tensors a call runs now, with
Variables of a program it appends an op to that program. Python's keywords take an underscore: `assert_`.

A name that is no op is a function that a pack writes with the signature of Paddle 2, as those of oprack.nn.functional
are: `oprack.functional.mse_loss(x, y)`. Where both have a name, the op is here: `oprack.functional.cross_entropy` reads
probabilities, `oprack.nn.functional.cross_entropy` logits. Calls of a few names that can't be the op's, since a number
is where a tensor belongs, are those of Paddle 2: `oprack.functional.one_hot(labels, 10)`; [calls] in `spellings.toml`
lists them.
"""

from __future__ import annotations

from typing import Any

from oprack.packs.changes import FoundNames

_found = FoundNames(globals())


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'oprack.functional' has no attribute {name!r}")
    from keyword import iskeyword

    from oprack.functional.generated import UnknownFunctionError
    from oprack.functional.tensor import function
    from oprack.functional.written import written

    try:
        found: Any = function(name[:-1] if name.endswith("_") and iskeyword(name[:-1]) else name)
    except UnknownFunctionError as error:
        found = written(name)
        if found is None:
            from oprack.names.spellings import ABSENT, instead, same

            if (other := same("functional", name)) is not ABSENT:
                return other
            raise UnknownFunctionError(f"{error}{instead('functional', name)}") from error.__cause__
    return _found.keep(name, found)


def __dir__() -> list[str]:
    from oprack.functional.written import written_names
    from oprack.op import param_name
    from oprack.packs.manager import default_manager

    return sorted({*map(param_name, default_manager().op_types()), *written_names()})
