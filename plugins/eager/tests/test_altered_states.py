"""Altered files of save_state: an error of the kind that is promised, or the values; what save and load refuse."""

from __future__ import annotations

import io
import os
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest
from oprack.errors import CorruptParameterError, InvalidArgumentError
from oprack.io import load, load_state, save, save_state

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
