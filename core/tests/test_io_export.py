"""save_inference_model: what is kept of a program, and what comes back."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest
from oprack.desc import AttrType, VarType
from oprack.errors import (
    FeedNameError,
    FetchNameError,
    InvalidArgumentError,
)
from oprack.io import (
    load_inference_model,
    persistable_vars,
    save_inference_model,
)
from oprack.io.export import PROGRAM_VERSION, inference_program
from oprack.op import Attr, Input, OpDef, OpVersion, Output
from oprack.packs import PackManager, use_manager
from oprack.program import Program
from oprack.tensor import Scope
from small_models import assert_same_values, small_program, small_scope
from wire_bytes import lod_stream

PROGRAMS = Path(__file__).parents[2] / "tests" / "data" / "programs"
MODELS = ("gru_cls", "lod_seqops", "while_loop")
TRAINED = sorted(path.name for path in PROGRAMS.glob("train_*"))


@pytest.fixture(autouse=True)
def manager():
    """Saving asks for the ops that are installed; here there are none but core's."""
    with use_manager(PackManager(entry_points=[])) as manager:
        yield manager


@pytest.mark.parametrize("name", MODELS)
def test_save_and_load_in_a_fresh_scope(tmp_path, name):
    scope, other = Scope(), Scope()
    model = load_inference_model(PROGRAMS / name / "model", scope)
    before = model.program.serialize()
    save_inference_model(tmp_path / "m", model.program, model.feed_names, model.fetch_names, scope)
    assert model.program.serialize() == before
    again = load_inference_model(tmp_path / "m", other)
    assert (again.feed_names, again.fetch_names) == (model.feed_names, model.fetch_names)
    assert_same_values(scope, other)
    assert (tmp_path / "m.pdiparams").read_bytes() == (PROGRAMS / name / "model.pdiparams").read_bytes()
    ops = [str(op) for op in model.program.global_block().ops if op.type not in ("feed", "fetch")]
    assert [str(op) for op in again.program.global_block().ops if op.type not in ("feed", "fetch")] == ops
    assert again.program.desc.op_version_map == model.program.desc.op_version_map


def test_what_the_outputs_do_not_need_is_left_out(tmp_path):
    program = small_program()
    save_inference_model(tmp_path / "m", program, ["x"], ["y"], small_scope())
    model = load_inference_model(tmp_path / "m", Scope())
    block = model.program.global_block()
    assert [op.type for op in block.ops] == ["feed", "mul", "relu", "fetch"]
    assert set(block.vars) == {"x", "w", "h", "y", "feed", "fetch"}
    assert (block.vars["feed"].type, block.vars["fetch"].type) == (VarType.FEED_MINIBATCH, VarType.FETCH_LIST)
    assert block.vars["feed"].persistable and block.vars["fetch"].persistable
    assert len(program.global_block().ops) == 3 and "feed" not in program.global_block().vars
    data = lod_stream(5, (2, 1), struct.pack("<2f", 0.5, -1.0))
    assert (tmp_path / "m.pdiparams").read_bytes() == data


@pytest.mark.parametrize("prefix", ["", "folder/"])
def test_a_prefix_without_a_name_is_refused(prefix, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError, match=rf"expected one with a name, such as '{prefix}model' for"):
        save_inference_model(prefix, small_program(), ["x"], ["y"], small_scope())
    assert not list(tmp_path.iterdir())


def test_feeding_in_the_middle_cuts_what_comes_before():
    exported = inference_program(small_program(), ["h"], ["y"])
    assert [op.type for op in exported.global_block().ops] == ["feed", "relu", "fetch"]
    assert persistable_vars(exported) == []


def test_other_inputs_and_outputs_than_before():
    once = inference_program(small_program(), ["x"], ["y"])
    twice = inference_program(once, ["h"], ["y", "h"])
    feeds_and_fetches = [
        (op.type, op.input("X"), op.output("Out"), op.attr("col"))
        for op in twice.global_block().ops
        if op.type in ("feed", "fetch")
    ]
    assert feeds_and_fetches == [
        ("feed", ["feed"], ["h"], 0),
        ("fetch", ["y"], ["fetch"], 0),
        ("fetch", ["h"], ["fetch"], 1),
    ]


@pytest.mark.parametrize("name", TRAINED)
def test_training_programs_become_inference_programs(name):
    """No op of the backward or optimize role stays, is_test is set, and blocks of gradients are gone."""
    program = Program.parse((PROGRAMS / name / "main.pdmodel").read_bytes())
    meta = json.loads((PROGRAMS / name / "meta.json").read_text("utf-8"))
    with np.load(PROGRAMS / name / "feeds.npz") as file:
        feeds = sorted({key.split("/", 1)[1] for key in file.files})
    exported = Program.parse(inference_program(program, feeds, [meta["loss"]]).serialize())
    assert not [t for t in exported.op_types() if t.endswith("_grad") or t in ("sgd", "adam", "momentum", "adagrad")]
    for block in exported.blocks:
        assert block.forward_block_idx == -1
        for op in block.ops:
            assert op.attr("is_test", True) is True
            for arg in op.input_arg_names():
                assert block.find_var_recursive(arg) is not None or arg == "feed"
    assert [op.type for op in exported.global_block().ops].count("feed") == len(feeds)
    assert len(exported.blocks) == {"train_cond_grad_sgd": 3, "train_while_grad_sgd": 2}.get(name, 1)


