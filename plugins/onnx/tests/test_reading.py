"""Models of ONNX wherever oprack takes a model: loaders, predictors, commands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx_models import expected, model, net
from oprack import Executor, inference, io
from oprack.cli.main import main
from oprack.errors import (
    CorruptModelError,
    CorruptParameterError,
    MissingPackError,
    MissingParameterError,
    ModelError,
    UnimplementedError,
    UnsafeNameError,
)
from oprack.io.inference_model import files_beside, model_files
from oprack.tensor import Scope
from oprack_onnx import backend
from oprack_onnx.reader import read_model

X = np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype("float32")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "net.onnx"
    onnx.save(net(), file)
    return file


def run(path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    scope = Scope()
    found = io.load_inference_model(path, scope)
    return Executor().run(found.program, feed=feeds, fetch_list=found.fetch_names, scope=scope)


def run_made(made: onnx.ModelProto, feeds: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """What a model gives that does not say the shapes of its outputs, as ONNX's checker wants it to."""
    return backend.OprackRep(made).run(feeds)


@pytest.mark.parametrize("name", ["net.onnx", "net", "."])
def test_a_path_a_prefix_and_a_folder_name_it(path, name):
    (y,) = run(path.parent / name, {"x": X})
    np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)


def test_a_predictor_runs_it_by_fused_ops(path):
    config = inference.Config(str(path), "")
    predictor = inference.create_predictor(config)
    for _ in range(3):  # recorded, compiled, compiled
        (y,) = predictor.run([X])
        np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)
    assert predictor.get_input_names() == ["x"] and predictor.get_output_names() == ["y"]


def test_the_norm_is_folded_into_the_convolution(path, capsys):
    assert main(["passes", str(path), "--json"]) == 0
    assert '"pass": "fold_affine_into_conv"' in capsys.readouterr().out.replace("\n", "")
    assert main(["show", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "conv2d" in shown and "batch_norm" in shown and "[-1, 3, 8, 8]" in shown


def test_bytes_are_known_by_what_they_begin_with(path):
    scope = Scope()
    found = io.load_from_buffers(path.read_bytes(), b"", scope)
    (y,) = Executor().run(found.program, feed={"x": X}, fetch_list=found.fetch_names, scope=scope)
    np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)


def test_commands_take_it(path, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X)
    out = tmp_path / "y.npz"
    assert main(["run", str(path), "--feed", str(tmp_path / "x.npy"), "--out", str(out)]) == 0
    np.testing.assert_allclose(np.load(out)["y"], expected(X), rtol=1e-4, atol=1e-5)
    assert main(["convert", str(path), str(tmp_path / "fluid")]) == 0
    (y,) = run(tmp_path / "fluid.pdmodel", {"x": X})
    np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)
    data = [str(tmp_path / "x.npy")]
    assert main(["quantize", str(path), "--data", *data, "--out", str(tmp_path / "small")]) == 0


# External data --------------------------------------------------------------------------------------------------------
@pytest.fixture
def split(tmp_path: Path) -> Path:
    file = tmp_path / "split.onnx"
    onnx.save(net(), file, save_as_external_data=True, location="weights.bin", size_threshold=0)
    return file


def test_external_data_lies_beside_the_model(split):
    (y,) = run(split, {"x": X})
    np.testing.assert_allclose(y, expected(X), rtol=1e-4, atol=1e-5)
    data = split.with_name("weights.bin")
    assert data in model_files(split).values() and data in files_beside(split).values()


@pytest.mark.parametrize(
    ("location", "error"),
    [
        ("../outside.bin", UnsafeNameError),
        ("/etc/hostname", UnsafeNameError),
        ("", UnsafeNameError),
        ("link.bin", UnsafeNameError),
        ("absent.bin", MissingParameterError),
    ],
)
def test_external_data_never_leaves_the_folder(split, location, error):
    (split.parent.parent / "outside.bin").write_bytes(b"\0" * 10_000)
    (split.parent / "link.bin").symlink_to(split.parent.parent / "outside.bin")
    made = onnx.load(split, load_external_data=False)
    for tensor in made.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                entry.value = location
    split.write_bytes(made.SerializeToString())
    with pytest.raises(error):
        run(split, {"x": X})


def test_external_data_of_another_size_is_refused(split):
    split.with_name("weights.bin").write_bytes(b"\0" * 100)
    with pytest.raises(CorruptParameterError, match=r"has dims .* bytes, and lies in"):
        run(split, {"x": X})


