"""Manifests of checkpoints: JSON behind its own checksum, and how it is compared with a program."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from oprack.desc import VarDesc
from oprack.errors import (
    CheckpointError,
    CheckpointMismatchError,
    CorruptCheckpointError,
    InvalidArgumentError,
    ModelError,
)
from oprack.io.parameters import open_view
from oprack.types import DTYPE_NAMES, VarType

if TYPE_CHECKING:
    from oprack.program import Program

FORMAT = 1
_MAX_COUNT = 2**63 - 1
_DIGEST = re.compile("[0-9a-f]{64}")
_HEAD = re.compile(r'\{"oprack_checkpoint": (\d{1,9}), "sha256": "([0-9a-f]{64})", "body":')


def check_plain(value: Any, where: str) -> None:
    """Raise InvalidArgumentError that names the place of anything that JSON would not give back as it was."""
    if value is None or isinstance(value, bool | int | float | str):
        return
    if isinstance(value, list):
        for i, item in enumerate(value):
            check_plain(item, f"{where}[{i}]")
    elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
        for key, item in value.items():
            check_plain(item, f"{where}[{key!r}]")
    else:
        raise InvalidArgumentError(
            f"save_checkpoint: {where} is {type(value).__name__} {str(value)[:80]!r}; expected None, bool, int, float, "
            "str, a list, or a dict with str keys, so convert an array with .tolist() and a tuple with list()"
        )


def seal(body: Mapping[str, Any]) -> bytes:
    """A manifest: the body as one line of JSON, behind its checksum."""
    text = json.dumps(body)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f'{{"oprack_checkpoint": {FORMAT}, "sha256": "{digest}", "body":\n{text}\n}}\n'.encode()


def unseal(
    path: Path, objection: Callable[[Any], str] | None = None, writer: str = "save_checkpoint"
) -> dict[str, Any]:
    """The body of a manifest. Raises CorruptCheckpointError, CheckpointError for a newer format.

    objection: says what is wrong with a body, "" if nothing is; default: for bodies of `save_checkpoint`. writer: who
    writes such bodies.
    """
    where = repr(os.fspath(path))
    try:
        head, _, rest = bytes(open_view(path)).decode().partition("\n")
    except (OSError, ModelError, UnicodeDecodeError) as error:
        raise CorruptCheckpointError(f"{where} can't be read: {error}; take another checkpoint beside it") from None
    match = _HEAD.fullmatch(head)
    if match is None:
        raise CorruptCheckpointError(f"{where} does not begin as a checkpoint's manifest; take another checkpoint")
    if int(match[1]) != FORMAT:
        raise CheckpointError(f"{where} has format {match[1]}; expected {FORMAT}, so use the oprack that wrote it")
    text = rest.removesuffix("\n}\n")
    if text == rest or hashlib.sha256(text.encode()).hexdigest() != match[2]:
        raise CorruptCheckpointError(
            f"{where} is truncated or altered: its checksum differs; take another checkpoint beside it"
        )
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptCheckpointError(f"{where} is no JSON: {error}; take another checkpoint") from None
    if why := (objection or _objection)(body):
        raise CorruptCheckpointError(f"{where} is not as {writer} writes it: {why}; take another checkpoint")
    return cast("dict[str, Any]", body)


def is_count(value: Any) -> bool:
    """Whether it is a number of bytes, or a dim."""
    return type(value) is int and 0 <= value <= _MAX_COUNT  # True is an int to isinstance


_BODY: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "step": ("an int", lambda v: type(v) is int),
    "extra": ("a dict", lambda v: isinstance(v, dict)),
    "random": ("a dict or null", lambda v: v is None or isinstance(v, dict)),
    "schedules": ("a dict", lambda v: isinstance(v, dict)),
    "variables": ("a list", lambda v: isinstance(v, list)),
}
_ENTRY: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "name": ("a str", lambda v: isinstance(v, str)),
    "kind": ("dense or rows", lambda v: v in ("dense", "rows")),
    "dtype": ("a dtype", lambda v: v in DTYPE_NAMES.values()),
    "shape": ("a list of dims", lambda v: isinstance(v, list) and all(map(is_count, v))),
    "offset": ("a number of bytes", is_count),
    "size": ("a number of bytes", is_count),
    "sha256": ("64 hexadecimal digits", lambda v: isinstance(v, str) and bool(_DIGEST.fullmatch(v))),
}
"""What save_checkpoint writes: key -> (what it holds, in words; the test)."""


def _objection(body: Any) -> str:
    """Why something is no body of a manifest; "" when it has all that is read of it, with the right types."""
    if isinstance(body, dict) and "tensors" in body:
        return "oprack.parallel.Checkpointer wrote it, and reads it"
    why = misfit(body, _BODY, "the body")
    if why:
        return why
    end, names = 0, set()
    for i, entry in enumerate(body["variables"]):
        if why := misfit(entry, _ENTRY, f"variables[{i}]"):
            return why
        # one behind the other, so that no size can lead out of the file
        if entry["offset"] != end:
            return f"variables[{i}].offset is {entry['offset']}; expected {end}, where the one before ends"
        end += entry["size"]
        if entry["name"] in names:
            return f"variable {entry['name']!r} is there twice"
        names.add(entry["name"])
    return ""


def misfit(value: Any, schema: Mapping[str, tuple[str, Callable[[Any], bool]]], where: str) -> str:
    """Why something is no dict with these keys and such values; "" if it is. schema: key -> (in words, the test)."""
    if not isinstance(value, dict):
        return f"{where} is {type(value).__name__}; expected a dict"
    for key, (words, test) in schema.items():
        if key not in value:
            return f"{where} lacks {key!r}"
        if not test(value[key]):
            return f"{where}.{key} is {str(value[key])[:80]!r}; expected {words}"
    return ""


def check_program(body: Mapping[str, Any], descs: Sequence[VarDesc], program: Program, directory: Path) -> None:
    """Raise CheckpointMismatchError that lists how the checkpoint's variables differ from the program's."""
    saved = {entry["name"]: entry for entry in body["variables"]}
    wanted = {var.name: var for var in descs}
    differing = [
        f"{name!r} is {_shown(saved[name])}, in the program {_declared(var)}"
        for name, var in wanted.items()
        if name in saved and not _agrees(saved[name], var)
    ]
    findings = [
        _listed("in the program alone", [repr(n) for n in wanted if n not in saved]),
        _listed("in the checkpoint alone", [repr(n) for n in saved if n not in wanted]),
        _listed("of another kind", differing),
        _listed("schedules without a state", [repr(n) for n in program.schedules if n not in body["schedules"]]),
    ]
    if any(findings):
        raise CheckpointMismatchError(
            f"{os.fspath(directory)!r} is a checkpoint of another program: {'; '.join(f for f in findings if f)}. "
            "Nothing was changed; build the program as it was when the checkpoint was saved (under "
            "unique_name.guard(), so that names repeat)"
        )


def _listed(what: str, items: list[str]) -> str:
    shown = ", ".join(items[:20]) + (f" and {len(items) - 20} more" if len(items) > 20 else "")
    return f"{len(items)} {what}: {shown}" if items else ""


def _agrees(entry: Mapping[str, Any], var: VarDesc) -> bool:
    if (entry["kind"] == "rows") != (var.type is VarType.SELECTED_ROWS):
        return False
    if var.dtype in DTYPE_NAMES and DTYPE_NAMES[var.dtype] != entry["dtype"]:
        return False
    dims = entry["shape"]
    return var.shape is None or (
        len(dims) == len(var.shape) and all(want in (-1, got) for got, want in zip(dims, var.shape, strict=True))
    )


def _shown(entry: Mapping[str, Any]) -> str:
    return f"{'SelectedRows ' if entry['kind'] == 'rows' else ''}{entry['dtype']}{entry['shape']}"


def _declared(var: VarDesc) -> str:
    kind = "SelectedRows " if var.type is VarType.SELECTED_ROWS else ""
    return f"{kind}{var.dtype_name()}{list(var.shape or ())}"
