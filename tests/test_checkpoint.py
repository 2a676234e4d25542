"""Checkpoints: training goes on bit by bit, nothing half written or half loaded, clear refusals."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oprack import Executor, Program, Scope, SelectedRows, checkpoint, optimizer
from oprack.checkpoint.manifest import unseal
from oprack.errors import (
    CheckpointError,
    CheckpointMismatchError,
    CorruptCheckpointError,
    InvalidArgumentError,
    MissingParameterError,
    NotFoundError,
)
from oprack.io import latest_checkpoint, load_checkpoint, save_checkpoint
from training_models import Training, dropout_mlp, regression, started, state, train

SCRIPT = Path(__file__).with_name("killed_saves.py")


def _model() -> Training:
    decay = optimizer.lr.StepDecay(0.05, step_size=3, gamma=0.5)
    return dropout_mlp(lambda: optimizer.Adam(decay))


@pytest.mark.parametrize("prepared", [False, True])
def test_training_goes_on_bit_by_bit(tmp_path: Path, prepared: bool) -> None:
    """Dropout, Adam's moments and powers, and the schedule: ten steps equal five, a checkpoint and five."""
    whole = _model()
    exe, scope = started(whole, prepared=prepared, seed=3)
    losses = train(whole, exe, scope, range(5))
    save_checkpoint(tmp_path, whole.main, scope, step=5, executor=exe, extra={"best": 0.25, "names": ["a"]})
    losses += train(whole, exe, scope, range(5, 10))

    resumed = _model()
    new_exe, new_scope = Executor(prepared=prepared), Scope()
    found = load_checkpoint(tmp_path, resumed.main, new_scope, new_exe)
    assert (found.step, found.extra) == (5, {"best": 0.25, "names": ["a"]})
    again = train(resumed, new_exe, new_scope, range(found.step, 10))
    assert again == losses[5:]
    want, got = state(whole, scope), state(resumed, new_scope)
    assert want.keys() == got.keys() and len(want) == 16
    assert [n for n in want if want[n].tobytes() != got[n].tobytes()] == []
    assert resumed.optimizer.get_lr() == whole.optimizer.get_lr() == 0.05 * 0.5**3
    # without the random state dropout draws other numbers, so the test above can fail
    other_exe, other_scope = Executor(prepared=prepared, seed=4), Scope()
    load_checkpoint(tmp_path, _model().main, other_scope)
    assert train(_model(), other_exe, other_scope, range(5, 10)) != losses[5:]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_killed_save_leaves_the_checkpoint_before(tmp_path: Path) -> None:
    """SIGKILL before each file operation of a save, and 15 times at random while saving over and over."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    run = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    counts = json.loads(run.stdout)
    assert counts["operations"] > 20 and counts["times"] == 15
    assert counts["kept"] == ["ckpt", "ckpt", "latest"], "the next save removes what killed ones left"


def test_a_reader_whose_checkpoint_is_removed_takes_the_newer_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other processes save with keep=1 while one loads, twice before and once after it read the manifest."""
    model = regression(lambda: optimizer.SGD(0.1))
    _, scope = started(model)
    save_checkpoint(tmp_path, model.main, scope, step=0)
    steps = iter((1, 2))

    def saves_first(path: Path) -> Any:
        for step in steps:
            save_checkpoint(tmp_path, model.main, scope, step=step, keep=1)
            break
        return unseal(path)

    def saves_then(path: Path) -> Any:
        body = unseal(path)
        for step in steps:
            save_checkpoint(tmp_path, model.main, scope, step=step, keep=1)
            break
        return body

    for spoiled, last in ((saves_first, 2), (saves_then, 3)):
        monkeypatch.setattr(checkpoint, "unseal", spoiled)
        assert load_checkpoint(tmp_path, model.main, Scope()).step == last
        steps = iter((3,))


def test_the_last_k_are_kept(tmp_path: Path) -> None:
    model = regression(lambda: optimizer.SGD(0.1))
    _, scope = started(model)
    for step in range(5):
        save_checkpoint(tmp_path, model.main, scope, step=step, keep=2)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ckpt-4", "ckpt-5", "latest"]
    assert latest_checkpoint(tmp_path) == tmp_path / "ckpt-5"
    assert load_checkpoint(tmp_path / "ckpt-4", model.main, scope).step == 3
    (tmp_path / "latest").write_text("ckpt-4\n")
    assert load_checkpoint(tmp_path, model.main, scope).step == 3
    (tmp_path / "latest").unlink()
    assert load_checkpoint(tmp_path, model.main, scope).step == 4