LOOK_UP = """
import sys
import numpy as np
from oprack import Executor, io
from oprack.tensor import Scope

scope = Scope()
found = io.load_inference_model(sys.argv[1], scope)
ids = np.array([0, 700_000, 1_048_575])
(rows,) = Executor().run(found.program, feed={"ids": ids}, fetch_list=found.fetch_names, scope=scope)
with open("/proc/self/status") as status:  # getrusage() counts what the process was forked from
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
print(rows.shape, rows.sum(1).tolist(), peak // 1024)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system does not say what a process took")
def test_a_table_beyond_two_gib_stays_in_its_file(tmp_path):
    """Its file is one of holes but for a row, and so is what is read of it."""
    rows, width = 1 << 20, 640
    table = onnx.TensorProto(name="table", data_type=onnx.TensorProto.FLOAT, dims=[rows, width])
    table.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", "table.bin"), ("offset", "0"), ("length", str(rows * width * 4))):
        table.external_data.add(key=key, value=value)
    with (tmp_path / "table.bin").open("wb") as file:
        file.truncate(rows * width * 4)
        file.seek(700_000 * width * 4)
        file.write(np.ones(width, "float32").tobytes())
    inputs = [helper.make_tensor_value_info("ids", onnx.TensorProto.INT64, ["n"])]
    outputs = [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", width])]
    graph = helper.make_graph([helper.make_node("Gather", ["table", "ids"], ["y"])], "table", inputs, outputs, [table])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    (tmp_path / "net.onnx").write_bytes(made.SerializeToString())
    command = [sys.executable, "-c", LOOK_UP, str(tmp_path / "net.onnx")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    told, _, mebibytes = done.stdout.strip().rpartition(" ")
    assert told == f"(3, {width}) [0.0, {float(width)}, 0.0]"
    assert int(mebibytes) < 600  # of 2,560 that the table has; the interpreter and NumPy take some 100


def test_a_model_given_as_bytes_has_no_folder(split):
    with pytest.raises(MissingParameterError, match="load it by its path"):
        io.load_from_buffers(split.read_bytes(), b"", Scope())


# What is not to be trusted --------------------------------------------------------------------------------------------
def test_dims_that_no_data_fill_are_refused(path):
    made = net()
    made.graph.initializer[0].dims[:] = [2**31, 2**31]
    path.write_bytes(made.SerializeToString())
    with pytest.raises(CorruptParameterError, match=r"has dims \[2147483648, 2147483648\], and data for"):
        run(path, {"x": X})


def test_functions_that_call_each_other_too_often_are_refused():
    made = net()
    names = [f"f{i}" for i in range(12)]
    for name, inner in zip(names, [*names[1:], ""], strict=True):
        calls = [helper.make_node(inner, ["a"], [f"b{k}"], domain="lib") for k in range(9)] if inner else []
        nodes = [*calls, helper.make_node("Relu", ["a"], ["y"])]
        made.functions.append(helper.make_function("lib", name, ["a"], ["y"], nodes, made.opset_import))
    made.opset_import.append(helper.make_opsetid("lib", 1))
    made.graph.node.append(helper.make_node("f0", ["y"], ["z"], domain="lib"))
    with pytest.raises(CorruptModelError, match="nodes once its functions are written out"):
        io.load_from_buffers(made.SerializeToString(), b"", Scope())
    made.functions[-1].node.append(helper.make_node("f0", ["a"], ["again"], domain="lib"))
    with pytest.raises(CorruptModelError, match=r"calls itself|once its functions"):
        io.load_from_buffers(made.SerializeToString(), b"", Scope())


@pytest.mark.parametrize("seed", range(6))
def test_altered_bytes_are_refused_or_run(path, seed):
    """Nothing but an error of oprack comes out of a file that was altered."""
    rng, data = np.random.default_rng(seed), bytearray(path.read_bytes())
    head = len(data) - sum(len(t.raw_data) for t in net().graph.initializer)
    for _ in range(40):
        altered = data.copy()
        for place in rng.integers(0, head, 3):
            altered[place] = rng.integers(256)
        try:
            io.load_from_buffers(bytes(altered), b"", Scope())
        except (ModelError, MissingPackError, UnimplementedError):
            pass


def test_a_node_that_reads_what_nothing_makes_is_refused():
    """ONNX's shape inference ends the process for such a node of EyeLike."""
    made = model([helper.make_node("EyeLike", ["absent"], ["y"], dtype=11)], {"x": [3, 4]}, ["y"])
    with pytest.raises(CorruptModelError, match="reads 'absent', which nothing before it makes"):
        io.load_from_buffers(made.SerializeToString(), b"", Scope())


