"""Sequence layers refuse an input that is declared without LoD when the program is written, not when it runs."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack import functional as F
from oprack import layers
from oprack.errors import InvalidLoDError
from oprack.tensor import LoDTensor, Scope

LAYERS = {
    "sequence_pool": lambda x: layers.sequence_pool(x, "sum"),
    "sequence_softmax": lambda x: layers.sequence_softmax(x),
    "sequence_conv": lambda x: layers.sequence_conv(x, 4),
    "sequence_expand": lambda x: layers.sequence_expand(x, x),
    "sequence_expand_as": lambda x: layers.sequence_expand_as(x, x),
    "sequence_pad": lambda x: layers.sequence_pad(x, layers.fill_constant([1], "float32", 0.0)),
    "sequence_reverse": lambda x: layers.sequence_reverse(x),
    "sequence_concat": lambda x: layers.sequence_concat([x, x]),
    "sequence_reshape": lambda x: layers.sequence_reshape(x, 2),
    "dynamic_lstm": lambda x: layers.dynamic_lstm(x, 12),
    "dynamic_gru": lambda x: layers.dynamic_gru(x, 4),
}


def width(name):
    return {"sequence_softmax": 1}.get(name, 12)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_refuses_an_input_without_lod(name):
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        LAYERS[name](layers.data("with_lod", [None, width(name)], lod_level=1))
        before = len(oprack.default_main_program().desc.blocks[0].ops)
        plain = layers.data("plain", [None, width(name)])
        with pytest.raises(InvalidLoDError, match=r"(?s)variable .plain.\) has no LoD.*lod_level=1.*test_requires"):
            LAYERS[name](plain)
    assert before > 0


def test_beam_search_refuses_scores_that_have_no_level_of_sources():
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        ids, plain = layers.data("ids", [None, 1], "int64"), layers.data("plain", [None, 3], lod_level=1)
        scores = layers.data("scores", [None, 1])
        expected = r"beam_search: input scores \(variable 'plain'\) has 1 LoD.*by 2 LoD"
        with pytest.raises(InvalidLoDError, match=expected):
            layers.beam_search(ids, scores, None, plain, beam_size=2, end_id=9, level=1)
        layers.beam_search(ids, scores, None, plain, beam_size=2, end_id=9, level=0)


def unpooled(lod_level):
    """A program as Paddle may have saved it: sequence_pool of a variable that is declared with so many LoD levels."""
    program = oprack.Program()
    with oprack.program_guard(program, oprack.Program()):
        y = layers.sequence_pool(layers.data("x", [None, 2], lod_level=1), "sum")
    program.global_block().vars["x"].lod_level = lod_level
    return oprack.Program.parse(program.serialize()), y.name


@pytest.mark.parametrize("prepared", [False, True])
def test_a_loaded_program_that_declares_none_runs(prepared):
    program, y = unpooled(0)
    x = LoDTensor(np.arange(6, dtype=np.float32).reshape(3, 2), [[0, 1, 3]])
    (out,) = oprack.Executor(prepared=prepared).run(program, {"x": x}, [y], Scope())
    np.testing.assert_array_equal(out, [[0, 1], [2 + 4, 3 + 5]])


def test_passes_leave_a_loaded_program_that_declares_none_alone():
    from oprack.ir import optimize

    program, y = unpooled(0)
    optimized = optimize(program.desc, Scope(), keep=[y], debug=True)
    assert [op.type for op in optimized.program.blocks[0].ops] == [op.type for op in program.desc.blocks[0].ops]


def test_a_run_without_lod_is_refused_by_the_shape_rule():
    program, y = unpooled(0)
    with pytest.raises(InvalidLoDError, match=r"sequence_pool: input X \(variable 'x'\) has no LoD.*LoDTensor\(array"):
        oprack.Executor().run(program, {"x": np.zeros((3, 2), np.float32)}, [y], Scope())


def test_an_eager_call_without_lod_is_refused():
    with pytest.raises(InvalidLoDError, match=r"sequence_pool: input X .* has no LoD"):
        F.sequence_pool(oprack.to_tensor(np.zeros((3, 2), np.float32)), pooltype="SUM")


def test_what_a_tensor_array_holds_keeps_its_lod_level():
    with oprack.program_guard(oprack.Program(), oprack.Program()):
        x = layers.data("x", [None, 2], lod_level=1)
        place = layers.fill_constant([1], "int64", 0)
        read = layers.array_read(layers.array_write(x, place), place)
        assert read.lod_level == 1
        layers.sequence_pool(read, "sum")
