"""Engines of ONNX Runtime: which ops become one, that they answer as the ops do, and what they refuse."""

from __future__ import annotations

import multiprocessing
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack import inference, io  # noqa: F401  they are named through oprack
from oprack.errors import CorruptModelError, OprackError
from oprack.ir import find_pass, optimize, select_passes
from oprack.packs.manager import default_manager
from oprack.tensor import LoDTensor
from oprack.testing import PassCase, check_passes
from oprack.testing.cases import load_cases
from oprack.testing.passes import op_types
from oprack.testing.runner import differences

pytest.importorskip("onnxruntime", reason="ONNX Runtime has no wheel for this machine")

from onnx import TensorProto, helper
from oprack_onnxruntime import subgraph
from oprack_onnxruntime.library import LIBRARY, Session

CASES = Path(__file__).parents[3] / "tests" / "data" / "cases"
NAME, ENGINE = "onnxruntime_subgraph", "onnxruntime_engine"
CLOSE = dict(rtol=1e-4, atol=1e-5)
WITHOUT = ["onednn", "numba"]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape, dtype=np.float32)


def step(op_type: str, i: int, attrs: dict[str, Any] | None = None, **inputs: str) -> tuple[Any, ...]:
    return op_type, {"X": f"y{i}", **inputs}, {"Out": f"y{i + 1}"}, attrs or {}


def conv_case(*ops: tuple[Any, ...], fetch: tuple[str, ...] = (), **params: np.ndarray) -> PassCase:
    attrs = {"paddings": [1, 1], "strides": [1, 1]}
    conv = ("conv2d", {"Input": "x", "Filter": "w"}, {"Output": "y0"}, attrs)
    return PassCase(
        {"x": normal(2, 8, 9, 10)}, {"w": normal(16, 8, 3, 3), **params}, [conv, *ops], fetch, checked=False
    )


# Which ops become an engine -------------------------------------------------------------------------------------------
def test_a_stretch_becomes_one_op_whose_sizes_are_open() -> None:
    case = conv_case(step("elementwise_add", 0, {"axis": 1}, Y="b"), step("relu", 1), b=normal(16))
    optimized = check_passes(case, NAME, **CLOSE)
    assert op_types(optimized) == [ENGINE]
    (op,) = optimized.program.blocks[0].ops
    assert op.input("Params") == ["w"]  # the bias is small, and part of the model
    assert op.attrs["shapes"] == [4, -1, 16, -1, -1]


def test_what_is_fetched_on_the_way_is_an_output_as_well() -> None:
    case = conv_case(step("relu", 0), step("tanh", 1), fetch=("y1", "y2"))
    optimized = check_passes(case, NAME, **CLOSE)
    assert optimized.program.blocks[0].ops[0].output("Ys") == ["y1", "y2"]


def test_few_ops_stay_as_they_are() -> None:
    assert op_types(check_passes(conv_case(step("relu", 0)), NAME)) == ["conv2d", "relu"]


def test_ops_that_draw_stay_and_what_lies_on_both_sides_is_not_joined() -> None:
    """What reads both sides waits for the second, and nothing that the op between reads comes after it."""
    ops = [step("relu", 0), step("tanh", 1)]
    ops += [("bernoulli", {"X": "y3"}, {"Out": "y4"}, {}), ("sigmoid", {"X": "y2"}, {"Out": "y3"}, {})][::-1]
    ops += [step("scale", 4), step("relu", 5), ("elementwise_add", {"X": "y6", "Y": "y0"}, {"Out": "y7"}, {})]
    case = conv_case(*ops)
    program, scope = case.build()
    optimized = optimize(program.desc, scope, keep=["y7"], passes=[find_pass(NAME)], debug=True)
    assert op_types(optimized) == [ENGINE, "bernoulli", ENGINE]
    assert {"y0", "y3"} == set(optimized.program.blocks[0].ops[0].output("Ys"))


def test_lod_passes_through_and_ops_that_need_it_stay() -> None:
    rows = LoDTensor(np.array([[3], [1], [2], [0], [3]], "int64"), [[0, 2, 2, 5]])
    ops = [
        ("lookup_table", {"W": "table", "Ids": "x"}, {"Out": "y0"}),
        ("mul", {"X": "y0", "Y": "w"}, {"Out": "y1"}),
        step("relu", 1),
        ("sequence_pool", {"X": "y2"}, {"Out": "y3", "MaxIndex": "at"}, {"pooltype": "MAX"}),
    ]
    case = PassCase({"x": rows}, {"table": normal(4, 300), "w": normal(300, 5)}, ops, ["y2", "y3"])
    optimized = check_passes(case, NAME, **CLOSE)  # compares LoD as well
    assert op_types(optimized) == [ENGINE, "sequence_pool"]


