"""Altered manifests of checkpoints: an error of the kind that is promised, or the values."""

from __future__ import annotations

import fcntl
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.checkpoint.manifest import seal, unseal
from oprack.errors import (
    CheckpointBusyError,
    CheckpointError,
    CorruptCheckpointError,
    UnsafeNameError,
)
from oprack.io import load_checkpoint, save_checkpoint, save_vars

# More in a nightly run: OPRACK_FUZZ=20000.
COUNT = int(os.environ.get("OPRACK_FUZZ", "1500"))


@pytest.fixture
def checkpoint(tmp_path: Path) -> tuple[Path, oprack.Program, oprack.Scope]:
    program, scope = oprack.Program(), oprack.Scope()
    for name in ("v", "w"):
        program.desc.blocks[0].create_var(name, dtype="float32", shape=[3], persistable=True)
        scope.var(name).set(oprack.LoDTensor(np.full(3, ord(name), "float32")))
    save_checkpoint(tmp_path / "c", program, scope, step=3, extra={"note": "n"})
    return tmp_path / "c", program, scope


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of every value inside of a value of JSON's kinds."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inside:
        yield (*path, key)
        yield from places(item, (*path, key))


VALUES: tuple[Any, ...] = (
    0.0, -1, True, 2**63, 10**30, 1e308, None, "", "w", "x", [], {}, [1], [-1], [3, 2**70], [True], {"a": 1}, "f" * 64,
)  # fmt: skip


def test_altered_manifests(checkpoint: tuple[Path, oprack.Program, oprack.Scope]) -> None:
    """Bodies with a right checksum, in which one value is another or gone."""
    root, program, _ = checkpoint
    manifest, draw = root / "ckpt-1" / "manifest.json", random.Random(0)
    body = json.dumps(unseal(manifest))
    paths = list(places(json.loads(body)))
    kinds: dict[str, int] = {}
    for _ in range(max(COUNT // 3, 500)):
        changed = json.loads(body)
        *way, last = draw.choice(paths)
        inner = changed
        for key in way:
            inner = inner[key]
        if draw.random() < 0.1:
            del inner[last]
        else:
            inner[last] = draw.choice(VALUES)
        manifest.write_bytes(seal(changed))
        scope = oprack.Scope()
        try:
            found = load_checkpoint(root, program, scope)
        except CheckpointError as error:
            kinds[type(error).__name__] = kinds.get(type(error).__name__, 0) + 1
            assert scope.local_var_names() == [], "nothing is set unless everything is right"
            continue
        assert type(found.step) is int and isinstance(found.extra, dict)
        assert scope.get_var("w").get().array.tolist() == [ord("w")] * 3
    assert kinds.keys() == {"CorruptCheckpointError", "CheckpointMismatchError"}


@pytest.mark.parametrize(
    "change,words",
    [
        (lambda b: b["variables"][0].update(offset=0.0), "offset is '0.0'; expected a number of bytes"),
        (lambda b: b["variables"][0].update(offset=False), "offset is 'False'; expected a number of bytes"),
        (lambda b: b["variables"][0].update(size=-5), "size is '-5'; expected a number of bytes"),
        (lambda b: b["variables"][0].update(size=2**63), "size is '9223372036854775808'; expected"),
        (lambda b: b["variables"][1].update(offset=1), "offset is 1; expected"),
        (lambda b: b["variables"][0].update(shape=[True]), r"shape is '\[True\]'; expected a list of dims"),
        (lambda b: b.update(step=True), "step is 'True'; expected an int"),
        (lambda b: b["variables"].append(b["variables"][0]), "offset is 0; expected"),
        (lambda b: b["variables"][1].update(name="v"), "variable 'v' is there twice"),
        (lambda b: b.pop("random"), "the body lacks 'random'"),
    ],
)
def test_manifests_that_save_checkpoint_does_not_write(
    checkpoint: tuple[Path, oprack.Program, oprack.Scope], change: Callable[[Any], Any], words: str
) -> None:
    root, program, _ = checkpoint
    manifest = root / "ckpt-1" / "manifest.json"
    body = unseal(manifest)
    change(body)
    manifest.write_bytes(seal(body))
    with pytest.raises(CorruptCheckpointError, match=f"is not as save_checkpoint writes it: .*{words}"):
        load_checkpoint(root, program, oprack.Scope())


def test_a_second_writer_is_told_so(checkpoint: tuple[Path, oprack.Program, oprack.Scope]) -> None:
    root, program, scope = checkpoint
    holder = (
        "import fcntl, os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nfcntl.flock(fd, fcntl.LOCK_EX)\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", holder, str(root)], stdin=-1, stdout=-1, text=True) as other:
        assert other.stdin is not None and other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(CheckpointBusyError, match="another process or thread saves into"):
            save_checkpoint(root, program, scope)
        assert load_checkpoint(root, program, oprack.Scope()).step == 3, "loading goes on"
        other.stdin.close()
    assert save_checkpoint(root, program, scope).name == "ckpt-2", "the lock ended with its process"


def test_a_writer_whose_directory_is_swept_away(
    checkpoint: tuple[Path, oprack.Program, oprack.Scope], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file system has no locks, the other writer removes what looks like a killed save."""
    import shutil

    from oprack import checkpoint as module

    root, program, scope = checkpoint
    write = module._write_values

    def swept(path: Path, values: Any) -> Any:
        entries = write(path, values)
        shutil.rmtree(path.parent)
        return entries

    def unsupported(fd: int, how: int) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(module, "_write_values", swept)
    monkeypatch.setattr(fcntl, "flock", unsupported)
    with pytest.raises(CheckpointBusyError, match="give each a directory of its own"):
        save_checkpoint(root, program, scope)
    assert load_checkpoint(root, program, oprack.Scope()).step == 3


def test_a_name_of_thousands_of_parts(tmp_path: Path) -> None:
    program, scope = oprack.Program(), oprack.Scope()
    name = "/".join(["p"] * 2000)
    program.desc.blocks[0].create_var(name, dtype="float32", shape=[1], persistable=True)
    scope.var(name).set(oprack.LoDTensor(np.ones(1, "float32")))
    with pytest.raises(UnsafeNameError, match="the name has 2000 parts; expected at most 64"):
        save_vars(tmp_path, program, scope)
    assert list(tmp_path.iterdir()) == []
