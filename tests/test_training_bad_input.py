"""Mistakes in training: each has an error class of its own, and a message that names the thing and the fix."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import Executor, LoDTensor, Program, Scope, layers, optimizer, program_guard, unique_name
from oprack.errors import (
    CheckpointMismatchError,
    CorruptCheckpointError,
    InvalidArgumentError,
    NanInfError,
    NotDifferentiableError,
    PreconditionNotMetError,
)
from oprack.io import load_checkpoint, save_checkpoint
from oprack.runtime import Checks


class Guarded:
    """Programs that are being built, under the guards of the fixture."""

    def __init__(self) -> None:
        self.main, self.startup, self.scope = Program(), Program(), Scope()

    def run(self, feed: dict[str, Any], *fetch: Any, **options: Any) -> list[Any]:
        exe = Executor(**options)
        exe.run(self.startup, scope=self.scope)
        return exe.run(self.main, feed, list(fetch), self.scope)


@pytest.fixture
def programs() -> Any:
    made = Guarded()
    with unique_name.guard(), program_guard(made.main, made.startup):
        yield made


def _classifier(classes: int = 3) -> tuple[Any, Any]:
    """(logits, label) of one layer."""
    x, label = layers.data("x", [None, 4]), layers.data("label", [None, 1], "int64")
    return layers.fc(x, classes, param_attr="w", bias_attr="b"), label


def _message(caught: Any) -> str:
    return re.sub(r"\s+", " ", str(caught.value))


# Building -----------------------------------------------------------------------------------------------------------
def test_loss_of_several_elements(programs: Guarded) -> None:
    logits, label = _classifier()
    loss = layers.softmax_with_cross_entropy(logits, label)
    with pytest.raises(InvalidArgumentError) as caught:
        optimizer.SGD(0.1).minimize(loss)
    message = _message(caught)
    assert f"loss '{loss.name}' is float32[-1, 1]; expected one floating element, so reduce it first" in message
    assert "layers.mean(loss)" in message and f'File "{__file__}"' in message
    assert programs.main.op_types().isdisjoint({"sgd", "fill_constant"}), "nothing was appended"


def test_loss_that_depends_on_no_parameter(programs: Guarded) -> None:
    logits, _ = _classifier()
    loss = layers.mean(logits.detach())
    with pytest.raises(PreconditionNotMetError) as caught:
        optimizer.SGD(0.1).minimize(loss)
    assert (
        f"loss '{loss.name}' depends on none of the parameters w, b; check that the layers between them are not cut by "
        "stop_gradient or no_grad_set"
    ) in _message(caught)


def test_path_without_gradient(programs: Guarded) -> None:
    """A second derivative that no pack brings: the message shows the way from the op to the loss."""
    w = layers.create_parameter([3], "float32", attr="w")
    (g,) = oprack.gradients(layers.hard_swish(w), w)
    with pytest.raises(NotDifferentiableError) as caught:
        optimizer.SGD(0.1).minimize(layers.mean(g))
    message = _message(caught)
    assert "op hard_swish_grad (pack oprack-nn) has no gradient, but lies on the path to mean_0.tmp_0" in message
    assert "hard_swish_grad -> w@GRAD -> mean -> mean_0.tmp_0; give it a make_grad" in message


def test_parameter_of_another_program(programs: Guarded) -> None:
    logits, label = _classifier()
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
    other = Guarded()
    with program_guard(other.main, other.startup):
        foreign = layers.create_parameter([4, 3], "float32", attr="w")
    with pytest.raises(InvalidArgumentError) as caught:
        optimizer.SGD(0.1).minimize(loss, parameter_list=[foreign])
    assert (
        f"SGD: parameter 'w' is of another program than loss '{loss.name}'; pass parameters of the loss's program"
    ) in _message(caught)


def test_optimizer_of_another_program(programs: Guarded) -> None:
    adam = optimizer.Adam(0.1)
    adam.minimize(layers.mean(_classifier()[0]))
    other = Guarded()
    with unique_name.guard(), program_guard(other.main, other.startup):
        loss = layers.mean(_classifier()[0])
        with pytest.raises(InvalidArgumentError) as caught:
            adam.minimize(loss)
    message = _message(caught)
    assert "Adam: this optimizer trains another program" in message and "the state of its parameters b, w" in message
    assert "make an optimizer of its own for each program" in message
    assert "adam" not in other.main.op_types()


def test_variable_of_another_program(programs: Guarded) -> None:
    logits, _ = _classifier()
    with program_guard(Program(), Program()), pytest.raises(InvalidArgumentError) as caught:
        layers.mean(logits)
    assert f"input X is variable '{logits.name}' of another program" in _message(caught)


def test_input_that_is_overwritten_before_its_gradient_is_computed(programs: Guarded) -> None:
    """exp needs its output for the gradient, but an op in place changes it."""
    w = layers.create_parameter([3], "float32", attr="w")
    y = layers.exp(w)
    layers.append_op("scale", {"X": y}, {"Out": y}, {"scale": 2.0})
    with pytest.raises(InvalidArgumentError) as caught:
        optimizer.SGD(0.1).minimize(layers.mean(y))
    message = _message(caught)
    assert f"op exp: its gradient exp_grad needs Out, variable '{y.name}', but op scale" in message
    assert re.search("overwrites it in place.*; let that op write to a variable of its own", message)


# Running ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("prepared", [False, True])
def test_sequences_that_do_not_match(programs: Guarded, prepared: bool) -> None:
    """sequence_expand_as: x has 2 rows, but y has 3 sequences."""
    x, y = layers.data("x", [None, 2], lod_level=1), layers.data("y", [None, 1], lod_level=1)
    x.stop_gradient = False
    loss = layers.mean(layers.sequence_concat([x, layers.fc(y, 2)]))
    optimizer.SGD(0.1).minimize(loss)
    feed = {
        "x": LoDTensor(np.ones((2, 2), np.float32), [[0, 1, 2]]),
        "y": LoDTensor(np.ones((3, 1), np.float32), [[0, 1, 2, 3]]),
    }
    with pytest.raises(InvalidArgumentError) as caught:
        programs.run(feed, loss, prepared=prepared)
    message = _message(caught)
    assert "op sequence_concat" in message and "lod=[[0, 1, 2]]" in message and "lod=[[0, 1, 2, 3]]" in message
    assert f'created by File "{__file__}"' in message


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("label", [3, -5])
def test_label_out_of_range(programs: Guarded, label: int, prepared: bool) -> None:
    logits, labels = _classifier()
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, labels))
    optimizer.SGD(0.1).minimize(loss)
    feed = {"x": np.ones((2, 4), np.float32), "label": np.array([[0], [label]])}
    with pytest.raises(InvalidArgumentError) as caught:
        programs.run(feed, loss, prepared=prepared)
    message = _message(caught)
    assert "op softmax_with_cross_entropy" in message and str(label) in message
    assert "Label = 'label': int64[2, 1]" in message


@pytest.mark.parametrize("prepared", [False, True])
def test_row_of_an_embedding_out_of_range(programs: Guarded, prepared: bool) -> None:
    ids = layers.data("ids", [None, 1], "int64")
    loss = layers.mean(layers.embedding(ids, [5, 2], is_sparse=True, param_attr="table"))
    optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(InvalidArgumentError) as caught:
        programs.run({"ids": np.array([[1], [5]])}, loss, prepared=prepared)
    message = _message(caught)
    assert "op lookup_table" in message and "5" in message and "W = 'table': float32[5, 2]" in message


@pytest.mark.parametrize("prepared", [False, True])
def test_the_first_op_that_made_a_nan(programs: Guarded, prepared: bool) -> None:
    """The check names the op that made it, not the loss, and the line that created the op."""
    x = layers.data("x", [None, 2])
    hidden = layers.fc(x, 2, param_attr="w")
    bad = layers.log(hidden - hidden)
    loss = layers.mean(bad * layers.relu(bad))
    optimizer.SGD(0.1).minimize(loss)
    feed = {"x": np.ones((1, 2), np.float32)}
    assert np.isnan(programs.run(feed, loss, prepared=prepared)[0])
    with pytest.raises(NanInfError) as caught:
        programs.run(feed, loss, prepared=prepared, checks=Checks(nan_inf=True))
    message = _message(caught)
    assert f"op log: output Out (variable '{bad.name}') has 2 of 2 elements that are NaN or infinite" in message
    assert "look at its inputs: op log, number" in message and f'created by File "{__file__}"' in message


def test_nan_in_a_gradient(programs: Guarded) -> None:
    """The forward pass is finite, the gradient of sqrt at 0 is not; it is found also in SelectedRows."""
    ids = layers.data("ids", [None, 1], "int64")
    attr = oprack.ParamAttr(name="table", initializer=oprack.initializer.Constant(0.0))
    rows = layers.embedding(ids, [5, 2], is_sparse=True, param_attr=attr)
    loss = layers.mean(layers.sqrt(rows))
    optimizer.SGD(0.1).minimize(loss)
    with pytest.raises(NanInfError, match=r"op sqrt_grad: output X@GRAD .* 2 of 2 elements that are NaN or infinite"):
        programs.run({"ids": np.array([[1]])}, loss, checks=Checks(nan_inf=True))


def test_training_before_the_startup_program(programs: Guarded) -> None:
    logits, label = _classifier()
    loss = layers.mean(layers.softmax_with_cross_entropy(logits, label))
    optimizer.Adam(0.1).minimize(loss)
    feed = {"x": np.ones((2, 4), np.float32), "label": np.zeros((2, 1), np.int64)}
    with pytest.raises(
        PreconditionNotMetError, match=r"'w'\) holds no value.*for a parameter, run the startup program"
    ):
        Executor().run(programs.main, feed, [loss], programs.scope)


# Checkpoints --------------------------------------------------------------------------------------------------------
def test_checkpoint_of_another_program(programs: Guarded, tmp_path: Path) -> None:
    loss = layers.mean(_classifier()[0])
    optimizer.Adam(0.1).minimize(loss)
    programs.run({"x": np.ones((1, 4), np.float32)}, loss)
    save_checkpoint(tmp_path, programs.main, programs.scope)
    other = Guarded()
    with unique_name.guard(), program_guard(other.main, other.startup):
        optimizer.SGD(0.1).minimize(layers.mean(_classifier(classes=5)[0]))
    with pytest.raises(CheckpointMismatchError) as caught:
        load_checkpoint(tmp_path, other.main, other.scope)
    message = _message(caught)
    assert "8 in the checkpoint alone: 'b_beta1_pow_acc_0'" in message
    assert (
        "2 of another kind: 'b' is float32[3], in the program float32[5], 'w' is float32[4, 3], in the program "
        "float32[4, 5]"
    ) in message
    assert other.scope.local_var_names() == []


def test_truncated_checkpoint(programs: Guarded, tmp_path: Path) -> None:
    loss = layers.mean(_classifier()[0])
    optimizer.Adam(0.1).minimize(loss)
    programs.run({"x": np.ones((1, 4), np.float32)}, loss)
    values = save_checkpoint(tmp_path, programs.main, programs.scope) / "values.bin"
    size = values.stat().st_size
    with open(values, "rb+") as file:
        file.truncate(size // 2)
    scope = Scope()
    with pytest.raises(CorruptCheckpointError) as caught:
        load_checkpoint(tmp_path, programs.main, scope)
    assert f"values.bin' has {size // 2} bytes; its manifest says {size}" in _message(caught)
    assert scope.local_var_names() == []
