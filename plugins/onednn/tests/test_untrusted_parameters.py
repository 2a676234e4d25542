"""Programs whose parameters or feeds do not fit an op: the reference path's answer, with this library as without it."""

from __future__ import annotations

import numpy as np
import oprack
import pytest
from oprack.errors import InvalidArgumentError, OprackError

CHANNELS = 64
SHAPES = {"X": (2, CHANNELS, 8, 8), "Y@GRAD": (2, CHANNELS, 8, 8)}


def ones(*shape, dtype="float32"):
    return np.ones(shape, dtype)


def program_of(op_type, slots, outputs, attrs):
    program = oprack.Program()
    block = program.desc.blocks[0]
    for slot, array in slots.items():
        block.create_var(slot, dtype=array.dtype.name, shape=[-1] * array.ndim)
    for slot in outputs:
        block.create_var(f"{slot}/made", dtype="float32")
    block.append_op(op_type, {s: s for s in slots}, {s: f"{s}/made" for s in outputs}, attrs)
    return program


def answers(op_type, slots, outputs, **attrs):
    """What each of four executors says, oneDNN's first: its results, or the class of its error."""
    program, found = program_of(op_type, slots, outputs, attrs), []
    for excluded in ((), ("onednn",)):
        for prepared in (False, True):
            executor = oprack.Executor(prepared=prepared, excluded_libraries=excluded)
            for _ in range(2):
                try:
                    got = executor.run(program, slots, [f"{s}/made" for s in outputs], oprack.Scope())
                except OprackError as error:
                    got = type(error)
            found.append(got)
    return found


def all_alike(found):
    first, *others = found
    for other in others:
        if isinstance(first, type) or isinstance(other, type):
            assert first is other
            continue
        for a, b in zip(first, other, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)
    return first


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float64", "int64"])
@pytest.mark.parametrize("slot", ["Scale", "Bias"])
def test_layer_norm_with_a_parameter_of_another_dtype(slot, dtype):
    x = np.random.default_rng(0).standard_normal((3, 1000), dtype=np.float32)
    y, _ = all_alike(answers("layer_norm", {"X": x, slot: ones(1000, dtype=dtype)}, ["Y", "Mean"], begin_norm_axis=1))
    want = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5) + (slot == "Bias")
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("is_test", [False, True])
@pytest.mark.parametrize("slot", ["Scale", "Bias", "Mean", "Variance"])
def test_batch_norm_with_a_parameter_of_another_dtype(slot, is_test):
    slots = {"X": ones(*SHAPES["X"]), **{s: ones(CHANNELS) for s in ("Scale", "Bias", "Mean", "Variance")}}
    all_alike(answers("batch_norm", slots | {slot: slots[slot].astype("uint8")}, ["Y"], is_test=is_test))


@pytest.mark.parametrize("size", [0, 1, CHANNELS // 2, 2 * CHANNELS])
@pytest.mark.parametrize("slot", ["Scale", "SavedMean", "SavedVariance"])
def test_gradient_of_batch_norm_with_a_parameter_of_another_size(slot, size):
    slots = {s: ones(*shape) for s, shape in SHAPES.items()}
    slots |= {s: ones(CHANNELS) for s in ("Scale", "Bias", "SavedMean", "SavedVariance")} | {slot: ones(size)}
    assert all_alike(answers("batch_norm_grad", slots, ["X@GRAD", "Scale@GRAD"])) is InvalidArgumentError


@pytest.mark.parametrize("slot", ["Scale", "Mean", "Variance", "Y@GRAD"])
def test_gradient_of_layer_norm_with_a_parameter_of_another_size(slot):
    slots = {"X": ones(64, 128), "Y@GRAD": ones(64, 128), "Scale": ones(128), "Mean": ones(64), "Variance": ones(64)}
    slots[slot] = slots[slot][: len(slots[slot]) // 2]
    given = answers("layer_norm_grad", slots, ["X@GRAD", "Scale@GRAD"], begin_norm_axis=1)
    assert all_alike(given) is InvalidArgumentError


@pytest.mark.parametrize("columns", [3, 48, 192])
@pytest.mark.parametrize("op_type, gates", [("gru", 3), ("lstm", 4)])
def test_recurrent_ops_with_a_weight_of_another_size(op_type, gates, columns):
    slots = {"Weight": ones(32, columns), "Bias": ones(1, 32 * gates)}
    program = program_of(op_type, {"Input": ones(6, 32 * gates), **slots}, ["Hidden"], {})
    x = oprack.LoDTensor(ones(6, 32 * gates), [[0, 2, 6]])
    for excluded in ((), ("onednn",)):
        executor = oprack.Executor(excluded_libraries=excluded)
        with pytest.raises(InvalidArgumentError, match=rf"Weight has shape \[32, {columns}\]"):
            executor.run(program, {"Input": x, **slots}, ["Hidden/made"], oprack.Scope())


@pytest.mark.parametrize("size", [1, 2, 2048, 8192])
def test_a_chain_that_ran_gets_a_bias_of_another_size(size):
    program = program_of("layer_norm", {"X": ones(2, 4096), "Bias": ones(1)}, ["Y", "Mean"], {"begin_norm_axis": 1})
    outcomes = []
    for excluded in ((), ("onednn",)):
        executor = oprack.Executor(excluded_libraries=excluded)
        for n in (4096, size):
            try:
                feed = {"X": np.zeros((2, 4096), np.float32), "Bias": np.zeros(n, np.float32)}
                (y,) = executor.run(program, feed, ["Y/made"], oprack.Scope())
                outcomes.append(not y.any())
            except OprackError as error:
                outcomes.append(type(error))
    assert outcomes[:2] == outcomes[2:] and outcomes[0] is True and outcomes[1] is not False


def test_a_filter_that_is_fed_may_change_between_runs_though_it_is_read_only(any_size):
    program = program_of("conv2d", {"Input": ones(2, 3, 8, 8), "Filter": ones(4, 3, 3, 3)}, ["Output"], {})
    random = np.random.default_rng(0)
    x, filters = (random.standard_normal(shape, dtype=np.float32) for shape in ((2, 3, 8, 8), (4, 3, 3, 3)))
    served, plain = oprack.Executor(), oprack.Executor(prepared=False, excluded_libraries=["onednn"])
    for _ in range(4):
        filters.flags.writeable = False
        feed = {"Input": x, "Filter": filters}
        got, want = (e.run(program, feed, ["Output/made"], oprack.Scope())[0] for e in (served, plain))
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
        filters.flags.writeable = True
        filters *= -1.5
