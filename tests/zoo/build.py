"""Makes a layer of a net's table; imports Paddle."""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from typing import Any

import absent
import paddle
from paddle.static import InputSpec
from registry import Net

absent.install()
# The package paddleclas has its definitions in another one, ppcls, within
sys.path += [path for spec in [find_spec("paddleclas")] if spec for path in spec.submodule_search_locations or []]


def made(value: Any) -> Any:
    """A value of a table; tables with `call` are called."""
    if isinstance(value, list):
        return [made(v) for v in value]
    if not isinstance(value, dict):
        return value
    values = {k: made(v) for k, v in value.items() if k != "call"}
    return named(value["call"])(**values) if "call" in value else values


def named(path: str) -> Any:
    """What "module:name" names."""
    module, _, names = path.partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


@paddle.jit.not_to_static
def _tensors(value: Any, kept: tuple[int, ...]) -> list[Any]:
    """All tensors in nested outputs, in their order, or those at the positions `kept`."""

    def flat(value: Any) -> list[Any]:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, (list, tuple)):
            return [t for v in value for t in flat(v)]
        return [value] if hasattr(value, "dtype") else []

    found = flat(value)
    return [found[i] for i in kept] if kept else found


@paddle.jit.not_to_static
def _arguments(names: list[str] | None, values: list[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and named arguments of those values that are there."""
    values = [v for v in values if v is not None]
    return (values, {}) if names is None else ([], dict(zip(names, values, strict=True)))


class Saved(paddle.nn.Layer):
    """What is saved: a net that takes its inputs by name and returns a list of tensors."""

    def __init__(self, net: Net) -> None:
        super().__init__()
        self.inner = made({"call": net.layer, **net.args})
        self.names = list(net.inputs) if net.by_name else None
        self.method, self.kept = net.calls, net.keep

    def forward(self, a: Any, b: Any = None, c: Any = None, d: Any = None, e: Any = None, f: Any = None) -> list[Any]:
        positional, named = _arguments(self.names, [a, b, c, d, e, f])
        return _tensors(getattr(self.inner, self.method)(*positional, **named), self.kept)


def build(net: Net) -> tuple[Saved, list[InputSpec]]:
    """The layer, for inference, and what it takes."""
    paddle.seed(0)
    layer = Saved(net)
    layer.eval()
    return layer, [InputSpec(net.spec(name), net.dtype(name), name) for name in net.inputs]