def test_kinds_of_values(tmp_path: Path) -> None:
    """SelectedRows, float64, int64, bool, 0-D and empty tensors come back as they were."""
    from oprack.types import VarType

    values = {
        "rows": SelectedRows([3, 0, 3], np.arange(6, dtype=np.float32).reshape(3, 2), 5),
        "float64": np.linspace(0, 1, 3),
        "counter": np.array([2**40], np.int64),
        "flag": np.array([True, False]),
        "scalar": np.float32(0.1).reshape(()),
        "empty": np.zeros((0, 4), np.float32),
    }
    program, scope = Program(), Scope()
    for name, value in values.items():
        kind = VarType.SELECTED_ROWS if name == "rows" else VarType.LOD_TENSOR
        shape = list(value.shape)
        program.global_block().create_var(name, dtype=value.dtype, shape=shape, type=kind, persistable=True)
        scope.var(name).set(value)
    save_checkpoint(tmp_path, program, scope)
    loaded = Scope()
    load_checkpoint(tmp_path, program, loaded)
    rows = loaded.get_var("rows").get()
    assert rows.rows.tolist() == [3, 0, 3] and rows.height == 5
    np.testing.assert_array_equal(rows.value, values["rows"].value)
    for name in list(values)[1:]:
        got = loaded.get_var(name).get().array
        assert got.dtype == values[name].dtype and got.shape == values[name].shape
        np.testing.assert_array_equal(got, values[name])


# Refusals -----------------------------------------------------------------------------------------------------------
@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, Training, Any]:
    """Directory of one checkpoint, its model, and a scope with other values."""
    model = regression(lambda: optimizer.Adam(0.1))
    _, scope = started(model)
    directory = save_checkpoint(tmp_path, model.main, scope, step=1)
    for var in model.main.list_vars():
        if var.persistable:
            scope.var(var.name).set(np.full(var.shape, 7, np.float32))
    return directory, model, scope


def _untouched(model: Training, scope: Any) -> bool:
    return all((value == 7).all() for value in state(model, scope).values())


@pytest.mark.parametrize("name", ["values.bin", "manifest.json"])
@pytest.mark.parametrize("damage", ["truncated", "altered", "longer", "missing", "empty"])
def test_damaged(saved: tuple[Path, Training, Any], name: str, damage: str) -> None:
    """Every kind of damage is found before a variable is set."""
    directory, model, scope = saved
    path = directory / name
    data = path.read_bytes()
    middle = len(data) // 2
    if damage == "missing":
        path.unlink()
    else:
        altered = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes({"truncated": data[:-3], "altered": altered, "longer": data + b"x", "empty": b""}[damage])
    with pytest.raises(CorruptCheckpointError, match=rf"{re.escape(name)}.*take another checkpoint"):
        load_checkpoint(directory.parent, model.main, scope)
    assert _untouched(model, scope)


def test_every_altered_byte_is_found(saved: tuple[Path, Training, Any]) -> None:
    directory, model, scope = saved
    for name in ("values.bin", "manifest.json"):
        path = directory / name
        data = path.read_bytes()
        for i in range(0, len(data), 37):
            path.write_bytes(data[:i] + bytes([data[i] ^ 0x20]) + data[i + 1 :])
            with pytest.raises(CheckpointError):
                load_checkpoint(directory, model.main, scope)
        path.write_bytes(data)
    assert _untouched(model, scope)
    assert load_checkpoint(directory, model.main, scope).step == 1


def test_another_program(saved: tuple[Path, Training, Any]) -> None:
    """All differences at once: what only one side has, and what differs in shape or dtype."""
    directory, _, _ = saved
    other = regression(lambda: optimizer.Momentum(0.1), sparse=True)
    _, scope = started(other)
    other.main.global_block().var("w").shape = (4, 1)
    before = state(other, scope)
    with pytest.raises(CheckpointMismatchError) as caught:
        load_checkpoint(directory, other.main, scope)
    message = str(caught.value)
    for part in (
        "checkpoint of another program",
        "4 in the program alone: 'b_velocity_0', 'table', 'table_velocity_0', 'w_velocity_0'",
        "8 in the checkpoint alone: 'b_beta1_pow_acc_0'",
        "1 of another kind: 'w' is float32[3, 1], in the program float32[4, 1]",
        "Nothing was changed",
    ):
        assert part in message
    after = state(other, scope)
    assert all(np.array_equal(before[n], after[n]) for n in before)


