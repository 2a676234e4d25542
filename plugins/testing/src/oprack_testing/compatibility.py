"""The signatures of a pack's ops against those of the release before, which ops.lock.json has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oprack.errors import ManifestError
from oprack.packs.installed.resolve import import_object
from oprack.python.interruption import let_interruptions_pass
from oprack.testing.review.pack_source import PackSource, generate, importable, registered

FILENAME = "ops.lock.json"
_FORMAT = 2
_FLAGS = {"*": "duplicable", "?": "dispensable"}
Signatures = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Change:
    """A difference between the released and the current signature of an op."""

    op_type: str
    text: str
    breaking: bool


def signatures(source: PackSource) -> Signatures:
    """Signatures of the ops that a pack's source tree defines, by a manifest or by its hooks. Raises as `generate`."""
    from oprack.op import build_op_info

    ops: Signatures = {}
    with importable(source):
        asked_by = f"oprack check {source.root}"
        named = {t: import_object(entry.define, asked_by) for t, entry in generate(source).ops.items()}
        for op_type, definition in sorted((registered(source) | named).items()):
            info = build_op_info(definition, source.package)
            ops[op_type] = {"version": info.version}
            for side in ("inputs", "outputs"):
                ops[op_type][side] = {
                    s.name: [f for f in ("dispensable", "duplicable") if getattr(s, f)] + _least(s.minimum)
                    for s in getattr(info.proto, side).values()
                }
            ops[op_type]["attrs"] = {
                a.name: {"type": a.type.name} | ({} if a.required else {"default": a.default})
                for a in info.proto.attrs.values()
            }
    # Compared with snapshots read from JSON, in which a tuple is a list.
    plain: Signatures = json.loads(json.dumps(ops))
    return plain


def read(path: Path) -> Signatures:
    """Read a snapshot.

    Raises:
        ManifestError: When the file is missing or malformed.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] not in (1, _FORMAT):
            raise ValueError(f"format is {data['format']!r}, expected {_FORMAT}")
        ops = data["ops"].items()
        snapshot: Signatures = {t: op if data["format"] == 1 else _unpacked(op) for t, op in ops}
        # Whatever `compare` relies on; the except clause below turns a failure into a ManifestError.
        for op in snapshot.values():
            for side in ("inputs", "outputs", "attrs"):
                op[side].items()
            op["version"] + 0
        return snapshot
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        let_interruptions_pass()
        raise ManifestError(
            f"{path}: is no snapshot of ops ({type(e).__name__}: {e}); take it from the last release, or write it anew "
            "with `oprack check PATH --update`"
        ) from e


def write(path: Path, found: Signatures) -> None:
    """Write a snapshot: one line per op, so that diffs can be read."""
    lines = [f"\n    {json.dumps(t)}: {json.dumps(_packed(op))}" for t, op in sorted(found.items())]
    text = f'{{\n  "format": {_FORMAT},\n  "ops": {{' + ",".join(lines) + "\n  }\n}\n"
    temporary = path.with_suffix(".json.tmp")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _packed(op: dict[str, Any]) -> dict[str, Any]:
    """A signature in few characters.

    "X*+2 Bias?" are a list of two or more and a dispensable slot, ["INT", 1] a type and a default.
    """
    packed: dict[str, Any] = {"version": op["version"]} if op["version"] else {}
    for side in ("inputs", "outputs"):
        slots = op[side].items()
        texts = [name + _suffix(flags) for name, flags in slots]
        if texts:
            packed[side] = " ".join(texts)
    attrs = {n: [a["type"], *([a["default"]] if "default" in a else [])] for n, a in op["attrs"].items()}
    return packed | ({"attrs": attrs} if attrs else {})


def _unpacked(op: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"version": op.get("version", 0)}
    for side in ("inputs", "outputs"):
        found[side] = {}
        for text in op.get(side, "").split():
            flagged, _, least = text.partition("+")
            name = flagged.rstrip("".join(_FLAGS))
            flags = {_FLAGS[c] for c in flagged[len(name) :]}
            found[side][name] = [f for f in ("dispensable", "duplicable") if f in flags] + _least(int(least or 0))
    attrs = op.get("attrs", {}).items()
    found["attrs"] = {n: {"type": a[0]} | ({"default": a[1]} if len(a) > 1 else {}) for n, a in attrs}
    return found


def compare(then: Signatures, now: Signatures) -> list[Change]:
    """All differences between two snapshots, sorted by op; breaking changes come first within an op."""
    changes = []
    for op_type in sorted({*then, *now}):
        if op_type not in now:
            changes.append(Change(op_type, "the op is gone", True))
        elif op_type not in then:
            changes.append(Change(op_type, "new op", False))
        else:
            changes += sorted(_compare_op(op_type, then[op_type], now[op_type]), key=lambda c: not c.breaking)
    return changes


def _compare_op(op_type: str, then: dict[str, Any], now: dict[str, Any]) -> Iterator[Change]:
    changes = [*_slots("input", then["inputs"], now["inputs"]), *_slots("output", then["outputs"], now["outputs"])]
    changes += _attrs(then["attrs"], now["attrs"])
    for text, breaking in changes:
        yield Change(op_type, text, breaking)
    if now["version"] < then["version"]:
        yield Change(op_type, f"its version went from {then['version']} back to {now['version']}", True)
    elif changes and now["version"] == then["version"]:
        yield Change(
            op_type,
            f"the signature changed, but its version is still {now['version']}: add a checkpoint to its OpVersion",
            True,
        )


_LEAST = "at least "


def _suffix(flags: Sequence[str]) -> str:
    minimum = _minimum(flags)
    return "".join(c for c, flag in _FLAGS.items() if flag in flags) + (f"+{minimum}" if minimum else "")


def _least(minimum: int) -> list[str]:
    return [f"{_LEAST}{minimum}"] if minimum else []


def _minimum(flags: Iterable[str]) -> int:
    return next((int(f.removeprefix(_LEAST)) for f in flags if f.startswith(_LEAST)), 0)


def _slots(kind: str, then: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for name, flags in then.items():
        if name not in now:
            yield f"{kind} {name} is gone", True
            continue
        if ("duplicable" in flags) != ("duplicable" in now[name]):
            yield f"{kind} {name} was {'a list' if 'duplicable' in flags else 'one variable'} and is no longer", True
        if ("dispensable" in flags) != ("dispensable" in now[name]):
            lost = "dispensable" in flags
            yield f"{kind} {name} is {'no longer' if lost else 'now'} dispensable", lost
        old, new = _minimum(flags), _minimum(now[name])
        if old != new:
            yield f"{kind} {name} had at least {old} variables and has at least {new}", new > old
    for name in now.keys() - then.keys():
        yield (
            f"new {kind} {name}" + ("" if "dispensable" in now[name] else " is not dispensable"),
            ("dispensable" not in now[name]),
        )
    if [n for n in then if n in now] != [n for n in now if n in then]:
        yield f"the {kind}s changed their order", True


def _attrs(then: dict[str, Any], now: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    for name, old in then.items():
        new = now.get(name)
        if new is None:
            yield f"attribute {name} is gone", True
            continue
        if new["type"] != old["type"]:
            yield f"attribute {name} was {old['type']} and is {new['type']}", True
        if "default" in old and "default" not in new:
            yield f"attribute {name} lost its default", True
        elif old.get("default") != new.get("default") or ("default" in new) != ("default" in old):
            yield f"attribute {name}: default was {old.get('default', 'none')!r} and is {new['default']!r}", False
    for name in now.keys() - then.keys():
        missing = "default" not in now[name]
        yield f"new attribute {name}" + (" has no default" if missing else ""), missing