# Opsets, functions, domains -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17, 21])
def test_axes_are_an_attribute_or_an_input(opset):
    held = {"axes": np.array([1], "int64")}
    if opset >= 13:
        squeezed = helper.make_node("Unsqueeze", ["x", "axes"], ["u"])
        total = helper.make_node("ReduceSum", ["u", "axes"], ["y"], keepdims=0)
    else:
        squeezed = helper.make_node("Unsqueeze", ["x"], ["u"], axes=[1])
        total = helper.make_node("ReduceSum", ["u"], ["y"], axes=[1], keepdims=0)
    made = model([squeezed, total], {"x": [2, 3]}, ["y"], held if opset >= 13 else None, opset=opset)
    x = np.arange(6, dtype="float32").reshape(2, 3)
    assert run_made(made, [x])[0].tolist() == x.tolist()


def test_softmax_of_old_opsets_is_that_of_a_matrix():
    x = np.arange(12, dtype="float32").reshape(2, 2, 3)
    for opset, axes in ((11, (1, 2)), (13, (2,))):
        made = model([helper.make_node("Softmax", ["x"], ["y"])], {"x": [2, 2, 3]}, ["y"], opset=opset)
        e = np.exp(x - x.max(axes, keepdims=True))
        np.testing.assert_allclose(run_made(made, [x])[0], e / e.sum(axes, keepdims=True), rtol=1e-5)


def test_a_function_of_the_model_is_written_out():
    made = net()
    body = [helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("Add", ["b", "a"], ["c"])]
    made.functions.append(helper.make_function("lib", "Poly", ["a"], ["c"], body, made.opset_import))
    made.opset_import.append(helper.make_opsetid("lib", 1))
    made.graph.node.append(helper.make_node("Poly", ["y"], ["z"], domain="lib"))
    made.graph.output[0].name = "z"
    y = expected(X)
    np.testing.assert_allclose(run_made(made, [X])[0], y * y + y, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("domain", "op"), [("oprack", "Brelu"), ("oprack.nn", "brelu"), ("nn", "Brelu")])
def test_a_node_of_a_packs_domain_is_its_op(domain, op):
    node = helper.make_node(op, ["x"], ["y"], domain=domain, t_min=-1.0, t_max=1.0)
    made = model([node], {"x": [3]}, ["y"], domains=[domain])
    assert backend.OprackRep(made).run([np.array([-2, 0.5, 2], "float32")])[0].tolist() == [-1.0, 0.5, 1.0]


def test_an_unknown_domain_and_an_unknown_op_are_told():
    made = model([helper.make_node("Thing", ["x"], ["y"], domain="acme")], {"x": [3]}, ["y"], domains=["acme"])
    with pytest.raises(MissingPackError, match="no installed pack has the domain 'acme'"):
        backend.OprackRep(made)
    made = model(
        [helper.make_node("Thing", ["x"], ["y"], domain="oprack.nn")], {"x": [3]}, ["y"], domains=["oprack.nn"]
    )
    with pytest.raises(UnimplementedError, match="pack 'nn' has no op 'Thing'"):
        backend.OprackRep(made)
    made = model([helper.make_node("ImageDecoder", ["x"], ["y"])], {"x": [3]}, ["y"], opset=20)
    with pytest.raises(UnimplementedError, match=r"has 1 sorts of ops .*\n  ImageDecoder: node 0"):
        backend.OprackRep(made)


# Control flow ---------------------------------------------------------------------------------------------------------
def test_a_loop_sums_until_its_condition_fails():
    body = helper.make_graph(
        [
            helper.make_node("Add", ["sum", "x"], ["sum_out"]),
            helper.make_node("Less", ["sum_out", "limit"], ["small"]),
            helper.make_node("ReduceMin", ["small_int"], ["least"], keepdims=0),
            helper.make_node("Cast", ["least"], ["go"], to=onnx.TensorProto.BOOL),
            helper.make_node("Identity", ["sum_out"], ["scan"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
            helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, [2]),
        ],
        [
            helper.make_tensor_value_info("go", onnx.TensorProto.BOOL, []),
            helper.make_tensor_value_info("sum_out", onnx.TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("scan", onnx.TensorProto.FLOAT, [2]),
        ],
    )
    body.node.insert(2, helper.make_node("Cast", ["small"], ["small_int"], to=onnx.TensorProto.INT32))
    held = {"start": np.zeros(2, "float32"), "limit": np.array(5, "float32"), "most": np.array(10, "int64")}
    nodes = [
        helper.make_node("Constant", [], ["true"], value=numpy_helper.from_array(np.array(True))),
        helper.make_node("Loop", ["most", "true", "start"], ["total", "steps"], body=body),
    ]
    made = model(nodes, {"x": [2]}, ["total", "steps"], held)
    total, steps = run_made(made, [np.array([1, 2], "float32")])
    # 1 2, 2 4, 3 6: the second number is not below 5 any more
    assert total.tolist() == [3.0, 6.0] and steps.tolist() == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]


def test_the_branches_of_an_if_may_have_other_sizes():
    def branch(name: str, value: list[float]) -> onnx.GraphProto:
        array = numpy_helper.from_array(np.array(value, "float32"))
        node = helper.make_node("Constant", [], [name], value=array)
        return helper.make_graph([node], name, [], [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None)])

    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=branch("a", [1, 2]), else_branch=branch("b", [3])),
    ]
    made = backend.OprackRep(model(nodes, {"x": [2]}, ["y"], {"zero": np.array(0, "float32")}))
    assert made.run([np.array([1, 1], "float32")])[0].tolist() == [1.0, 2.0]
    assert made.run([np.array([-1, 0], "float32")])[0].tolist() == [3.0]