def test_schedules_of_another_program(saved: tuple[Path, Training, Any]) -> None:
    directory, _, _ = saved
    other = regression(lambda: optimizer.Adam(optimizer.lr.StepDecay(0.1, 3)))
    with pytest.raises(CheckpointMismatchError, match="1 schedules without a state: 'learning_rate_0'"):
        load_checkpoint(directory, other.main, Scope())


def test_state_of_another_schedule(tmp_path: Path) -> None:
    """A scheduler that refuses its state leaves variables and the other states alone."""
    model = regression(lambda: optimizer.Adam(optimizer.lr.StepDecay(0.1, 3)))
    exe, scope = started(model)
    save_checkpoint(tmp_path, model.main, scope, executor=exe)
    other = regression(lambda: optimizer.Adam(optimizer.lr.ReduceOnPlateau(0.1)))
    with pytest.raises(CheckpointMismatchError, match=r"ReduceOnPlateau: the state has no best.*nothing was changed"):
        load_checkpoint(tmp_path, other.main, scope)


def test_nothing_to_load(tmp_path: Path) -> None:
    model = regression(lambda: optimizer.SGD(0.1))
    with pytest.raises(NotFoundError, match="holds no checkpoint; expected a directory that save_checkpoint wrote"):
        load_checkpoint(tmp_path / "none", model.main, Scope())
    (tmp_path / "latest").write_text("../../etc\n")
    with pytest.raises(CorruptCheckpointError, match=r"names '\.\./\.\./etc'; expected a name such as 'ckpt-3'"):
        load_checkpoint(tmp_path, model.main, Scope())


def test_newer_format(saved: tuple[Path, Training, Any]) -> None:
    directory, model, scope = saved
    path = directory / "manifest.json"
    path.write_text(path.read_text().replace('"oprack_checkpoint": 1', '"oprack_checkpoint": 2', 1))
    with pytest.raises(CheckpointError, match="has format 2; expected 1"):
        load_checkpoint(directory, model.main, scope)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {},
        {"step": "1", "extra": {}, "schedules": {}, "variables": [], "random": None},
        {"step": 1, "extra": {}, "schedules": {}, "variables": [{"name": "w"}], "random": None},
        {"step": 1, "extra": {}, "schedules": {}, "variables": [], "random": 3},
        {
            "step": 1,
            "extra": {},
            "schedules": {},
            "random": None,
            "variables": [
                {"name": "w", "kind": "dense", "dtype": "float32", "shape": [1], "sha256": "", "offset": 9, "size": 1}
            ],
        },
    ],
)
def test_hostile_manifest(saved: tuple[Path, Training, Any], body: Any) -> None:
    """A manifest with a right checksum but without what is read of it."""
    from oprack.checkpoint.manifest import seal

    directory, model, scope = saved
    (directory / "manifest.json").write_bytes(seal(body))
    with pytest.raises(CorruptCheckpointError, match="is not as save_checkpoint writes it: "):
        load_checkpoint(directory, model.main, scope)
    assert _untouched(model, scope)


def test_unsavable(tmp_path: Path) -> None:
    """Older checkpoints stay as they were when a save is refused."""
    model = regression(lambda: optimizer.SGD(0.1))
    with pytest.raises(MissingParameterError, match="'b', 'learning_rate_0', 'w'; run the startup program"):
        save_checkpoint(tmp_path, model.main, Scope())
    _, scope = started(model)
    with pytest.raises(InvalidArgumentError, match=r"extra\['a'\]\[1\] is ndarray .* convert an array with \.tolist"):
        save_checkpoint(tmp_path, model.main, scope, extra={"a": [1, np.ones(2)]})
    with pytest.raises(InvalidArgumentError, match=r"extra is dict .*a dict with str keys"):
        save_checkpoint(tmp_path, model.main, scope, extra={1: 2})
    with pytest.raises(InvalidArgumentError, match="keep is 0; expected 1 or more"):
        save_checkpoint(tmp_path, model.main, scope, keep=0)
    scope.var("w").set(np.ones((2, 2), np.float32))
    with pytest.raises(InvalidArgumentError, match=r"'w': got float32\[2, 2\]"):
        save_checkpoint(tmp_path, model.main, scope)
    assert list(tmp_path.iterdir()) == []
