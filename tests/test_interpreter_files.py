"""Files of states, and type stubs."""

from __future__ import annotations

import ast
import enum
import io
import os
import stat
import threading
import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from oprack import to_tensor
from oprack.cli.main import main
from oprack.errors import CorruptParameterError, InvalidArgumentError, NotFoundError, OversizedTensorError
from oprack.functional.stubs import stubs
from oprack.io import load_state, save_state


def test_values_come_back(tmp_path) -> None:
    state = {
        "a.weight": to_tensor(np.ones((2, 3), np.float32)),
        "half": to_tensor([1.5, -2.0], dtype="bfloat16"),
        "scalar": np.float64(3.5),
        "empty": np.zeros((0, 4), np.int64),
        "column": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "LR_Scheduler": {"last_epoch": 3, "last_lr": 0.1},
    }
    save_state(tmp_path / "s.npz", state)
    found = load_state(tmp_path / "s.npz")
    assert list(found) == list(state) and found["LR_Scheduler"] == state["LR_Scheduler"]
    for name in ("a.weight", "half", "scalar", "empty", "column"):
        np.testing.assert_array_equal(np.asarray(state[name]), found[name])
        assert found[name].dtype == np.asarray(state[name]).dtype
    with np.load(tmp_path / "s.npz") as other:
        assert other["a.weight"].shape == (2, 3)


