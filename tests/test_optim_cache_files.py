"""The files of Config.set_optim_cache_dir: whatever is damaged, forged or another user's is ignored and made anew."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack.inference import create_predictor
from oprack.inference.optim_cache import OptimCache, cache_key
from oprack.tensor import Scope
from optim_models import Passes, answer, config, counted, expected, only, save

HEAD = 48


@pytest.fixture(autouse=True, scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A run loads the files of packs that it needs: an entry has their names, and a process' first is another one."""
    answer(config(save(tmp_path_factory.mktemp("loaded") / "model", 1.0)))


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Passes:
    return counted(monkeypatch)


@pytest.fixture
def cache(tmp_path: Path, passes: Passes) -> OptimCache:
    return OptimCache(tmp_path / "cache")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return save(tmp_path / "model", 1.0)


def reforged(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """An entry with a changed header and a digest that fits, as somebody would write who means harm."""
    (size,) = struct.unpack_from("<Q", data, 40)
    header = json.loads(data[HEAD : HEAD + size])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-(HEAD + len(text)) % 64)
    rest = struct.pack("<Q", len(text)) + text + data[HEAD + size :]
    return data[:8] + hashlib.sha256(rest).digest() + rest


def parameter(index: int, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header["parameters"][0].__setitem__(index, value)


def op_part(index: int, value: object) -> Callable[[dict[str, Any]], object]:
    return lambda header: header["program"]["blocks"][0]["ops"][1].__setitem__(index, value)


FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "offset behind the end": parameter(5, 1 << 40),
    "negative offset": parameter(5, -64),
    "odd offset": parameter(5, 4),
    "huge dims": parameter(2, [1 << 62, 1 << 62]),
    "huge and empty dims": parameter(2, [1 << 62, 0, 1 << 62]),
    "negative dims": parameter(2, [-1, 3]),
    "dims that are no list": parameter(2, 6),
    "a float as a dim": parameter(2, [2.0, 3]),
    "many dims": parameter(2, [1] * 100),
    "objects": parameter(1, "object"),
    "no dtype": parameter(1, None),
    "no name": parameter(0, None),
    "an order that is none": parameter(3, [0, 0]),
    "an order of other dims": parameter(3, [0, 1, 2]),
    "LoD of other rows": parameter(4, [[0, 9]]),
    "LoD that is none": parameter(4, [["a"]]),
    "no parameters": lambda header: header.pop("parameters"),
    "another key": lambda header: header.update(key="{}"),
    "feeds that are no names": lambda header: header.update(feeds=[1]),
    "files that are no rows": lambda header: header.update(files=[1]),
    "no program": lambda header: header.update(program=None),
    "no blocks": lambda header: header["program"].update(blocks=[]),
    "a block inside itself": lambda header: header["program"]["blocks"][0].update(parent=0),
    "a type that is no name": op_part(0, 5),
    "slots that are no dict": op_part(1, []),
    "names that are no list": op_part(1, {"X": "x"}),
    "an attribute of no type": op_part(3, [["a", 99, 1]]),
    "an attribute of another type": op_part(3, [["a", 0, "text"]]),
    "an op with too little": lambda header: header["program"]["blocks"][0]["ops"][1].pop(),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_entries_are_ignored(what: str, model: Path, cache: OptimCache, passes: Passes, caplog: Any) -> None:
    answer(config(model, cache))
    path = only(cache)
    good = path.read_bytes()
    assert reforged(good, lambda header: None)[HEAD:] != b""
    path.write_bytes(reforged(good, FORGED[what]))
    with caplog.at_level(logging.INFO, "oprack"):
        np.testing.assert_array_equal(answer(config(model, cache)), expected(1.0))
    assert [r.levelname for r in caplog.records if "optim_cache" in r.name] == ["WARNING"]
    assert str(path) in caplog.text and "is ignored" in caplog.text
    assert passes.runs == 2 and only(cache).read_bytes() == good


def test_an_entry_that_is_forged_without_a_change_is_taken(model: Path, cache: OptimCache, passes: Passes) -> None:
    answer(config(model, cache))
    path = only(cache)
    path.write_bytes(reforged(path.read_bytes(), lambda header: None))
    answer(config(model, cache))
    assert passes.runs == 1  # so the test above fails for what it changes, and not for how


def test_any_altered_byte_and_any_length(model: Path, cache: OptimCache, passes: Passes) -> None:
    answer(config(model, cache))
    path = only(cache)
    good, key = path.read_bytes(), None
    executor = create_predictor(config(model))._executor
    key = cache_key(config(model), executor)
    assert cache.load(key, Scope()) is not None
    random = np.random.default_rng(0)
    for at in [*range(0, 60, 3), *random.integers(0, len(good), 60).tolist(), len(good) - 1]:
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :])
        assert cache.load(key, Scope()) is None, at
    for length in [0, 1, 8, 40, 47, 48, 49, 64, len(good) // 2, len(good) - 1]:
        path.write_bytes(good[:length])
        assert cache.load(key, Scope()) is None, length
    path.write_bytes(good + b"\0")
    assert cache.load(key, Scope()) is None
    path.write_bytes(good)
    assert cache.load(key, Scope()) is not None


def test_an_entry_under_another_name(tmp_path: Path, model: Path, cache: OptimCache, passes: Passes) -> None:
    answer(config(model, cache))
    first = only(cache)
    other = save(tmp_path / "other", 5.0)
    answer(config(other, cache))
    (second,) = (path for path, _, _ in cache.entries() if path != first)
    shutil.copyfile(first, second)
    np.testing.assert_array_equal(answer(config(other, cache)), expected(5.0))
    assert passes.runs == 3


def test_files_of_others_are_not_read(
    model: Path, cache: OptimCache, passes: Passes, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    answer(config(model, cache))
    path = only(cache)
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    path.chmod(0o666)
    answer(config(model, cache))
    assert passes.runs == 2 and "others may write to it" in caplog.text and path.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    np.testing.assert_array_equal(answer(config(model, cache)), expected(1.0))
    assert passes.runs == 3
    monkeypatch.undo()
    path.unlink()
    os.mkfifo(path)
    assert cache.load(cache_key(config(model), create_predictor(config(model))._executor), Scope()) is None


def test_a_directory_that_cannot_be_made(tmp_path: Path, model: Path, passes: Passes, caplog: Any) -> None:
    (tmp_path / "file").write_text("")
    c = config(model)
    c.set_optim_cache_dir(tmp_path / "file" / "cache")
    np.testing.assert_array_equal(answer(c), expected(1.0))
    assert "can't be written" in caplog.text or "is ignored" in caplog.text


def test_an_entry_that_is_cut_short_in_place_harms_nobody_who_uses_it(
    model: Path, cache: OptimCache, passes: Passes
) -> None:
    """Of a mapped file, the next page that is read would end the process."""
    answer(config(model, cache))
    predictor = create_predictor(config(model, cache))
    os.truncate(only(cache), 100)
    (y,) = predictor.run([np.ones((1, 2), np.float32)])
    np.testing.assert_array_equal(y, expected(1.0, np.ones((1, 2), np.float32)))
    assert passes.runs == 1
