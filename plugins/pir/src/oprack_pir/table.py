"""The table of PIR's ops, which is data (optable.json, rules.toml): the op of Fluid, its slots and attributes."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Row:
    """How one op of PIR is written in Fluid.

    Attributes:
        op: The op type.
        inputs, outputs: Slots in the order of operands and results; "" for one that Fluid's op lacks.
        mutable: (name in PIR, attribute, slot of a tensor, slot of a list) of what is an attribute when it is constant
            and else an input; these operands come last.
        attrs: Name in PIR -> attribute.
        ignored, only, set, dtype_of, cast, alias, result_dtype, flags_like,
            backward_end: See rules.toml.
    """

    op: str
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    mutable: tuple[tuple[str, str, str, str], ...] = ()
    attrs: dict[str, str] = field(default_factory=dict)
    ignored: frozenset[str] = frozenset()
    only: dict[str, Any] = field(default_factory=dict)
    set: dict[str, Any] = field(default_factory=dict)
    dtype_of: dict[str, str] = field(default_factory=dict)
    cast: dict[str, str] = field(default_factory=dict)
    alias: dict[str, int] = field(default_factory=dict)
    result_dtype: str = ""
    flags_like: dict[str, str] = field(default_factory=dict)
    backward_end: str = ""


@cache
def rules() -> dict[str, Any]:
    """The tables of rules.toml."""
    return tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


@cache
def _data() -> tuple[dict[str, Any], dict[str, Any], frozenset[str]]:
    facts = json.loads(Path(__file__).with_name("optable.json").read_text(encoding="utf-8"))
    return facts, rules()["op"], frozenset(rules()["ignored"])


@cache
def row(name: str) -> Row | None:
    """The row of an op by its name without dialect; None when there is none.

    An op in place ends in "_" and has the row of the op without it, unless it has one of its own.
    """
    facts, known_rules, ignored = _data()
    base = name.removesuffix("_")
    known = facts.get(name) or facts.get(base, {})
    rule = known_rules.get(name) or known_rules.get(base, {})
    found = known | rule
    if not found:
        return None
    return Row(
        found["op"],
        tuple(found.get("in", ())),
        tuple(found.get("out", ())),
        tuple((pir, attr, slot, slots) for pir, attr, slot, slots in found.get("mut", ())),
        {pir: pir for pir in found.get("attrs", ())} | known.get("renamed", {}) | rule.get("renamed", {}),
        ignored | frozenset(found.get("ignored", ())),
        found.get("only", {}),
        found.get("set", {}),
        found.get("dtype_of", {}),
        found.get("cast", {}),
        found.get("alias", {}),
        found.get("result_dtype", ""),
        found.get("flags_like", {}),
        found.get("backward_end", ""),
    )
