"""The text of a PIR program as objects: blocks, operations and values, checked as they are read.

Nothing here knows an op. A file is untrusted: its size and its depth are bounded before and while it is read, and
what is not as it should be raises CorruptModelError.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from oprack.errors import BlockDepthError, CorruptModelError

from oprack_pir.encoding import Type, get, get_list, read_attribute, read_value

MAX_BYTES = 64 << 20
"""Of a program file. That of a net of 10,000 ops has some 10 MB; the objects of a file take 30 times its size."""
MAX_DEPTH = 32
"""Of blocks within blocks."""
VERSIONS = range(1, 5)
"""Versions of the format that are read; Paddle 3.3 writes version 4."""


@dataclass(slots=True)
class Operation:
    """One operation.

    Attributes:
        name: Of the op, without dialect; `dialect` is "builtin", "pd_op" and so on.
        operands: Ids of values; 0 for none.
        results: (id, type) of each.
        attrs: Python values; a VarType for a dtype, None for one that is undefined.
        regions: The blocks of control flow.
    """

    dialect: str
    name: str
    operands: list[int] = field(default_factory=list)
    results: list[tuple[int, Type]] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    regions: list[Block] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.dialect}.{self.name}"


@dataclass(slots=True)
class Block:
    """Operations in order; `args` are the (id, type) of the values that enter."""

    args: list[tuple[int, Type]]
    ops: list[Operation]

    def walk(self) -> Iterator[Operation]:
        """All operations, those of blocks within included."""
        for op in self.ops:
            yield op
            for block in op.regions:
                yield from block.walk()


@dataclass(slots=True)
class Document:
    """A program, and the version of the format that it was written in."""

    version: int
    block: Block


_DIALECTS = {"0": "builtin", "1": "pd_op", "2": "cf", "3": "custom_op", "4": "dist"}


def parse(data: bytes | bytearray | memoryview) -> Document:
    """Read the text of a program.

    Raises:
        CorruptModelError: The bytes are no PIR program, or one of a version or size that is not read.
        BlockDepthError: Blocks lie deeper in each other than MAX_DEPTH.
    """
    if len(data) > MAX_BYTES:
        raise CorruptModelError(f"the program has {len(data)} bytes; expected at most {MAX_BYTES}")
    try:
        found = json.loads(bytes(data), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:  # UnicodeDecodeError and JSONDecodeError are ValueErrors
        raise CorruptModelError(
            f"{len(data)} bytes are no PIR program: {error}; expected the JSON of a Paddle 3 `inference.json`"
        ) from None
    head = get(found, "base_code", dict, "the file")
    if head.get("magic") != "pir":
        raise CorruptModelError(f"base_code.magic is {head.get('magic')!r}; expected 'pir', as Paddle 3 writes it")
    version = get(head, "version", int, "base_code")
    if version not in VERSIONS:
        raise CorruptModelError(
            f"the program is of version {version} of PIR's format; expected {VERSIONS[0]} to {VERSIONS[-1]}. A newer "
            "oprack-pir may read it (pip install -U oprack-pir)"
        )
    regions = get_list(get(found, "program", dict, "the file"), "regions", "program")
    if len(regions) != 1:
        raise CorruptModelError(f"the program has {len(regions)} regions; expected one")
    return Document(version, _region(regions[0], 0))


def _no_constant(text: str) -> float:
    raise ValueError(f"it has {text} as a number")


def _region(given: Any, depth: int) -> Block:
    if depth > MAX_DEPTH:
        raise BlockDepthError(f"blocks lie more than {MAX_DEPTH} deep in each other; expected a program of Paddle")
    blocks = get_list(given, "blocks", "a region")
    if not blocks:  # a branch without anything
        return Block([], [])
    if len(blocks) > 1:
        raise CorruptModelError(f"a region has {len(blocks)} blocks; expected at most one")
    args = [read_value(arg, "#", "an argument of a block") for arg in get_list(blocks[0], "args", "a block")]
    return Block(args, [_operation(op, depth) for op in get_list(blocks[0], "ops", "a block")])


def _operation(given: Any, depth: int) -> Operation:
    name = get(given, "#", str, "an op")
    if name == "p":
        return _parameter(given)
    code, dot, short = name.partition(".")
    if not dot or code not in _DIALECTS or not short:
        raise CorruptModelError(f"op {name!r} is of no dialect; expected names such as '1.conv2d'")
    where = f"op {_DIALECTS[code]}.{short}"
    return Operation(
        _DIALECTS[code],
        short,
        [get(operand, "%", int, f"an operand of {where}") for operand in get_list(given, "I", where)],
        [read_value(result, "%", f"a result of {where}") for result in get_list(given, "O", where)],
        {
            get(attr, "N", str, where): read_attribute(get(attr, "AT", dict, where), where)
            for attr in get_list(given, "A", where)
        },
        [_region(region, depth + 1) for region in (get_list(given, "regions", where) if "regions" in given else ())],
    )


def _parameter(given: Any) -> Operation:
    """`{"#": "p", "A": [is_distributed, is_parameter, need_clip, name], "OA": [persistable, ...]}`"""
    attrs = get_list(given, "A", "a parameter")
    # a program that was saved as not trainable has no flags, and parameters alone
    flags = get_list(given, "OA", "a parameter") if "OA" in given else [1]
    if len(attrs) < 4 or not isinstance(attrs[3], str) or not attrs[3] or not flags:
        raise CorruptModelError(f"a parameter has A {attrs!r:.200} and OA {flags!r:.200}; expected its name in A[3]")
    result = read_value(get(given, "O", dict, f"parameter {attrs[3]!r}"), "%", f"parameter {attrs[3]!r}")
    return Operation("builtin", "parameter", [], [result], {"name": attrs[3], "persistable": bool(flags[0])})
