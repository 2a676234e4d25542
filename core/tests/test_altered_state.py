"""Altered files of save_state and manifests of checkpoints: an error of the kind that is promised, or the values."""

from __future__ import annotations

import fcntl
import io
import json
import os
import random
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.errors import (
    CheckpointBusyError,
    CheckpointError,
    CorruptCheckpointError,
    CorruptParameterError,
    InvalidArgumentError,
    UnsafeNameError,
)
from oprack.io import load, load_checkpoint, load_state, save, save_checkpoint, save_state, save_vars
from oprack.io.manifest import seal, unseal

# More in a nightly run: OPRACK_FUZZ=20000.
COUNT = int(os.environ.get("OPRACK_FUZZ", "1500"))
STATE = {"a": np.arange(12.0), "b.c": np.ones((2, 3), "float32"), "step": 7, "names": ["x", "y"]}


def altered(data: bytes, draw: random.Random) -> bytes:
    """One of: a byte replaced, a piece cut out, a piece repeated, the end cut off."""
    out = bytearray(data)
    at, length = draw.randrange(len(out)), draw.randrange(1, 60)
    match draw.randrange(6):
        case 0 | 1 | 2:
            out[at] = draw.randrange(256)
        case 3:
            del out[at : at + length]
        case 4:
            out[at:at] = out[at : at + length]
        case _:
            del out[at:]
    return bytes(out)


def test_altered_states(tmp_path: Path) -> None:
    path, draw = tmp_path / "s.npz", random.Random(0)
    save_state(path, STATE)
    data = path.read_bytes()
    refused = 0
    for _ in range(COUNT):
        path.write_bytes(altered(data, draw))
        try:
            found = load_state(path)
        except CorruptParameterError as error:
            assert str(path) in str(error)
            refused += 1
            continue
        assert found.keys() == STATE.keys() and found["step"] == 7 and found["names"] == ["x", "y"]
        np.testing.assert_array_equal(found["a"], STATE["a"])
        np.testing.assert_array_equal(found["b.c"], STATE["b.c"])
    assert refused > COUNT / 2


def npz(path: Path, entries: list[tuple[str, np.ndarray]], meta: bytes | None = b'{"values": {}, "bits": {}}') -> Path:
    """An archive with these entries and the entry of JSON."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, array in [*entries, *([] if meta is None else [("__other__", np.frombuffer(meta, np.uint8))])]:
            stream = io.BytesIO()
            np.lib.format.write_array(stream, array, allow_pickle=False)
            archive.writestr(f"{name}.npy", stream.getvalue())
    return path


A = np.arange(3)
DEEP = b'{"values":' + b"[" * 100_000 + b"]" * 100_000 + b', "bits": {}}'


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    "entries,meta,words",
    [
        ([], DEEP, "RecursionError"),
        ([("a", A)], None, "lacks the entry"),
        ([("a", A)], b"[1, 2]", "not as save_state writes it"),
        ([("a", A)], b'{"values": [["a", 1]], "bits": {}}', "not as save_state writes it"),
        ([("a", A)], b'{"values": {"a": 1}, "bits": {}}', "not as save_state writes it"),
        ([("a", A)], b'{"values": {}, "bits": {"a": "bfloat16"}}', "holds bits of 'bfloat16'"),
        ([("a", A.astype("int16"))], b'{"values": {}, "bits": {"a": "float64"}}', "holds bits of 'float64'"),
        ([("a", A)], b'{"values": {}, "bits": {"b": "bfloat16"}}', "holds bits of"),
        ([("a", A)], b'{"values": {"n": ' + b"9" * 5000 + b'}, "bits": {}}', "digits"),
        ([("a", A), ("a", A)], b'{"values": {}, "bits": {}}', "is there twice"),
    ],
)  # fmt: skip
def test_archives_that_save_state_does_not_write(
    tmp_path: Path, entries: list[tuple[str, np.ndarray]], meta: bytes | None, words: str
) -> None:
    with pytest.raises(CorruptParameterError, match=words):
        load_state(npz(tmp_path / "s.npz", entries, meta))


def test_entries_that_share_their_bytes_are_no_bomb(tmp_path: Path) -> None:
    """A directory may name one piece of the file many times over; together they are longer than the file."""
    path = npz(tmp_path / "s.npz", [(f"a{i:03}", np.zeros(0)) for i in range(50)] + [("big", np.zeros(1000))])
    with zipfile.ZipFile(path) as archive:
        big = archive.getinfo("big.npy")
    data = bytearray(path.read_bytes())
    end = data.rindex(b"PK\5\6")
    place = int.from_bytes(data[end + 16 : end + 20], "little")
    while data[place : place + 4] == b"PK\1\2":  # central directory: sizes at 20, offset of the entry at 42
        data[place + 20 : place + 28] = big.file_size.to_bytes(4, "little") * 2
        data[place + 42 : place + 46] = big.header_offset.to_bytes(4, "little")
        lengths = (int.from_bytes(data[place + k : place + k + 2], "little") for k in (28, 30, 32))
        place += 46 + sum(lengths)
    path.write_bytes(data)
    with pytest.raises(CorruptParameterError, match=r"its entries need \d+ bytes, the file has"):
        load_state(path)


def test_other_byte_order_becomes_the_machines(tmp_path: Path) -> None:
    found = load_state(npz(tmp_path / "s.npz", [("a", np.arange(3, dtype=">f4"))]))["a"]
    assert found.dtype.isnative and found.tolist() == [0, 1, 2]


def test_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CorruptParameterError, match="is no regular file"):
        load_state(tmp_path / "pipe")


@pytest.mark.parametrize("end", ["", "/", "/none/"])
def test_directories_are_refused_alike_by_what_saves_and_what_loads(end: str, tmp_path: Path) -> None:
    for path in (f"{tmp_path}{end}", os.fsencode(f"{tmp_path}{end}"), ""):
        with pytest.raises(IsADirectoryError, match="names a directory; expected the name of a file to write"):
            save({"w": 1}, path)
        with pytest.raises(IsADirectoryError, match=r"names a directory; expected a file of oprack\.save"):
            load(path)
    assert not list(tmp_path.iterdir())


def test_a_state_is_a_mapping(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"state is a str; expected a dict, as in save_state\(path, "):
        save_state({"w": 1}, str(tmp_path / "s.npz"))  # type: ignore[arg-type]  # as `save` takes them


# Checkpoints ----------------------------------------------------------------------------------------------------------
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

    from oprack.io import checkpoint as module

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