def _file(path, entries, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def _npy(array=None, header=None) -> bytes:
    stream = io.BytesIO()
    if header is None:
        np.lib.format.write_array(stream, np.asarray(array), allow_pickle=True)
    else:
        np.lib.format.write_array_header_1_0(stream, header)
    return stream.getvalue()


def test_bad_files(tmp_path) -> None:
    path = tmp_path / "bad.npz"
    with pytest.raises(NotFoundError, match="no file"):
        load_state(path)
    path.write_bytes(b"nonsense")
    with pytest.raises(CorruptParameterError, match="no file of save_state"):
        load_state(path)
    huge = {"descr": "<f4", "fortran_order": False, "shape": (1 << 40,)}
    with pytest.raises(OversizedTensorError, match="need 4398046511104 bytes"):
        load_state(_file(path, {"a.npy": _npy(header=huge)}))
    with pytest.raises(CorruptParameterError):
        load_state(_file(path, {"a.npy": _npy(np.array([object()]))}))
    with pytest.raises(CorruptParameterError, match="compressed"):
        load_state(_file(path, {"a.npy": _npy(np.zeros(1000))}, zipfile.ZIP_DEFLATED))
    with pytest.raises(CorruptParameterError):
        load_state(_file(path, {"a.npy": _npy(np.zeros(3))}))
    with pytest.raises(InvalidArgumentError, match="JSON"):
        save_state(path, {"a": {1, 2}})


def test_a_truncated_file_is_no_state(tmp_path) -> None:
    save_state(tmp_path / "s.npz", {"a": np.arange(1000)})
    data = (tmp_path / "s.npz").read_bytes()
    for size in range(0, len(data), 97):
        (tmp_path / "cut.npz").write_bytes(data[:size])
        with pytest.raises(CorruptParameterError):
            load_state(tmp_path / "cut.npz")


def test_stubs_are_python_and_name_every_op() -> None:
    tree = ast.parse(stubs())
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    ops = {n for n in dir(oprack.functional) if hasattr(getattr(oprack.functional, n), "op_signature")}
    assert ops - set(functions) == set()
    softmax = functions["softmax"]
    assert [a.arg for a in softmax.args.args] == ["x"] and [a.arg for a in softmax.args.kwonlyargs] == ["axis"]
    assert ast.unparse(softmax.returns) == "Tensor" and "axis: " in ast.get_docstring(softmax)
    assert ast.unparse(functions["split"].returns) == "list[Tensor]"
    assert ast.unparse(functions["concat"].args.args[0].annotation) == "Sequence[Tensor]"


def test_stubs_command(tmp_path, capsys) -> None:
    assert main(["stubs", str(tmp_path / "typings" / "functional.pyi")]) == 0
    assert capsys.readouterr().out.strip().endswith("functional.pyi")
    assert (tmp_path / "typings/functional.pyi").read_text().count("def ") > 400


# What oprack.save takes ---------------------------------------------------------------------------------------------
_TEXT = st.text(st.characters(exclude_categories=()), max_size=6)
_SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers().map(lambda n: n**400)
    | st.floats()
    | _TEXT
    | st.binary(max_size=3)
)
_DTYPES = st.one_of(
    hnp.scalar_dtypes(), hnp.unicode_string_dtypes(), hnp.byte_string_dtypes(), hnp.array_dtypes(max_size=2)
)
_ARRAYS = hnp.arrays(_DTYPES, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
_VALUES = st.recursive(
    _SCALARS
    | _ARRAYS
    | st.complex_numbers()
    | st.sampled_from([{1}, np.str_("cat"), np.float64(0.5), enum.IntEnum("E", "A").A]),
    lambda parts: (
        st.lists(parts, max_size=3)
        | st.lists(parts, max_size=2).map(tuple)
        | st.dictionaries(
            _TEXT | st.sampled_from(["a\0b", "a\x1fb", "__other__", "tree", "x.npy", "../x", 3]), parts, max_size=3
        )
    ),
    max_leaves=6,
)


def _same(found: Any, saved: Any) -> bool:
    """Whether a value came back as what it was, in the byte order of this machine."""
    if isinstance(saved, np.ndarray | np.generic) and not isinstance(saved, str):
        wanted = np.asarray(saved)
        return found.dtype == wanted.dtype.newbyteorder("=") and np.array_equal(
            found, wanted, equal_nan=wanted.dtype.kind in "fc"
        )
    if isinstance(saved, dict | list | tuple):
        if isinstance(saved, dict):
            return (
                type(found) is dict and list(found) == list(saved) and all(_same(found[k], v) for k, v in saved.items())
            )
        return type(found) is type(saved) and len(found) == len(saved) and all(map(_same, found, saved))
    return found == saved or (found != found and saved != saved)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(value=_VALUES)
def test_what_save_takes_load_gives_back(tmp_path: Path, value: Any) -> None:
    try:
        oprack.save(value, tmp_path / "s.npz")
    except InvalidArgumentError as error:
        assert str(error).startswith(("save: obj", "save_state: "))
    else:
        assert _same(oprack.load(tmp_path / "s.npz"), value)


_BAD = (
    np.array(["cat"]),
    np.datetime64("2026-11-22"),
    np.longdouble(1),
    np.zeros(2, [("a", "f4")]),
    np.array([b"x"]),
    np.array([None]),
)


@pytest.mark.parametrize("bad", _BAD, ids=lambda bad: bad.dtype.name)
def test_arrays_that_no_tensor_holds_are_refused_when_saved(bad: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"obj\['net'\]\['classes'\] is an array of .* dtype of tensors"):
        oprack.save({"net": {"w": np.ones(2), "classes": bad}}, tmp_path / "s")
    with pytest.raises(InvalidArgumentError, match=r"'classes' is an array of .* dtype of tensors"):
        save_state(tmp_path / "s", {"classes": bad})
    assert not list(tmp_path.iterdir())


def test_other_things_that_can_not_be_saved(tmp_path: Path) -> None:
    deep: Any = []
    for _ in range(3000):
        deep = {"a": deep}
    round_: list[Any] = []
    round_.append(round_)
    for bad in (deep, round_):
        with pytest.raises(InvalidArgumentError, match="deeper than 100 levels, or contains itself"):
            oprack.save(bad, tmp_path / "s")
    with pytest.raises(InvalidArgumentError, match="masked array, whose mask would be lost"):
        oprack.save(np.ma.masked_array([1.0, 2.0], [True, False]), tmp_path / "s")
    for name in ("a\0b", "__other__", "x" * 70_000, 3):
        with pytest.raises(InvalidArgumentError, match="can't be the name of a value"):
            save_state(tmp_path / "s", {name: np.ones(2)})
    assert not list(tmp_path.iterdir())
    flat = OrderedDict(a=np.str_("cat"))
    oprack.save(flat, tmp_path / "s")
    assert oprack.load(tmp_path / "s") == flat


def test_a_save_writes_to_what_is_there(tmp_path: Path) -> None:
    """Links, modes, pipes and devices stay what they are, as with open()."""
    target, link = tmp_path / "disk" / "weights", tmp_path / "weights"
    link.symlink_to(target)
    for value in (1, 2):  # a link that leads nowhere yet, and one to a file
        oprack.save(value, link)
        assert link.is_symlink() and oprack.load(target) == oprack.load(link) == value
        target.chmod(0o640)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    oprack.save(3, target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert [p.name for p in target.parent.iterdir()] == ["weights"]
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    oprack.save(4, pipe)
    reader.join()
    assert pipe.is_fifo()
    (tmp_path / "copy").write_bytes(read[0])
    assert oprack.load(tmp_path / "copy") == 4
    for name in (f"{tmp_path}/folder/", str(tmp_path)):
        with pytest.raises(IsADirectoryError, match="names a directory"):
            oprack.save(5, name)
    assert not (tmp_path / "folder").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make devices and give files away")
def test_devices_and_owners_stay(tmp_path: Path) -> None:
    null = tmp_path / "null"
    os.mknod(null, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    oprack.save({"w": np.ones(1000)}, null)
    assert null.is_char_device()
    oprack.save(1, tmp_path / "a")
    os.chown(tmp_path / "a", 1000, 1000)
    oprack.save(2, tmp_path / "a")
    assert (tmp_path / "a").stat().st_uid == 1000