def test_the_page_of_ops_is_fresh():
    """`python plugins/onnx/tools/ops_page.py` writes it."""
    import runpy

    tools = Path(__file__).parents[1] / "tools"
    assert (
        Path(__file__).parents[3].joinpath("docs/onnx_ops.md").read_text("utf-8")
        == runpy.run_path(str(tools / "ops_page.py"))["page"]()
    )


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "bidirectional", "reverse"])
def test_recurrent_layers_of_known_weights_are_one_op(op, direction):
    """rnn has gates in another order, and no direction that is backwards alone."""
    rng, gates = np.random.default_rng(5), {"LSTM": 4, "GRU": 3}[op]
    count, hidden = 2 if direction == "bidirectional" else 1, 5
    held = {
        "w": rng.standard_normal((count, gates * hidden, 4)).astype("float32"),
        "r": rng.standard_normal((count, gates * hidden, hidden)).astype("float32"),
        "b": rng.standard_normal((count, 2 * gates * hidden)).astype("float32"),
        "start": rng.standard_normal((count, 2, hidden)).astype("float32"),
    }
    states = ["start"] * (2 if op == "LSTM" else 1)
    outputs = ["y", "h", "c"][: 1 + len(states)]
    more = {"linear_before_reset": 1} if op == "GRU" else {}
    node = helper.make_node(
        op, ["x", "w", "r", "b", "", *states], outputs, hidden_size=hidden, direction=direction, **more
    )
    made = model([node], {"x": [3, 2, 4]}, outputs, held)
    x = rng.standard_normal((3, 2, 4)).astype("float32")
    ops = {o.type for o in read_model(made.SerializeToString(), None).program.desc.blocks[0].ops}
    assert ("rnn" in ops) == (direction != "reverse")
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, want in zip(run_made(made, [x]), session.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["reflect", "edge"])
def test_pads_that_repeat_what_is_there_are_gathered(mode):
    held = {"pads": np.array([0, 2, 0, 1, 3, 0])}
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode=mode)
    made = model([node], {"x": [2, 4, 3]}, ["y"], held)
    x = np.random.default_rng(6).standard_normal((2, 4, 3)).astype("float32")
    (y,) = run_made(made, [x])
    assert np.array_equal(y, np.pad(x, ((0, 1), (2, 3), (0, 0)), mode=mode))
    ops = [o.type for o in read_model(made.SerializeToString(), None).program.desc.blocks[0].ops]
    assert "gather" in ops and "onnx_pad" not in ops


def test_what_fusions_look_for_is_written_as_they_know_it():
    """The mean of channels is a pool, and a slice of one place without its axis is one op: blocks of nets have both."""
    held = {"start": np.array([1]), "end": np.array([2]), "axis": np.array([0])}
    nodes = [
        helper.make_node("Slice", ["x", "start", "end", "axis"], ["part"]),
        helper.make_node("Squeeze", ["part", "axis"], ["image"]),
        helper.make_node("ReduceMean", ["image"], ["y"], axes=[-2, -1]),
    ]
    made = model(nodes, {"x": [3, 2, 4, 5, 6]}, ["y"], held)
    x = np.random.default_rng(7).standard_normal((3, 2, 4, 5, 6)).astype("float32")
    (y,) = run_made(made, [x])
    np.testing.assert_allclose(y, x[1].mean((2, 3), keepdims=True), rtol=1e-5, atol=1e-6)
    ops = [o.type for o in read_model(made.SerializeToString(), None).program.desc.blocks[0].ops]
    assert ops.count("pool2d") == 1 and "squeeze2" not in ops and "reduce_mean" not in ops
