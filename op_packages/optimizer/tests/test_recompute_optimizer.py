"""RecomputeOptimizer: the numbers of the optimizer alone, with values of the forward pass computed a second time."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import layers, optimizer
from oprack.errors import InvalidArgumentError, PreconditionNotMetError
from oprack.layers import unique_name

WIDTH = 16


def net(again: bool, drop: float = 0.0, blocks: int = 4) -> tuple[oprack.Program, oprack.Program, Any]:
    main, startup = oprack.Program(), oprack.Program()
    with unique_name.guard(), oprack.program_guard(main, startup):
        x, y = layers.data("x", [-1, WIDTH]), layers.data("y", [-1, 1], dtype="int64")
        h, kept = x, []
        for _ in range(blocks):
            t = layers.relu(layers.batch_norm(layers.fc(h, WIDTH, act="tanh")))
            t = layers.dropout(t, drop) if drop else t
            h = layers.elementwise_add(h, layers.fc(t, WIDTH))
            kept.append(h)
        loss = layers.mean(layers.softmax_with_cross_entropy(layers.fc(h, 5), y))
        trainer: Any = optimizer.Momentum(0.1, 0.9, grad_clip=optimizer.ClipGradByGlobalNorm(1.0))
        if again:
            trainer = optimizer.RecomputeOptimizer(trainer)
            trainer._set_checkpoints(kept)
        trainer.minimize(loss)
    return main, startup, loss


def feed(rows: int = 8) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    return {"x": random.standard_normal((rows, WIDTH)).astype("float32"), "y": random.integers(0, 5, (rows, 1))}


def trained(program: oprack.Program, startup: oprack.Program, loss: Any, steps: int = 3) -> dict[str, np.ndarray]:
    """The losses, and what outlives a run: parameters, their momentum, and running means."""
    executor, scope = oprack.Executor(seed=3), oprack.Scope()
    executor.run(startup, scope=scope)
    losses = [executor.run(program, feed=feed(), fetch_list=[loss], scope=scope)[0] for _ in range(steps)]
    lasting = {v.name: np.asarray(scope.get_var(v.name).get().array) for v in oprack.io.persistable_vars(program)}
    return {"losses": np.array(losses), **lasting}


def test_the_same_bits():
    plain, again = trained(*net(False)), trained(*net(True))
    assert plain.keys() == again.keys() and len(set(plain["losses"].reshape(-1).tolist())) == 3
    for name, value in plain.items():
        np.testing.assert_array_equal(again[name], value, name)


def test_what_is_computed_again():
    main, _, _ = net(True)
    ops = main.global_block().ops
    first = next(k for k, op in enumerate(ops) if op.type == "mean_grad")
    kinds = ("mul", "elementwise_add", "tanh", "batch_norm", "relu")
    again = [op.type for op in ops[first:] if op.type in kinds]
    # of each block all but the second product and the sums, of which gradients read the shapes
    assert again == list(kinds) * 4
    means = {n for op in ops[first:] if op.type == "batch_norm" for n in op.output("MeanOut")}
    assert all(name.endswith("@RECOMPUTED") for name in means)


def test_dropout_drops_the_same_elements_both_times_and_others_in_the_next_run():
    main, startup, _ = net(True, drop=0.5)
    executor, scope = oprack.Executor(seed=3), oprack.Scope()
    executor.run(startup, scope=scope)
    found = []
    for _ in range(2):
        names = [n for op in main.global_block().ops if op.type == "dropout" for n in op.output("Out")]
        assert sum(n.endswith("@RECOMPUTED") for n in names) == 4
        values = dict(zip(names, executor.run(main, feed=feed(), fetch_list=names, scope=scope), strict=True))
        for name, value in values.items():
            if name.endswith("@RECOMPUTED"):
                np.testing.assert_array_equal(value, values[name.removesuffix("@RECOMPUTED")])
        found.append(values[names[0]] == 0)
    assert (found[0] != found[1]).any()


def test_memory():
    peaks = []
    for again in (False, True):
        main, startup, loss = net(again, blocks=6)
        executor, scope = oprack.Executor(), oprack.Scope()
        with oprack.reference():
            executor.run(startup, scope=scope)
            executor.run(main, feed=feed(2000), fetch_list=[loss], scope=scope)
            tracemalloc.start()
            executor.run(main, feed=feed(2000), fetch_list=[loss], scope=scope)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 0.7 * peaks[0]


def test_what_can_not_be_run_again_stays():
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        x = layers.data("x", [-1, WIDTH])
        noise = layers.uniform_random_batch_size_like(x, [-1, WIDTH])
        counter = layers.create_global_var([1], 0.0, "float32", persistable=True)
        layers.increment(counter)
        h = layers.tanh(layers.elementwise_mul(layers.fc(x, WIDTH), layers.elementwise_mul(noise, counter)))
        out = layers.elementwise_mul(h, h)
        loss = layers.mean(layers.fc(out, 1))
        trainer = optimizer.RecomputeOptimizer(optimizer.SGD(0.1))
        trainer._set_checkpoints([out.name])
        trainer.minimize(loss)
    ops = [op.type for op in main.global_block().ops]
    assert ops.count("uniform_random_batch_size_like") == ops.count("increment") == 1
    assert ops.count("tanh") == 2


def test_checkpoints_that_are_none():
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        loss = layers.mean(layers.fc(layers.data("x", [-1, 2]), 1))
        trainer = optimizer.RecomputeOptimizer(optimizer.SGD(0.1))
        with pytest.raises(PreconditionNotMetError, match="no checkpoints are set"):
            trainer.minimize(loss)
        trainer._set_checkpoints(["x"])
        with pytest.raises(InvalidArgumentError, match=r"checkpoints \['x'\] are not computed"):
            trainer.minimize(loss)