def test_a_norm_that_writes_its_statistics_back() -> None:
    """The names that it writes are those of parameters, which stay as they are."""
    slots = {"X": "y0", "Scale": "one", "Bias": "b", "Mean": "m", "Variance": "v"}
    out = {"Y": "y1", "MeanOut": "m", "VarianceOut": "v", "SavedMean": "s", "SavedVariance": "t"}
    norm = ("batch_norm", slots, out, {"is_test": True})
    params = {name: np.abs(normal(16)) + i for i, name in enumerate(("one", "b", "m", "v"))}
    optimized = check_passes(conv_case(norm, step("relu", 1), **params), NAME, **CLOSE)
    assert op_types(optimized) == [ENGINE]


def test_dtypes_that_onnx_runtime_serves_badly_stay() -> None:
    ops = [step("relu", 0), step("tanh", 1), step("sigmoid", 2)]
    case = PassCase({"y0": normal(3, 4).astype("float64")}, {}, ops)
    assert op_types(check_passes(case, NAME)) == ["relu", "tanh", "sigmoid"]


def test_what_onnx_runtime_refuses_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, threads: int) -> None:
        assert threads == 0
        raise CorruptModelError("no kernel")

    monkeypatch.setattr(subgraph, "Session", refuse)
    case = conv_case(step("relu", 0), step("tanh", 1))
    assert op_types(check_passes(case, NAME)) == ["conv2d", "relu", "tanh"]


OPS = """concat conv2d conv2d_transpose depthwise_conv2d elementwise_add elementwise_mul fc gelu hard_sigmoid hard_swish
layer_norm leaky_relu lookup_table_v2 matmul matmul_v2 mul nearest_interp_v2
bilinear_interp_v2 pad3d pool2d reduce_mean relu6
reshape2 scale sigmoid slice softmax split swish transpose2 unsqueeze2""".split()

KNOWN = {"swish.0026"}
"""Cases in which Paddle forgets an attribute."""


