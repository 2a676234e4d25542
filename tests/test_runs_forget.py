"""A later run is as good as a first one: shape rules are asked again, and nothing of the run before is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
import pytest
from oprack import inference
from oprack.errors import InvalidArgumentError, MemoryLimitError


def declared(**shapes: list[int]) -> tuple[oprack.Program, Any]:
    program = oprack.Program()
    block = program.desc.blocks[0]
    for name, shape in shapes.items():
        block.create_var(name, dtype="float32", shape=shape)
    return program, block


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, list[int]], dict[str, tuple[int, ...]], list[Any]]] = {
    "layer_norm": (
        {"X": "x", "Bias": "b"},
        {"begin_norm_axis": 1, "epsilon": 1e-5},
        {"x": [-1, 4096], "b": [-1]},
        {"x": (2, 4096), "b": (4096,)},
        [{"b": (n,)} for n in (1, 2, 3, 2048, 8192)],
    ),
    "batch_norm": (
        {"X": "x", "Scale": "b", "Bias": "b", "Mean": "b", "Variance": "b"},
        {"is_test": True, "epsilon": 1e-5},
        {"x": [-1, 6, 2, 2], "b": [-1]},
        {"x": (2, 6, 2, 2), "b": (6,)},
        [{"b": (1,)}, {"b": (2,)}],
    ),
    "mul": ({"X": "x", "Y": "w"}, {}, {"x": [-1, 6], "w": [-1, 3]}, {"x": (2, 6), "w": (6, 3)}, [{"w": (5, 3)}]),
    "huber_loss": (
        {"X": "x", "Y": "y"},
        {"delta": 1.0},
        {"x": [-1, 1], "y": [-1, 1]},
        {"x": (4, 1), "y": (4, 1)},
        [{"y": (1, 1)}, {"x": (1, 1)}],
    ),
    "silu_grad": (
        {"X": "x", "Out": "y", "Out@GRAD": "g"},
        {},
        {"x": [-1, 3], "y": [-1, 3], "g": [-1, 3]},
        {"x": (2, 3), "y": (2, 3), "g": (2, 3)},
        [{"y": (1, 3)}, {"g": (1, 3)}],
    ),
}


@pytest.mark.parametrize("libraries", [(), ("onednn",)], ids=["all libraries", "NumPy"])
@pytest.mark.parametrize("op", list(CASES))
def test_shapes_that_the_rule_refuses_are_refused_after_a_good_run(op: str, libraries: tuple[str, ...]) -> None:
    inputs, attrs, dims, good, bad = CASES[op]
    proto = oprack.op_info(op).proto
    outs = {slot: f"out{i}" for i, slot in enumerate(s for s in proto.outputs if s not in ("ReserveSpace",))}
    program, block = declared(**dims, **{n: [-1] for n in outs.values()})
    block.append_op(op, inputs, outs, attrs)
    plan = oprack.Executor(excluded_libraries=libraries)
    reference = oprack.Executor(excluded_libraries=libraries, prepared=False)

    def run(exe: oprack.Executor, shapes: dict[str, tuple[int, ...]]) -> Any:
        return exe.run(program, {n: ones(*s) for n, s in shapes.items()}, [outs[next(iter(outs))]], oprack.Scope())

    for changed in bad:
        (expected,), (found,) = run(reference, good), run(plan, good)
        np.testing.assert_allclose(found, expected, atol=1e-6)
        texts = []
        for exe in (reference, plan):
            with pytest.raises(InvalidArgumentError, match=f"op {op}: ") as error:
                run(exe, good | changed)
            texts.append(str(error.value))
        assert texts[0] == texts[1]


def loop() -> bytes:
    """y = x written n times to an array, which is stacked."""
    program = oprack.Program()
    b = program.desc.blocks[0]
    b.create_var("feed", type=9, persistable=True)
    b.create_var("fetch", type=10, persistable=True)
    for name, dtype, shape in (
        ("x", "float32", [-1, 2]),
        ("n", "int64", [1]),
        ("i", "int64", [1]),
        ("c", "bool", [1]),
        ("y", "float32", [-1, -1, 2]),
        ("idx", "int32", [-1]),
    ):
        b.create_var(name, dtype=dtype, shape=shape)
    b.create_var("arr", type=13, dtype="float32", shape=[-1, 2])
    b.create_var("s", type=11)
    b.append_op("feed", {"X": "feed"}, {"Out": "x"}, {"col": 0})
    b.append_op("feed", {"X": "feed"}, {"Out": "n"}, {"col": 1})
    b.append_op("fill_constant", {}, {"Out": "i"}, {"shape": [1], "dtype": 3, "value": 0.0})
    b.append_op("less_than", {"X": "i", "Y": "n"}, {"Out": "c"}, {"axis": -1})
    body = program.desc.append_block(b)
    body.append_op("write_to_array", {"X": "x", "I": "i"}, {"Out": "arr"})
    body.append_op("increment", {"X": "i"}, {"Out": "i"}, {"step": 1.0})
    body.append_op("less_than", {"X": "i", "Y": "n"}, {"Out": "c"}, {"axis": -1})
    outs = {"Out": ["i", "arr"], "StepScopes": "s"}
    b.append_op("while", {"X": ["x", "i", "n"], "Condition": "c"}, outs, {"sub_block": body, "is_test": True})
    stacked = {"Out": "y", "OutIndex": "idx"}
    b.append_op("tensor_array_to_tensor", {"X": "arr"}, stacked, {"axis": 0, "use_stack": True})
    b.append_op("fetch", {"X": "y"}, {"Out": "fetch"}, {"col": 0})
    return program.serialize()


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("memory_optim", [False, True])
def test_a_predictor_forgets_the_arrays_of_the_run_before(passes: bool, memory_optim: bool) -> None:
    wire = loop()
    config = inference.Config()
    config.set_model_buffer(wire, len(wire), b"", 0)
    config.switch_ir_optim(passes)
    config.enable_memory_optim(memory_optim)
    first = inference.create_predictor(config)
    for predictor in (first, first.clone()):
        for k in (5, 2, 1, 3):
            (y,) = predictor.run([k * ones(1, 2), np.array([k])])  # type: ignore[misc]
            assert y.shape == (k, 1, 2) and (y == k).all()


def test_a_loop_without_an_end_ends_where_the_limit_is() -> None:
    program = oprack.Program.parse(loop())
    exe = oprack.Executor(loop_limit=50)
    (y,) = exe.run(program, {"x": ones(1, 2), "n": np.array([50])}, ["y"], oprack.Scope())
    assert y.shape == (50, 1, 2)
    with pytest.raises(oprack.errors.LoopLimitError, match=r"(?s)round 51 .*limit is 50.*op while"):
        exe.run(program, {"x": ones(1, 2), "n": np.array([2**60])}, ["y"], oprack.Scope())


@pytest.mark.parametrize("prepared", [False, True])
def test_sizes_that_are_fed_are_compared_with_the_limit_first(prepared: bool) -> None:
    program, block = declared(x=[-1, -1, -1, -1], y=[-1, -1, -1, -1], g=[-1, -1, -1, -1])
    block.create_var("o", dtype="int32", shape=[2])
    attrs = {"interp_method": "nearest"}
    block.append_op("nearest_interp_v2", {"X": "x", "OutSize": "o"}, {"Out": "y"}, attrs)
    grads = {"X": "x", "OutSize": "o", "Out@GRAD": "y"}
    block.append_op("nearest_interp_v2_grad", grads, {"X@GRAD": "g"}, attrs)
    exe = oprack.Executor(prepared=prepared, memory_limit=1 << 20)
    for size in ([8, 8], [66, 2**20], [4, 6], [2**20, 1]):
        feed = {"x": ones(1, 2, 4, 4), "o": np.array(size, np.int32)}
        if max(size) < 10:
            assert exe.run(program, feed, ["g"], oprack.Scope())[0].shape == (1, 2, 4, 4)
            continue
        with pytest.raises(MemoryLimitError, match=r"op nearest_interp_v2: its outputs Out\[0\] \[1, 2, "):
            exe.run(program, feed, ["g"], oprack.Scope())


def test_a_gradient_of_another_size_than_the_output_is_refused() -> None:
    program, block = declared(x=[-1, -1, -1, -1], y=[-1, -1, -1, -1], g=[-1, -1, -1, -1])
    block.create_var("o", dtype="int32", shape=[2])
    inputs = {"X": "x", "OutSize": "o", "Out@GRAD": "y"}
    block.append_op("nearest_interp_v2_grad", inputs, {"X@GRAD": "g"}, {"interp_method": "nearest"})
    feed = {"x": ones(1, 2, 4, 4), "y": ones(1, 2, 8, 8), "o": np.array([66, 2**20], np.int32)}
    with pytest.raises(InvalidArgumentError, match=r"Out@GRAD has shape \[1, 2, 8, 8\]; expected .*\[1, 2, 66"):
        oprack.Executor().run(program, feed, ["g"], oprack.Scope())
