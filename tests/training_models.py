"""Small programs that train, built from ops, so that they need no pack's layers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import oprack
from oprack import ParamAttr, Program, layers, program_guard, unique_name


class Training(NamedTuple):
    """Programs of one model, its loss, and the optimizer when there is one."""

    main: Program
    startup: Program
    loss: Any
    optimizer: Any


def op(op_type: str, inputs: dict[str, Any], attrs: dict[str, Any] | None = None, out: str = "Out", *more: str) -> Any:
    """Append an op; returns the variable of output `out`. more: other outputs that it needs."""
    helper = layers.LayerHelper(op_type)
    outs = {slot: helper.create_variable_for_type_inference() for slot in (out, *more)}
    helper.append_op(op_type, inputs, outs, attrs)
    return outs[out]


def parameter(name: str, shape: list[int], dtype: str = "float32", **attr: Any) -> Any:
    return layers.LayerHelper("model").create_parameter(ParamAttr(name=name, **attr), shape, dtype)


def mean(x: Any) -> Any:
    return op("mean", {"X": x})


def regression(optimizer: Any = None, *, sparse: bool = False, dtype: str = "float32", **attr: Any) -> Training:
    """mean((x @ w + b + table[ids] - y)^2) with x [n, 3], y [n, 1]; sparse: with a table of 7 rows, else without.

    optimizer: None, or a function that makes one under the guards. attr: of parameter w.
    """
    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup):
        x, y = layers.data("x", [None, 3], dtype), layers.data("y", [None, 1], dtype)
        p = x @ parameter("w", [3, 1], dtype, **attr) + parameter("b", [1], dtype)
        if sparse:
            ids = layers.data("ids", [None, 1], "int64")
            p = p + op("lookup_table", {"Ids": ids, "W": parameter("table", [7, 1], dtype)}, {"is_sparse": True})
        d = p - y
        loss = mean(d * d)
        made = optimizer() if optimizer else None
        if made is not None:
            made.minimize(loss)
    return Training(main, startup, loss, made)


def dropout_mlp(optimizer: Any) -> Training:
    """Two layers with dropout between them; x [n, 4], label [n, 1] of 3 classes."""
    main, startup = Program(), Program()
    with unique_name.guard(), program_guard(main, startup):
        x, label = layers.data("x", [None, 4]), layers.data("label", [None, 1], "int64")
        h = op("relu", {"X": x @ parameter("w1", [4, 8]) + parameter("b1", [8])})
        h = op("dropout", {"X": h}, {"dropout_prob": 0.4}, "Out", "Mask")
        logits = h @ parameter("w2", [8, 3])
        entropy = op("softmax_with_cross_entropy", {"Logits": logits, "Label": label}, {}, "Loss", "Softmax")
        loss = mean(entropy)
        made = optimizer()
        made.minimize(loss)
    return Training(main, startup, loss, made)


def feeds(training: Training, step: int, rows: int = 8) -> dict[str, np.ndarray]:
    """A batch of its own for every step, for all variables that the program is fed."""
    rng = np.random.default_rng(step)
    batch: dict[str, np.ndarray] = {}
    for var in training.main.global_block().vars.values():
        if not var.need_check_feed:
            continue
        shape = [rows if d < 0 else d for d in var.shape or ()]
        dtype = var.dtype_name()
        batch[var.name] = rng.integers(0, 3, shape) if dtype == "int64" else rng.normal(size=shape).astype(dtype)
    return batch


def train(training: Training, exe: Any, scope: Any, steps: range) -> list[float]:
    """Losses of the steps; schedules go on after each."""
    losses = []
    for step in steps:
        (loss,) = exe.run(training.main, feeds(training, step), [training.loss], scope)
        losses.append(float(loss))
        for schedule in training.main.schedules.values():
            schedule.step()
    return losses


def state(training: Training, scope: Any) -> dict[str, np.ndarray]:
    """Values of all persistable variables."""
    return {v.name: np.array(scope.get_var(v.name).get()) for v in training.main.list_vars() if v.persistable}


def started(training: Training, **options: Any) -> tuple[Any, Any]:
    """(executor, scope) after the startup program."""
    exe, scope = oprack.Executor(**options), oprack.Scope()
    exe.run(training.startup, scope=scope)
    return exe, scope
