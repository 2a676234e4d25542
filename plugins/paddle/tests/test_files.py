"""Files of paddle.save: those of Paddle 2.6.2 go on training here, ours are of the same form, and none is unpickled."""

from __future__ import annotations

import io
import json
import os
import pickle
import pickletools
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.errors import CorruptParameterError, InvalidArgumentError, OversizedTensorError
from oprack_paddle.trainer import pickles

HERE = Path(__file__).parent
LOSSES = json.loads((HERE / "losses.json").read_text())["checkpoint"]
KEPT = HERE / "data" / "checkpoint"
"""Written by scripts/checkpoint.py under Paddle 2.6.2."""


def ran(mode: str, prefix: Path) -> list[float]:
    command = [
        sys.executable,
        "-m",
        "oprack_paddle",
        "--force",
        str(HERE / "scripts" / "checkpoint.py"),
        mode,
        str(prefix),
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    assert found.returncode == 0, found.stderr
    losses: list[float] = json.loads(found.stdout.splitlines()[-1])
    return losses


def test_training_goes_on_from_files_of_paddle() -> None:
    np.testing.assert_allclose(ran("go on", KEPT), LOSSES, rtol=0, atol=1e-6)


def test_training_goes_on_from_our_files_whose_form_is_paddles(tmp_path: Path) -> None:
    losses = ran("keep", tmp_path / "ours")
    np.testing.assert_allclose(ran("go on", tmp_path / "ours"), losses, rtol=0, atol=1e-6)
    for suffix in (".pdparams", ".pdopt"):
        ours, theirs = (described(p.with_suffix(suffix)) for p in (tmp_path / "ours", KEPT))
        assert ours == theirs


def described(path: Path) -> dict[str, Any]:
    """Keys, with shapes and dtypes of arrays, and what else there is, but for the names of running statistics."""
    with path.open("rb") as file:
        found = pickles.read(file, path.name)
    for statistic in ("1._mean", "1._variance"):
        found["StructuredToParameterName@@"].pop(statistic, None)
    return {k: (v.shape, v.dtype.name) if isinstance(v, np.ndarray) else v for k, v in found.items()}


def read(data: bytes) -> Any:
    return pickles.read(io.BytesIO(data), "the file")


VALUES = [
    {"a": np.arange(6, dtype="int32").reshape(2, 3), "b": [1, -2.5, None, True, "é", 2**70, b"x"], "c": (1, {"d": ()})},
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    {"scalar": np.float32(2.5), "empty": np.zeros((0, 3), "int64"), "complex": np.array([1 + 2j])},
]


@pytest.mark.parametrize("value", VALUES, ids=["parts", "an array", "numbers"])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_what_pickle_writes_of_data_is_read(value: Any, protocol: int) -> None:
    # protocol 5 keeps buffers apart, which Paddle never writes
    if protocol == 5:
        with pytest.raises(CorruptParameterError):
            read(pickle.dumps(VALUES[1], protocol=5))
        return
    same(read(pickle.dumps(value, protocol=protocol)), value)


@pytest.mark.parametrize("value", VALUES, ids=["parts", "an array", "numbers"])
def test_what_is_written_is_a_pickle_of_it(value: Any) -> None:
    file = io.BytesIO()
    pickles.write(value, file)
    pickletools.dis(file.getvalue(), out=io.StringIO())
    same(read(file.getvalue()), value)


def same(found: Any, value: Any) -> None:
    if isinstance(value, dict):
        assert found.keys() == value.keys()
        for key in value:
            same(found[key], value[key])
    elif isinstance(value, list | tuple):
        assert type(found) is type(value) and len(found) == len(value)
        for a, b in zip(found, value, strict=True):
            same(a, b)
    elif isinstance(value, np.ndarray | np.generic):
        assert np.asarray(found).dtype == value.dtype and np.asarray(found).shape == np.shape(value)
        assert (np.asarray(found) == value).all()
    else:
        assert found == value and type(found) is type(value)


class Calls:
    """What a pickle that is meant to harm holds."""

    def __reduce__(self) -> Any:
        return os.system, ("touch harmed",)


def test_a_file_that_calls_something_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for protocol in (2, 4):
        with pytest.raises(CorruptParameterError, match=r"asks for \w+\.system, which is not called"):
            read(pickle.dumps({"a": Calls()}, protocol=protocol))
    assert not list(tmp_path.iterdir())


def test_broken_files_are_refused() -> None:
    whole = (HERE / "data" / "checkpoint.pdparams").read_bytes()
    for end in range(0, len(whole), 7):
        with pytest.raises(CorruptParameterError):
            read(whole[:end])
    shape = whole.replace(b"K\x03K\x04\x86", b"K\x03K\xff\x86")
    assert shape != whole
    with pytest.raises(OversizedTensorError, match=r"the shape \[3, 255\] needs 3060 bytes, the file has 48"):
        read(shape)
    with pytest.raises(CorruptParameterError, match="deeper than 100 levels"):
        read(b"\x80\x04" + b"]" * 200 + b"a" * 199 + b".")
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(CorruptParameterError, match="contains itself"):
        read(pickle.dumps(loop, protocol=4))


@pytest.mark.parametrize("claimed", [1 << 33, 1 << 40, 1 << 62])
def test_no_memory_is_taken_for_bytes_that_a_file_only_claims(claimed: int) -> None:
    for code in (b"\x8e", b"\x8d"):  # bytes and text
        with pytest.raises(CorruptParameterError, match=f"expected {claimed} bytes"):
            read(b"\x80\x04" + code + struct.pack("<Q", claimed) + b"abc.")


def test_altered_files_end_in_an_error_or_in_data() -> None:
    whole, draw = bytearray((HERE / "data" / "checkpoint.pd").read_bytes()), np.random.default_rng(0)
    for _ in range(2000):
        altered = bytearray(whole)
        for at in draw.integers(0, len(whole), 2):
            altered[at] = draw.integers(0, 256)
        try:
            read(bytes(altered))
        except CorruptParameterError:
            pass


def test_what_is_no_data_is_not_written() -> None:
    with pytest.raises(InvalidArgumentError, match="got a value of object; expected tensors, arrays, numbers, text"):
        pickles.write({"a": object()}, io.BytesIO())
