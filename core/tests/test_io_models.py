"""Inference models and parameters: found in all layouts, saved and loaded again, and refused where they do not fit."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
from oprack.desc import VarType
from oprack.errors import (
    CorruptModelError,
    CorruptParameterError,
    InvalidArgumentError,
    MissingParameterError,
    NotFoundError,
)
from oprack.io import (
    load_from_buffers,
    load_inference_model,
    load_vars,
    persistable_vars,
    save_inference_model,
    save_vars,
)
from oprack.io.inference_model import load_program
from oprack.program import Program
from oprack.tensor import Scope, SelectedRows
from small_models import assert_same_values, small_program, small_scope
from wire_bytes import lod_stream

PROGRAMS = Path(__file__).parents[2] / "tests" / "data" / "programs"
MODELS = ("gru_cls", "lod_seqops", "while_loop")


# Loading ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", MODELS)
def test_models_of_paddle(name):
    meta = json.loads((PROGRAMS / name / "meta.json").read_text("utf-8"))
    scope = Scope()
    model = load_inference_model(PROGRAMS / name / "model", scope)
    assert model.feed_names == [f["name"] for f in meta["feed"]]
    assert model.fetch_names == [f["name"] for f in meta["fetch"]]
    for var in persistable_vars(model.program):
        assert scope.find_var(var.name).get().shape == var.shape


def test_a_model_in_memory():
    scope, other = Scope(), Scope()
    path = PROGRAMS / "gru_cls" / "model"
    model = load_from_buffers(
        path.with_suffix(".pdmodel").read_bytes(), path.with_suffix(".pdiparams").read_bytes(), scope
    )
    again = load_inference_model(path, other)
    assert (model.feed_names, model.fetch_names) == (again.feed_names, again.fetch_names)
    assert_same_values(scope, other)


def test_the_program_alone(tmp_path):
    shutil.copy(PROGRAMS / "gru_cls" / "model.pdmodel", tmp_path / "net")
    program, feeds, fetches = load_program(tmp_path, model_filename="net")
    assert feeds == ["ids", "len"] and len(fetches) == 2
    assert program.serialize() == (tmp_path / "net").read_bytes()


@pytest.mark.parametrize(
    ("files", "path", "names"),
    [
        (("m.pdmodel", "m.pdiparams"), "m", {}),
        (("m.pdmodel", "m.pdiparams"), "m.pdmodel", {}),
        (("inference.pdmodel", "inference.pdiparams"), "", {}),
        (("__model__", "__params__"), "", {}),
        (("__model__", "weights"), "", {"params_filename": "weights"}),
        (("net", "weights"), "", {"model_filename": "net", "params_filename": "weights"}),
    ],
)
def test_layouts_with_a_combined_file(tmp_path, files, path, names):
    source = PROGRAMS / "gru_cls"
    shutil.copy(source / "model.pdmodel", tmp_path / files[0])
    shutil.copy(source / "model.pdiparams", tmp_path / files[1])
    scope, other = Scope(), Scope()
    model = load_inference_model(tmp_path / path, scope, **names)
    assert model.feed_names == ["ids", "len"]
    load_inference_model(source / "model", other)
    assert_same_values(scope, other)


def test_one_file_per_variable(tmp_path):
    scope, other = Scope(), Scope()
    model = load_inference_model(PROGRAMS / "gru_cls" / "model", scope)
    save_vars(tmp_path, model.program, scope)
    assert sorted(p.name for p in tmp_path.iterdir()) == [v.name for v in persistable_vars(model.program)]
    weight = scope.find_var("linear_0.w_0").get().array
    assert (tmp_path / "linear_0.w_0").read_bytes() == lod_stream(5, weight.shape, weight.tobytes())
    (tmp_path / "__model__").write_bytes(model.program.serialize())
    assert load_inference_model(tmp_path, other).fetch_names == model.fetch_names
    assert_same_values(scope, other)


def test_names_with_slashes_make_directories(tmp_path):
    program = Program()
    program.global_block().create_var("layer/0/w", dtype="int8", shape=[1], persistable=True)
    scope, other = Scope(), Scope()
    scope.var("layer/0/w").set(np.array([5], "int8"))
    save_vars(tmp_path, program, scope)
    assert (tmp_path / "layer" / "0" / "w").is_file()
    load_vars(tmp_path, program, other)
    assert_same_values(scope, other)


def test_a_program_without_parameters_has_no_parameter_file(tmp_path):
    program = small_program()
    block = program.global_block()
    block.append_op("square", {"X": "x"}, {"Out": "y"})
    (tmp_path / "m.pdiparams").write_bytes(b"of the model that was here before")
    block.ops = block.ops[-1:]
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], Scope())
    assert [p.name for p in tmp_path.iterdir()] == ["m.pdmodel"]
    scope = Scope()
    assert load_inference_model(tmp_path / "m", scope).fetch_names == ["y"]
    assert scope.local_var_names() == []


def test_feeds_and_fetches_are_ordered_by_their_column(tmp_path):
    program = small_program()
    block = program.global_block()
    for name, col in (("x", 2), ("h", 0), ("y", 1)):
        block.prepend_op("feed", {"X": "feed"}, {"Out": name}, {"col": col})
        block.append_op("fetch", {"X": name}, {"Out": "fetch"}, {"col": 2 - col})
    (tmp_path / "m.pdmodel").write_bytes(program.serialize())
    save_vars(tmp_path, program, small_scope(), filename="m.pdiparams")
    model = load_inference_model(tmp_path / "m", Scope())
    assert (model.feed_names, model.fetch_names) == (["h", "y", "x"], ["x", "y", "h"])


def test_models_that_are_not_there(tmp_path):
    with pytest.raises(NotFoundError, match=r"none\.pdmodel' is no file; expected a directory with __model__"):
        load_inference_model(tmp_path / "none", Scope())
    with pytest.raises(NotFoundError, match=r"has 0 program files \(\.pdmodel.*\) and no __model__"):
        load_inference_model(tmp_path, Scope())
    for name in ("a", "b"):
        shutil.copy(PROGRAMS / "while_loop" / "model.pdmodel", tmp_path / f"{name}.pdmodel")
    with pytest.raises(NotFoundError, match=r"has 2 program files.*pass model_filename"):
        load_inference_model(tmp_path, Scope())
    with pytest.raises(NotFoundError, match=r"gone' is no file"):
        load_inference_model(tmp_path, Scope(), model_filename="gone")


def test_feed_op_without_a_variable(tmp_path):
    program = small_program()
    program.global_block().prepend_op("feed", {"X": "feed"}, {"Out": []}, {"col": 0})
    with pytest.raises(CorruptModelError, match=r"op feed names the variables \[\] and col 0"):
        load_from_buffers(program.serialize(), b"", Scope())


# Parameters that do not fit -------------------------------------------------------------------------------------------
def test_all_missing_files_are_listed_at_once(tmp_path):
    program = small_program()
    scope = Scope()
    with pytest.raises(MissingParameterError, match=r"2 of 2 persistable variables have no file in .*: 'b', 'w'"):
        load_vars(tmp_path, program, scope)
    (tmp_path / "b").write_bytes(lod_stream(6, (1,), struct.pack("<d", 2.5)))
    with pytest.raises(MissingParameterError, match=r"1 of 2 persistable variables .*: 'w';"):
        load_vars(tmp_path, program, scope)
    with pytest.raises(MissingParameterError, match=r"all' does not exist; .* 2 persistable variables: 'b', 'w'"):
        load_vars(tmp_path, program, scope, filename="all")
    assert scope.local_var_names() == []


def test_all_missing_values_are_listed_at_once(tmp_path):
    scope = Scope()
    scope.var("w")
    with pytest.raises(MissingParameterError, match=r"2 of 2 .* no value in the scope: 'b', 'w'; run the startup"):
        save_vars(tmp_path, small_program(), scope)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (lod_stream(5, (2, 2), bytes(16)), r"'w' in .*: got float32\[2, 2\], but the program expects float32\[2, 1\]"),
        (lod_stream(5, (2,), bytes(8)), r"got float32\[2\], but the program expects float32\[2, 1\]"),
        (lod_stream(6, (2, 1), bytes(16)), r"got float64\[2, 1\], but the program expects float32\[2, 1\]"),
    ],
    ids=["dim", "rank", "dtype"],
)
def test_parameters_of_another_program(tmp_path, stream, message):
    b = lod_stream(6, (1,), bytes(8))
    (tmp_path / "all").write_bytes(b + stream)
    scope = Scope()
    with pytest.raises(CorruptParameterError, match=message):
        load_vars(tmp_path, small_program(), scope, filename="all")
    (tmp_path / "b").write_bytes(b)
    (tmp_path / "w").write_bytes(stream)
    with pytest.raises(CorruptParameterError, match=message):
        load_vars(tmp_path, small_program(), scope)
    assert scope.local_var_names() == []


def test_a_dim_of_minus_one_matches_any(tmp_path):
    program = small_program()
    program.global_block().vars["w"].shape = (-1, 1)
    save_vars(tmp_path, program, small_scope())
    scope = Scope()
    load_vars(tmp_path, program, scope)
    assert_same_values(scope, small_scope())


def test_a_value_that_does_not_fit_is_not_saved(tmp_path):
    scope = small_scope()
    scope.var("w").set(np.zeros((2, 2), "float32"))
    with pytest.raises(
        InvalidArgumentError, match=r"'w': got float32\[2, 2\], but the program expects float32\[2, 1\]"
    ):
        save_vars(tmp_path, small_program(), scope)
    assert list(tmp_path.iterdir()) == []


def test_bytes_behind_the_last_parameter(tmp_path):
    save_vars(tmp_path, small_program(), small_scope(), filename="all")
    save_vars(tmp_path, small_program(), small_scope())
    for name in ("all", "w"):
        with (tmp_path / name).open("ab") as file:
            file.write(b"1234567")
    with pytest.raises(CorruptParameterError, match=r"all': 7 of \d+ bytes are left behind the last of 2 .*, 'w'"):
        load_vars(tmp_path, small_program(), Scope(), filename="all")
    with pytest.raises(CorruptParameterError, match=r"'w': 7 bytes of \d+ are left after the tensor in .*w'"):
        load_vars(tmp_path, small_program(), Scope())


def test_which_variables_have_files():
    program = Program()
    block = program.global_block()
    for name in ("b", "B", "a", "é", "z"):
        block.create_var(name, dtype="float32", shape=[1], persistable=True)
    block.create_var("temporary", dtype="float32", shape=[1])
    for kind in (VarType.FEED_MINIBATCH, VarType.FETCH_LIST, VarType.RAW, VarType.READER):
        block.create_var(kind.name, type=kind, persistable=True)
    inner = program.desc.append_block(block)
    inner.create_var("inner", dtype="float32", shape=[1], persistable=True)
    inner.create_var("a", dtype="float64", shape=[2], persistable=True)
    found = persistable_vars(program)
    assert [var.name for var in found] == ["B", "a", "b", "inner", "z", "é"]
    assert found[1] is block.vars["a"]


def test_selected_rows_as_a_parameter(tmp_path):
    program = Program()
    program.global_block().create_var("t", type=VarType.SELECTED_ROWS, dtype="float32", shape=[10, 2], persistable=True)
    scope, other = Scope(), Scope()
    scope.var("t").set(SelectedRows([7, 7, 0], np.ones((3, 2), "float32"), 10))
    save_vars(tmp_path, program, scope)
    load_vars(tmp_path, program, other)
    loaded = other.find_var("t").get()
    assert (loaded.rows.tolist(), loaded.height) == ([7, 7, 0], 10)
    np.testing.assert_array_equal(loaded.value, np.ones((3, 2)))
