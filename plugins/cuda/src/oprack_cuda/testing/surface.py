"""What CuPy offers, as data: names, parameters and loops of ufuncs, taken from an installed CuPy (no GPU is needed).

`python -m oprack_cuda.testing.surface` writes cupy.json beside this file again, from the CuPy of that environment.
A signature is kept as text: "a axis= * dtype=" is (a, axis=..., *, dtype=...).
"""

from __future__ import annotations

import functools
import inspect
import json
import re
import sys
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("cupy.json")
_NAMESPACES = ("", "linalg", "fft", "lib.stride_tricks")
_GRIDS = ("mgrid", "ogrid")
_PLAIN = ("numpy", "builtins", "", None)
_P = inspect.Parameter
_STARS: dict[object, str] = {_P.VAR_POSITIONAL: "*", _P.VAR_KEYWORD: "**"}


def signature_text(signature: inspect.Signature) -> str:
    """The names of a signature, and which of them have defaults."""
    words, starred = [], False
    for p in signature.parameters.values():
        if p.kind is _P.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        prefix = _STARS.get(p.kind, "")
        starred = starred or p.kind is _P.VAR_POSITIONAL
        words.append(f"{prefix}{p.name}" + ("" if p.default is p.empty else "="))
    return " ".join(words)


@functools.cache
def parse_signature(text: str) -> inspect.Signature:
    """The signature that signature_text wrote."""
    kind: inspect._ParameterKind = _P.POSITIONAL_OR_KEYWORD
    parameters = []
    for word in text.split():
        if word == "*":
            kind = _P.KEYWORD_ONLY
        elif word.startswith("**"):
            parameters.append(_P(word[2:], _P.VAR_KEYWORD))
        elif word.startswith("*"):
            parameters.append(_P(word[1:], _P.VAR_POSITIONAL))
            kind = _P.KEYWORD_ONLY
        else:
            default = None if word.endswith("=") else _P.empty
            parameters.append(_P(word.rstrip("="), kind, default=default))
    return inspect.Signature(parameters)


@functools.cache
def load() -> dict[str, Any]:
    """The surface: cupy (its version), functions, ufuncs, values, methods and properties."""
    surface: dict[str, Any] = json.loads(FILE.read_text())
    return surface


def _note(found: dict[str, Any], key: str, value: Any, *, fixed: bool) -> None:
    """Add a name of a module under what it is. fixed: it counts as a value, whatever class it is of."""
    kind = type(value).__name__
    if kind == "ufunc":
        found["ufuncs"][key] = {"types": " ".join(value.types), "at": value._scatter_op is not None}
    elif kind == "_GUFunc":
        found["functions"][key] = signature_text(inspect.signature(type(value).__call__)).replace("self ", "")
    elif inspect.isroutine(value):
        found["functions"][key] = _signature(value)
    elif fixed or (not inspect.ismodule(value) and getattr(value, "__module__", "") in _PLAIN):
        found["values"].append(key)


def collect() -> dict[str, Any]:
    """The surface of the installed CuPy."""
    import cupy

    found: dict[str, Any] = {"cupy": cupy.__version__, "functions": {}, "ufuncs": {}, "values": []}
    for namespace in _NAMESPACES:
        module = functools.reduce(getattr, namespace.split("."), cupy) if namespace else cupy
        for name in sorted(n for n in dir(module) if not n.startswith("_")):
            value, key = getattr(module, name), f"{namespace}.{name}".lstrip(".")
            _note(found, key, value, fixed=name in _GRIDS)
    methods, properties = {}, []
    for name in sorted(n for n in dir(cupy.ndarray) if not n.startswith("_")):
        value = getattr(cupy.ndarray, name)
        if callable(value):
            methods[name] = _signature(value)
        else:
            properties.append(name)
    return found | {"methods": methods, "properties": properties}


def _signature(function: Any) -> str:
    """From inspect, or from the first line of a docstring by Cython; "*args **kwargs" when neither says."""
    try:
        return re.sub(r"^self ?", "", signature_text(inspect.signature(function)))
    except (TypeError, ValueError):
        pass
    match = re.match(r"[\w.]+\((.*)\)", (function.__doc__ or "").split("\n")[0])
    if match is None:
        return "*args **kwargs"
    words: list[str] = []
    for part in match[1].split(","):
        name, equals, _ = part.strip().partition("=")
        name = name.split(" ")[-1]
        if name != "self":
            words.append(name + equals)
    return " ".join(words)


if __name__ == "__main__":
    FILE.write_text(json.dumps(collect(), indent=0, sort_keys=True) + "\n")
    print(f"{FILE}: {len(load()['functions'])} functions, {len(load()['ufuncs'])} ufuncs", file=sys.stderr)