@pytest.mark.parametrize("op", OPS)
def test_cases_of_paddle(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the ops that nets for pictures and text have; the plugin onnx tests how all others are written."""
    monkeypatch.setattr(subgraph, "LEAST", 1)
    found, engines = [], 0
    for case in load_cases(CASES / f"{op}.npz"):
        if not case.has("forward") or case.id in KNOWN or engines == 12:
            continue
        program, scope, feed = case.program(), oprack.Scope(), dict(case.feeds)
        for name, value in list(feed.items())[1:]:  # weights are parameters, as in saved nets
            if isinstance(value, LoDTensor) and not value.lod:
                program.global_block().vars[name].persistable = True
                scope.var(name).set(feed.pop(name))
        names = [e.name for e in case.expected("forward") if not e.info.get("intermediate")]
        optimized = optimize(program.desc, scope, keep=names, passes=[find_pass(NAME)])
        if ENGINE in op_types(optimized):
            engines += 1
            executor = oprack.Executor(excluded_libraries=WITHOUT)
            values = executor.run(optimized.program, feed, names, scope, return_numpy=False)
            got = dict(zip(names, values, strict=True))
            found += [f"{case.id}: {reason}" for reason in differences(case, "forward", got)]
    assert not found, "\n".join(found)
    assert engines


# Predictors -----------------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> str:
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        x = oprack.layers.data("x", [None, 3, None, None])
        y = oprack.layers.conv2d(x, 24, 3, padding=1, act="relu")
        y = oprack.layers.conv2d(y, 24, 3, padding=1, act="hard_swish")
        y = oprack.layers.pool2d(y, pool_type="avg", global_pooling=True)
        y = oprack.layers.softmax(oprack.layers.fc(y, 50))
    scope, executor = oprack.Scope(), oprack.Executor(seed=1)
    executor.run(startup, scope=scope)
    folder = tmp_path_factory.mktemp("net")
    oprack.io.save_inference_model(str(folder / "net"), main, ["x"], [y.name], scope)
    return str(folder / "net")


def config_of(net: str, onednn: bool = False) -> inference.Config:
    config = inference.Config(f"{net}.pdmodel", f"{net}.pdiparams")
    if not onednn:
        config.disable_mkldnn()
    return config


def sessions() -> list[Session]:
    return [entry[2] for entry in LIBRARY._sessions.values() if entry[2] is not None]


def test_predictors_take_it_where_onednn_is_not(net: str) -> None:
    """One session answers all sizes; clones and threads share it, and it goes with the last of them."""
    before = len(sessions())
    config = config_of(net)
    config.set_cpu_math_library_num_threads(2)
    predictor = inference.create_predictor(config)
    assert op_types_of(predictor) == {"feed", ENGINE, "fetch"}
    plain = config_of(net)
    plain.disable_onnxruntime()
    reference = inference.create_predictor(plain)
    assert ENGINE not in op_types_of(reference)
    inputs = [normal(n, 3, height, 17) for n, height in ((1, 9), (4, 9), (1, 30), (1, 9))]
    wanted = [reference.run([x])[0] for x in inputs]
    found: dict[int, list[np.ndarray]] = {}

    def run(i: int, own: inference.Predictor) -> None:
        found[i] = [own.run([x])[0] for x in inputs]

    threads = [threading.Thread(target=run, args=(i, p)) for i, p in enumerate((predictor, predictor.clone()))]
    run(-1, predictor)
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for answers in found.values():
        for got, want in zip(answers, wanted, strict=True):
            np.testing.assert_allclose(got, want, **CLOSE)
    assert len(found) == 3 and len(sessions()) == before + 1
    del predictor, threads
    assert len(sessions()) == before


def op_types_of(predictor: inference.Predictor) -> set[str]:
    return {op.type for op in predictor._model.program.desc.blocks[0].ops}


def test_who_runs_it(net: str, monkeypatch: pytest.MonkeyPatch) -> None:
    onednn = default_manager().extensions.libraries()["onednn"]
    for serves in (True, False):
        monkeypatch.setattr(type(onednn), "usable", lambda self, serves=serves: serves)
        config = config_of(net, onednn=True)
        assert config.onnxruntime_enabled() is not serves
        assert (NAME in [p.name for p in select_passes()]) is not serves
        assert ("Config.enable_onnxruntime() asks" in LIBRARY.status()) is serves
        config.enable_onnxruntime()
        assert config.onnxruntime_enabled()
        config.set_memory_limit(1 << 40)  # nobody counts what it takes
        assert not config.onnxruntime_enabled()
        config.set_memory_limit(None)
        config.switch_strict_sums()
        assert not config.onnxruntime_enabled()
        config.switch_strict_sums(False)
        config.disable_onnxruntime()
        assert not config.onnxruntime_enabled()


def test_it_does_not_run_on_oprack_that_stands_in_for_it(net: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)
    with inference.as_onnxruntime():
        assert not LIBRARY.usable() and "stands in" in LIBRARY.status()
        assert ENGINE not in op_types_of(inference.create_predictor(config_of(net)))


def test_beside_onednn_for_those_who_ask(net: str) -> None:
    config = config_of(net, onednn=True)
    config.enable_onnxruntime()
    predictor = inference.create_predictor(config)
    assert op_types_of(predictor) == {"feed", ENGINE, "fetch"}
    reference = inference.create_predictor(config_of(net, onednn=True))
    assert ENGINE not in op_types_of(reference)
    x = normal(2, 3, 12, 12)
    np.testing.assert_allclose(predictor.run([x])[0], reference.run([x])[0], **CLOSE)


def test_another_number_of_threads_is_another_session(net: str) -> None:
    predictor = inference.create_predictor(config_of(net))
    x = normal(1, 3, 8, 8)
    answers, seen = [], set()
    for count in (1, 3, 1):
        with LIBRARY.limit_threads(count):
            answers.append(predictor.run([x])[0])
            seen |= {s._session.get_session_options().intra_op_num_threads for s in sessions()}
    assert {1, 3} <= seen
    np.testing.assert_allclose(answers[0], answers[1], **CLOSE)


def test_kept_on_disk_and_in_a_forked_child(net: str, tmp_path: Path) -> None:
    x = normal(2, 3, 10, 10)
    answers = []
    for _ in range(2):
        config = config_of(net)
        config.set_optim_cache_dir(str(tmp_path))
        predictor = inference.create_predictor(config)
        assert ENGINE in op_types_of(predictor)
        answers.append(predictor.run([x])[0])
    np.testing.assert_array_equal(*answers)
    with multiprocessing.get_context("fork").Pool(1, initializer=_keep, initargs=(predictor,)) as pool:
        np.testing.assert_array_equal(pool.apply_async(_answer, (x,)).get(60), answers[0])


_KEPT: list[inference.Predictor] = []


def _keep(predictor: inference.Predictor) -> None:
    _KEPT.append(predictor)


def _answer(x: np.ndarray) -> np.ndarray:
    return _KEPT[0].run([x])[0]


def test_parameters_that_somebody_may_write_to_are_read_anew() -> None:
    case = conv_case(step("relu", 0), step("tanh", 1))
    program, scope = case.build()
    optimized = optimize(program.desc, scope, keep=["y2"], passes=[find_pass(NAME)])
    executor, answers = oprack.Executor(), []
    for factor in (1, -1):
        scope.get_var("w").get().array[...] *= factor
        answers.append(executor.run(optimized.program, case.feeds, ["y2"], scope)[0])
        np.testing.assert_allclose(answers[-1], executor.run(program, case.feeds, ["y2"], scope)[0], **CLOSE)
    assert np.abs(answers[0] - answers[1]).max() > 0.1


def test_the_reference_runs_the_same_model() -> None:
    case = conv_case(step("elementwise_add", 0, {"axis": 1}, Y="b"), step("softmax", 1), b=normal(16))
    program, scope = case.build()
    optimized = optimize(program.desc, scope, keep=["y2"], passes=[find_pass(NAME)])
    excluded = list(default_manager().extensions.libraries())
    found = [
        oprack.Executor(excluded_libraries=names).run(optimized.program, case.feeds, ["y2"], scope)[0]
        for names in ([], excluded)
    ]
    np.testing.assert_allclose(*found, **CLOSE)


def test_an_error_names_the_op_the_plugin_and_the_node() -> None:
    case = conv_case(step("relu", 0), step("tanh", 1))
    program, scope = case.build()
    optimized = optimize(program.desc, scope, keep=["y2"], passes=[find_pass(NAME)])
    with pytest.raises(OprackError, match=r"(?s)onnxruntime_engine of oprack-onnxruntime.*running Conv node"):
        oprack.Executor().run(optimized.program, {"x": normal(2, 7, 9, 10)}, ["y2"], scope)


# What is not trusted --------------------------------------------------------------------------------------------------
def engine_program(model: bytes, **attrs: Any) -> tuple[oprack.Program, oprack.Scope]:
    program, scope = oprack.Program(), oprack.Scope()
    block = program.global_block()
    block.create_var("x", dtype="float32", shape=[-1, 2])
    block.create_var("model", dtype="uint8", shape=[len(model)], persistable=True)
    block.create_var("y", dtype="float32")
    scope.var("model").set(np.frombuffer(model, np.uint8).copy())
    attrs = {"dtypes": [5], "shapes": [2, -1, 2], "lods": [-1]} | attrs
    block.append_op(ENGINE, {"Xs": ["x"], "Model": ["model"]}, {"Ys": ["y"]}, attrs)
    return program, scope


def model_of(*nodes: Any, inputs: tuple[str, ...] = ("x",), held: tuple[TensorProto, ...] = ()) -> bytes:
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None, 2]) for n in (*inputs, "y")]
    graph = helper.make_graph(list(nodes), "net", infos[:-1], infos[-1:], held)
    opsets = [helper.make_opsetid(d, v) for d, v in {"": 20}.items()]
    opsets += [helper.make_opsetid(n.domain, 1) for n in nodes if n.domain]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9).SerializeToString()


def outside() -> TensorProto:
    found = TensorProto(name="w", dims=[1, 2], data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    found.external_data.add(key="location", value="/etc/passwd")
    return found


RELU = helper.make_node("Relu", ["x"], ["y"])
REFUSED: dict[str, tuple[bytes, dict[str, Any], str]] = {
    "no model": (b"\x08\x09 what is this", {}, "no model of ONNX"),
    "cut off": (model_of(RELU)[:-9], {}, ""),
    "a file": (
        model_of(helper.make_node("Add", ["x", "w"], ["y"]), held=(outside(),)),
        {},
        "passwd",
    ),
    "a domain": (
        model_of(helper.make_node("Relu", ["x"], ["y"], domain="com.microsoft")),
        {},
        "com.m",
    ),
    "more inputs": (
        model_of(helper.make_node("Add", ["x", "z"], ["y"]), inputs=("x", "z")),
        {},
        "reads 2 values, and Xs has 1",
    ),
    "no such op": (model_of(helper.make_node("Reluu", ["x"], ["y"])), {}, "can't load"),
    "no shapes": (model_of(RELU), {"shapes": [2, 1]}, "shapes must have a rank"),
    "a rank beyond": (model_of(RELU), {"shapes": [9, 1]}, "shapes must have a rank"),
    "a LoD of none": (model_of(RELU), {"lods": [1]}, "lods less than the 1 Xs"),
    "too many": (model_of(RELU), {"lods": [-1, -1]}, "a number for each of 1 Ys"),
    "no dtype": (model_of(RELU), {"dtypes": [99]}, "the number of a dtype"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_models_that_no_pass_wrote(name: str) -> None:
    model, attrs, text = REFUSED[name]
    with warnings.catch_warnings(), pytest.raises(OprackError) as caught:
        warnings.simplefilter("ignore")
        program, scope = engine_program(model, **attrs)
        oprack.Executor().run(program, {"x": normal(3, 2)}, ["y"], scope)
    assert text in str(caught.value)


def test_a_model_that_fits_runs() -> None:
    program, scope = engine_program(model_of(RELU))
    (found,) = oprack.Executor().run(program, {"x": np.array([[-1, 2]], "float32")}, ["y"], scope)
    np.testing.assert_array_equal(found, [[0, 2]])
