"""Which op of Fluid does what an op of ONNX does: table.toml, and the forms for what no table can say."""

from __future__ import annotations

import functools
import importlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oprack_onnx.values import Node, Value
    from oprack_onnx.writer import Writer

Form = Callable[["Node", "Writer"], "list[Value | None]"]
"""From a node to the values of its outputs; None for one that is not asked for."""


@dataclass(frozen=True)
class Row:
    """How one op of ONNX is written as one op of Fluid.

    Attributes:
        op: Of Fluid.
        inputs: Its slots, in the order of ONNX's inputs; of the op's OpProto where it is empty.
        outputs: As inputs.
        attrs: Attribute of ONNX -> that of Fluid, where it has another name.
        set: Attributes of Fluid that ONNX's op has not.
        only: Attributes with the one value for which the ops do the same.
        dtype: Of the outputs, where it is not that of the first input.
        listed: The first slot takes all inputs.
        floats: The row is for floating inputs; others go by what comes after: the function body, or no way at all.
    """

    op: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    attrs: Mapping[str, str] = field(default_factory=dict)
    set: Mapping[str, Any] = field(default_factory=dict)
    only: Mapping[str, Any] = field(default_factory=dict)
    dtype: str = ""
    listed: bool = False
    floats: bool = False


FORMS: dict[tuple[str, str], Form] = {}
"""(domain, op) -> the form."""

_MODULES = ("numbers", "shapes", "places", "images", "layers", "quantized", "sequences")


def form(*ops: str, domain: str = "") -> Callable[[Form], Form]:
    """Register a function as the form of some ops."""

    def register(function: Form) -> Form:
        for op in ops:
            FORMS[domain, op] = function
        return function

    return register


@functools.cache
def rows() -> dict[tuple[str, str], Row]:
    """(domain, op) -> its row."""
    table = tomllib.loads((files(__package__) / "table.toml").read_text(encoding="utf-8"))
    found = {}
    for domain, ops in table.items():
        for op, row in ops.items():
            facts = {"op": row} if isinstance(row, str) else dict(row)
            for name in ("inputs", "outputs"):
                facts[name] = tuple(facts.get(name, "").split())
            found["" if domain == "onnx" else domain, op] = Row(**facts)
    return found


@functools.cache
def forms() -> dict[tuple[str, str], Form]:
    """(domain, op) -> its form."""
    for module in _MODULES:
        importlib.import_module(f"{__package__}.forms.{module}")
    return FORMS
