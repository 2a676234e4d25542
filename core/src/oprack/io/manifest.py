"""Manifests of checkpoints: JSON behind its own checksum, and how it is compared with a program."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
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
_STRINGS = ("name", "kind", "dtype", "sha256")
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


def unseal(path: Path) -> dict[str, Any]:
    """The body of a manifest. Raises CorruptCheckpointError, CheckpointError for a newer format."""
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
    if not _is_body(body):
        raise CorruptCheckpointError(f"{where} lacks what a checkpoint's manifest has; take another checkpoint")
    return cast("dict[str, Any]", body)


def _is_body(body: Any) -> bool:
    """Whether a manifest says all that is read of it, in the right kinds."""
    kinds = {"step": int, "extra": dict, "schedules": dict, "variables": list}
    if not isinstance(body, dict) or not all(isinstance(body.get(key), kind) for key, kind in kinds.items()):
        return False
    if not isinstance(body.get("random", 0), dict | None):
        return False
    end = 0
    for entry in body["variables"]:
        strings = isinstance(entry, dict) and all(isinstance(entry.get(k), str) for k in _STRINGS)
        if not strings or not isinstance(entry.get("shape"), list):
            return False
        # one behind the other, so that no size can lead out of the file
        if entry.get("offset") != end or not isinstance(entry.get("size"), int) or entry["size"] < 0:
            return False
        end += entry["size"]
    return len({entry["name"] for entry in body["variables"]}) == len(body["variables"])


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