def test_sub_blocks_are_numbered_anew():
    program = small_program()
    block = program.global_block()
    gone, kept = program.desc.append_block(block), program.desc.append_block(block)
    deep = program.desc.append_block(kept)
    block.insert_op(0, "while", {"X": "x"}, {"Out": "unused"}, {"sub_block": gone})
    block.insert_op(1, "while", {"X": "x"}, {"Out": "h"}, {"sub_block": kept})
    kept.append_op("conditional_block", {}, {}, {"sub_block": deep})
    deep.append_op("scale", {"X": "w"}, {"Out": "h"})
    exported = inference_program(program, ["x"], ["y"])
    assert [b.parent_idx for b in exported.blocks] == [-1, 0, 1]
    assert [op.type for op in exported.global_block().ops] == ["feed", "while", "mul", "relu", "fetch"]
    assert exported.global_block().ops[1].attrs["sub_block"] == 1
    assert exported.block(1).ops[0].attrs["sub_block"] == 2
    assert exported.block(2).ops[0].type == "scale"
    assert Program.parse(exported.serialize()).serialize() == exported.serialize()


def test_targets_and_variables_named_by_attributes_stay():
    program = small_program()
    block = program.global_block()
    block.create_var("size", dtype="int64", shape=[1], persistable=True)
    printed = block.append_op("print", {"In": "b"}, {"Out": "b"})
    printed.is_target = True
    block.ops[1].set_attr("limit", "size", AttrType.VAR)
    exported = inference_program(program, ["x"], ["y"])
    assert [op.type for op in exported.global_block().ops] == ["feed", "mul", "relu", "print", "fetch"]
    assert [var.name for var in persistable_vars(exported)] == ["b", "size", "w"]


class Relu(OpDef, type="relu"):
    """$$Out = max(0, X)$$"""

    X = Input("Any shape.")
    Out = Output("As X.")
    is_test = Attr(False, "Not training.")
    versions = OpVersion("relu").checkpoint("new", ("new_attr", "is_test", False)).checkpoint("fix", ("bugfix", "", ""))

    def infer_shape(ctx):
        ctx.set_dim("Out", ctx.dim("X"))


def test_a_program_built_here_says_the_versions_of_the_installed_ops(manager):
    manager.register_op(Relu)
    desc = inference_program(small_program(), ["x"], ["y"]).desc
    assert desc.version == PROGRAM_VERSION == 2006002
    assert desc.op_version_map == {"relu": 2}
    assert [op.attr("is_test") for op in desc.block(0).ops] == [None, None, True, None]


def test_a_loaded_program_keeps_its_versions(manager):
    manager.register_op(Relu)
    program = small_program()
    program.desc.version = 1008005
    desc = inference_program(program, ["x"], ["y"]).desc
    assert (desc.version, desc.op_version_map) == (1008005, {})
    assert desc.block(0).ops[2].attrs == {}


@pytest.mark.parametrize(
    ("feeds", "fetches", "error", "message"),
    [
        (["x", "nope"], ["y"], FeedNameError, r"feed_names is \['x', 'nope'\]; .* block 0, which has no 'nope'"),
        (["x", "x"], ["y"], FeedNameError, r"expected different names"),
        (["x"], ["nope"], FetchNameError, r"fetch_names is \['nope'\]; .* has no 'nope'"),
        (["x"], [], FetchNameError, r"fetch_names is empty"),
    ],
)
def test_names_that_the_program_does_not_have(tmp_path, feeds, fetches, error, message):
    with pytest.raises(error, match=message):
        save_inference_model(tmp_path / "m", small_program(), feeds, fetches, small_scope())
    assert list(tmp_path.iterdir()) == []


def test_a_variable_of_the_program_named_feed():
    program = small_program()
    program.global_block().create_var("feed", dtype="float32", shape=[1])
    with pytest.raises(InvalidArgumentError, match="variable 'feed' is a LOD_TENSOR of the program"):
        inference_program(program, ["x"], ["y"])


def test_what_runs_do_not_need_is_left_out(manager):
    class WithExtra(OpDef, type="with_extra"):
        """An op with attributes that runs do not need."""

        X = Input("x")
        Out = Output("out")
        axis = Attr(-1, "kept, although it has its default")
        use_mkldnn = Attr(False, "extra, at its default", extra=True)
        scale = Attr(1.0, "extra, set to something else", extra=True)

        def infer_shape(ctx):
            ctx.set_dim("Out", ctx.dim("X"))

    manager.register_op(WithExtra)
    program = Program()
    block = program.global_block()
    for name in ("x", "y"):
        block.create_var(name, dtype="float32", shape=[-1, 2])
    attrs = {"axis": -1, "use_mkldnn": False, "scale": 2.0}
    block.append_op("with_extra", {"X": "x"}, {"Out": "y"}, attrs)
    block.ops[0].set_attr("op_callstack", ['File "train.py", line 3, in net'])
    assert set(inference_program(program, ["x"], ["y"]).global_block().ops[1].attrs) == {"axis", "scale"}
    whole = inference_program(program, ["x"], ["y"], clip_extra=False).global_block().ops[1]
    assert set(whole.attrs) == {"axis", "use_mkldnn", "scale", "op_callstack"}
