"""Cases of ops made wrong on purpose, in a slot, an attribute, a shape or a value; and what comes of it.

`python tests/raw_outcomes.py [count]` counts the outcomes by kind and prints the most frequent raw errors: those that
are an OpError around something that NumPy or Python raised, and no error of oprack's own.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from oprack.desc import OpDesc
from oprack.errors import OprackError
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope
from oprack.testing.cases import FileCase, load_cases
from oprack.types import EMPTY_VAR, AttrType

CASES = Path(__file__).parent / "data" / "cases"
INTS = (-1000, -9, -5, -2, -1, 0, 1, 2, 5, 9, 1000, 2**31 - 1)
_INT = (AttrType.INT, AttrType.LONG)
_INT_LIST = (AttrType.INTS, AttrType.LONGS)


def sources() -> Iterator[tuple[FileCase, Any]]:
    """A case of each file and each stage."""
    for path in sorted(CASES.glob("*.npz")):
        seen = set()
        for case in load_cases(path):
            for stage in ("forward", "gradient"):
                if stage not in seen and case.has(stage):  # type: ignore[arg-type]
                    seen.add(stage)
                    yield case, stage


def mutate(program: Program, feeds: dict[str, Any], draw: random.Random) -> str:
    """Make one thing wrong; returns what, "" when there was nothing to change."""
    op = draw.choice([op for op in program.desc.blocks[0].ops if op.type not in ("feed", "fetch")])
    match draw.randrange(5):
        case 0 if op.inputs:
            slot = draw.choice(list(op.inputs))
            op.inputs[slot] = draw.choice(([], [EMPTY_VAR] * len(op.inputs[slot]), op.inputs[slot][:-1]))
            return f"input {slot}"
        case 1:
            return _mutate_attribute(op, draw)
        case 2 | 3 if feeds:
            return _mutate_shape(program, feeds, draw)
        case 4 if feeds:
            return _mutate_values(feeds, draw)
    return ""


def _mutate_attribute(op: OpDesc, draw: random.Random) -> str:
    names = [n for n, t in op.attr_types.items() if t in (*_INT, *_INT_LIST) and n != "op_role"]
    if not names:
        return ""
    name = draw.choice(names)
    if op.attr_types[name] in _INT:
        op.attrs[name] = draw.choice(INTS)
    else:
        value = list(op.attrs[name]) or [0]
        value[draw.randrange(len(value))] = draw.choice(INTS)
        op.attrs[name] = draw.choice((value, value[:-1], [*value, draw.choice(INTS)]))
    return f"attribute {name}"


def _mutate_shape(program: Program, feeds: dict[str, Any], draw: random.Random) -> str:
    name, value = draw.choice(list(feeds.items()))
    if not isinstance(value, LoDTensor):
        return ""
    dims = list(value.shape)
    how = draw.randrange(4)
    if how == 0 or not dims:
        dims = [1, *dims]
    elif how == 1:
        dims = dims[1:]
    else:
        dims[draw.randrange(len(dims))] = draw.choice((0, 1, 3, 7))
    array = np.resize(value.array, int(np.prod(dims))).reshape(dims)
    lod = value.lod if how > 1 and value.shape else []
    feeds[name] = LoDTensor(array.astype(value.array.dtype), lod, check=False)
    var = program.desc.blocks[0].find_var_recursive(name)
    if var is not None:
        var.shape = dims
    return f"shape of {name}"


def _mutate_values(feeds: dict[str, Any], draw: random.Random) -> str:
    name, value = draw.choice(list(feeds.items()))
    if not isinstance(value, LoDTensor) or not value.array.size or value.array.dtype.kind not in "fiu":
        return ""
    array = value.array.copy()
    integers = (-1, 10**6, 2**31 - 1) if array.itemsize > 2 else (1, 100)
    wild = (np.nan, np.inf, -1e30) if array.dtype.kind == "f" else integers
    array.reshape(-1)[draw.randrange(array.size)] = draw.choice(wild)
    feeds[name] = LoDTensor(array, value.lod, check=False)
    return f"values of {name}"


def outcome(case: FileCase, stage: Any, draw: random.Random) -> tuple[str, str]:
    """("ok", ""), (class of oprack's own error, text), or ("raw", op: class: text) of one altered case."""
    program, feeds = case.program(stage), dict(case.inputs(stage))
    if not all(map(default_manager().has_op, program.op_types())):
        return "nothing", ""
    what = mutate(program, feeds, draw)
    if not what:
        return "nothing", ""
    scope = Scope()
    for name in list(feeds):
        if name in case.persistable or not isinstance(feeds[name], LoDTensor):
            scope.var(name).value = feeds.pop(name)
    fetch = [e.name for e in case.expected(stage)]
    try:
        Executor(prepared=False).run(program, feeds, fetch, scope, return_numpy=False)
    except OprackError as error:
        cause = error.__cause__
        if cause is None or isinstance(cause, OprackError):
            return type(error).__name__, str(error)
        op = str(error).split(" ", 2)[1]
        return "raw", f"{op}: {type(cause).__name__}: {str(cause).splitlines()[0][:90] if str(cause) else ''} <- {what}"
    except Exception as error:
        return "bare", f"{case.id} {type(error).__name__}: {error} <- {what}"
    return "ok", ""


def count(rounds: int, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Outcomes by kind over all cases, `rounds` alterations of each; and the texts of the raw ones."""
    kinds: Counter[str] = Counter()
    raw: list[str] = []
    draw = random.Random(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for case, stage in sources():
            for _ in range(rounds):
                kind, text = outcome(case, stage, draw)
                kinds[kind] += 1
                if kind in ("raw", "bare"):
                    raw.append(text)
    return kinds, raw


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    kinds, raw = count(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    failed = sum(n for kind, n in kinds.items() if kind not in ("ok", "nothing"))
    print(dict(kinds), f"raw of those that failed: {len(raw) / failed:.2%}")
    by_class = Counter(text.split(": ")[1] if ": " in text else text for text in raw)
    print(dict(by_class))
    for text, n in Counter(t.partition(" <- ")[0] for t in raw).most_common(400):
        print(n, text)
