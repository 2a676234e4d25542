"""Files of states, and type stubs."""

from __future__ import annotations

import ast
import io
import zipfile

import numpy as np
import oprack
import pytest
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
