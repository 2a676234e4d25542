"""gru and lstm over products made elsewhere: native code gives what NumPy's kernels give, for any lengths."""

from __future__ import annotations

import numpy as np
import pytest
from numpy_kernels import numpy_result
from oprack import Program, Scope
from oprack.inference import Config, create_predictor
from oprack.io import save_inference_model
from oprack.kernel import KernelContext
from oprack.op.desc_rules import grad_op_descs
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import LoDTensor
from oprack_onednn.kernels.gru_lstm import gru, lstm

SIZE = 32
FUNCTIONS = {"gru": (gru, 3), "lstm": (lstm, 4)}
NAMES = {
    "gru": ("activation", "gate_activation", "is_reverse", "origin_mode"),
    "lstm": ("use_peepholes", "is_reverse", "gate_activation", "cell_activation", "candidate_activation"),
}


class Context(KernelContext):
    """Of ops whose intermediate outputs nobody reads."""

    def is_read(self, *slots):
        return False


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32) * 0.5


def slots(op_type, lengths, states, bias=True, peepholes=False):
    """Inputs by slot, the weight read-only as in a predictor."""
    n = FUNCTIONS[op_type][1] * SIZE
    given = {"Input": normal(sum(lengths), n), "Weight": normal(SIZE, n) * 0.3}
    given["Weight"].flags.writeable = False
    if bias or op_type == "lstm":
        given["Bias"] = normal(1, n + 3 * SIZE * peepholes)
    names = {"gru": ("H0",), "lstm": ("H0", "C0")}[op_type] if states else ()
    return given | {name: normal(len(lengths), SIZE, seed=i) for i, name in enumerate(names)}


def run(op_type, given, lengths, **attrs):
    """(what this library's kernel gives, what NumPy's gives)."""
    offsets = [0, *np.cumsum(lengths).tolist()]
    ctx = Context(op_type, attrs, {"Input": [[offsets]]}, packs=default_manager())
    want = numpy_result(op_type, given, ctx)
    return FUNCTIONS[op_type][0](**given, **{n: ctx.attrs[n] for n in NAMES[op_type]}, ctx=ctx), want


def hidden(op_type, outputs):
    """What is not for the gradient alone, after a check that this is left out."""
    kept, left = (outputs[3:], outputs[:3]) if op_type == "gru" else (outputs[:2], outputs[2:])
    assert all(a is None for a in left)
    return kept


LENGTHS = [[7], [3, 0, 9, 1, 0], [0, 0, 5], [4] * 40, list(range(60))]


@pytest.mark.parametrize("lengths", LENGTHS, ids=lambda lengths: f"{len(lengths)}-{sum(lengths)}")
@pytest.mark.parametrize("states", [False, True])
@pytest.mark.parametrize(
    "op_type, attrs",
    [
        ("gru", {}),
        ("gru", dict(is_reverse=True)),
        ("gru", dict(origin_mode=True, activation="relu")),
        ("gru", dict(activation="identity")),
        ("lstm", dict(use_peepholes=False)),
        ("lstm", dict(use_peepholes=False, is_reverse=True, cell_activation="relu")),
    ],
    ids=str,
)
def test_walks(monkeypatch, op_type, attrs, states, lengths):
    given = slots(op_type, lengths, states, bias=states)
    monkeypatch.setattr("oprack_onednn.kernels.gru_lstm.run_reference", lambda *a: pytest.fail("left to NumPy"))
    got, want = run(op_type, given, lengths, **attrs)
    for g, w in zip(hidden(op_type, got), want[3:] if op_type == "gru" else want[:2], strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-5)


def test_what_numpy_does_has_the_same_outputs():
    got, want = run("lstm", slots("lstm", [3, 5], False, peepholes=True), [3, 5], use_peepholes=True)
    for g, w in zip(hidden("lstm", got), want[:2], strict=True):
        np.testing.assert_array_equal(g, w)


@pytest.mark.parametrize("op_type", FUNCTIONS)
def test_a_weight_that_is_trained_keeps_what_the_gradient_reads(op_type):
    given = slots(op_type, [3, 5], False, peepholes=op_type == "lstm")
    given["Weight"] = given["Weight"].copy()
    got, want = run(op_type, given, [3, 5])
    assert all(w is not None for w in want)
    if op_type == "lstm":
        assert got is NotImplemented
        return
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


GATES = {"gru": ["BatchGate", "BatchResetHiddenPrev", "BatchHidden"], "lstm": ["BatchGate", "BatchCellPreAct"]}


def model(folder, op_type, fetch, gradient):
    """A saved program of one op (and its gradient op) with a constant weight; its feeds."""
    given = slots(op_type, [3, 5], False)
    given["Weight"] = given["Weight"].copy()
    program, scope = Program(), Scope()
    block = program.global_block()
    for slot, value in given.items():
        dims = [-1, *value.shape[1:]] if slot == "Input" else value.shape
        block.create_var(slot, dtype="float32", shape=dims, lod_level=int(slot == "Input"), persistable=slot != "Input")
        if slot != "Input":
            scope.var(slot).set(LoDTensor(value))
    info = default_manager().op_info(op_type)
    outputs = {slot: [slot] for slot in info.proto.outputs}
    for slot in outputs:
        block.create_var(slot, dtype="float32")
    attrs = {"use_peepholes": False} if op_type == "lstm" else {}
    desc = block.append_op(op_type, {slot: [slot] for slot in given}, outputs, attrs)
    feeds = {"Input": LoDTensor(given["Input"], [[0, 3, 8]])}
    if gradient:
        feeds["Hidden@GRAD"] = LoDTensor(normal(8, SIZE, seed=9), [[0, 3, 8]])
        block.create_var("Hidden@GRAD", dtype="float32", shape=[-1, SIZE], lod_level=1)
        if op_type == "lstm":
            feeds["Cell@GRAD"] = LoDTensor(normal(8, SIZE, seed=8), [[0, 3, 8]])
            block.create_var("Cell@GRAD", dtype="float32", shape=[-1, SIZE], lod_level=1)
        for grad in grad_op_descs(info, desc, []):
            for name in grad.output_arg_names():
                block.create_var(name)
            block.append_op(grad)
    save_inference_model(folder / "m", program, list(feeds), fetch, scope)
    return program, scope, feeds


@pytest.mark.parametrize("op_type", FUNCTIONS)
@pytest.mark.parametrize("gradient", [False, True])
def test_a_predictor_computes_what_is_fetched_or_read(tmp_path, op_type, gradient):
    fetch = ["Input@GRAD", "Weight@GRAD"] if gradient else ["Hidden", *GATES[op_type]]
    program, scope, feeds = model(tmp_path, op_type, fetch, gradient)
    plain = Executor(prepared=False, excluded_libraries=("onednn",))
    want = plain.run(program, feeds, fetch, scope, return_numpy=False)
    predictor = create_predictor(Config(str(tmp_path / "m.pdmodel"), str(tmp_path / "m.pdiparams")))
    for _ in range(2):  # recorded, then generated
        for name, value in feeds.items():
            handle = predictor.get_input_handle(name)
            handle.copy_from_cpu(value.array)
            handle.set_lod(value.lod)
        predictor.run()
        for name, w in zip(predictor.get_output_names(), want, strict=True):
            np.testing.assert_allclose(predictor.get_output_handle(name).copy_to_cpu(), w.array, rtol=1e-4, atol=1e-5)
