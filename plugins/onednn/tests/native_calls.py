"""Valid calls of every kernel of this library: those of recorded cases, and made ones for ops that no case has."""

from __future__ import annotations

import importlib
import pkgutil
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy_kernels import WITHOUT
from oprack.kernel import KernelContext, KernelSpecialization, bind_signature, kernel_specs
from oprack.packs.manager import default_manager
from oprack.runtime import Executor
from oprack.tensor import LoDTensor, Scope
from oprack.testing.cases import load_cases
from oprack.testing.runner import missing_ops
from oprack_onednn import kernels
from oprack_onednn.c.runner import LOOPS, RUNNER
from oprack_onednn.chain.memory import last_strides
from oprack_onednn.chain.primitive_chain import BoundChain
from oprack_onednn.dnnl.library import LIBRARY

CASES = Path(__file__).parents[3] / "tests" / "data" / "cases"
# what the kernels take for granted of parameters: read-only, and owners of their memory
PARAMETERS = {
    "Filter",
    "NextFilter",
    "Weight",
    "WeightX",
    "WeightH",
    "WeightList",
    "Bias",
    "NextBias",
    "Scale",
    "Y",
    "Reduce",
}
PARAMETERS |= {"ReduceBias", "Expand", "ExpandBias", "Project", "Shift", "Transition", "FilterStep"}
MOST_ELEMENTS = 1 << 14


def has_avx512():
    """Whether oneDNN uses vectors of 512 bits, for which alone it has some primitives and layouts."""
    return "AVX-512" in LIBRARY.identity()


class Context(KernelContext):
    """What kernels ask of their KernelContext."""

    def is_read(self, *slots):
        return False


@dataclass(frozen=True)
class Call:
    """A kernel's inputs by slot, lists of arrays."""

    op_type: str
    inputs: dict[str, list[Any]]
    attrs: dict[str, Any]
    lods: dict[str, list[Any]]

    def with_operand(self, slot, i, array):
        values = list(self.inputs[slot])
        values[i] = array
        return replace(self, inputs={**self.inputs, slot: values})

    def context(self):
        return Context(self.op_type, self.attrs, self.lods, packs=default_manager(), rules=WITHOUT)

    def _arguments(self, spec):
        proto = default_manager().op_info(self.op_type).proto
        signature = bind_signature(spec.function, proto)
        args = []
        for slot, many, _ in signature.inputs:
            values = self.inputs.get(slot, [])
            args.append(values if many else values[0] if values else None)
        named = {param: self.attrs[name] for param, name in signature.attrs}
        injected = {"ctx": self.context(), "xp": np, "out": None}
        return args, named | {name: injected[name] for name in signature.injected}

    def direct(self):
        """What the kernel gives."""
        args, named = self._arguments(SPECS[self.op_type])
        return self._by_slot_or_numpy(SPECS[self.op_type].function(*args, **named))

    def prepared(self):
        """A function of a call that does what a plan does; None when the kernel prepares nothing."""
        spec = SPECS[self.op_type]
        dtypes = {s: tuple(None if v is None else v.dtype for v in vs) for s, vs in self.inputs.items()}
        made = spec.specialize and spec.specialize(KernelSpecialization(self.op_type, self.attrs, dtypes, np))
        if made is None:
            return None
        takes_context = "ctx" in getattr(getattr(made, "__code__", None), "co_varnames", ())

        def run(call):
            args, _ = call._arguments(spec)
            while args and args[-1] is None:
                args.pop()
            return call._by_slot_or_numpy(made(*args, **({"ctx": call.context()} if takes_context else {})))

        return run

    def _by_slot_or_numpy(self, result):
        return self.by_numpy() if result is NotImplemented else self._by_slot(result)

    def by_numpy(self):
        """What the kernel gives that runs where this library does not."""
        context = KernelContext(self.op_type, self.attrs, self.lods, packs=default_manager(), rules=WITHOUT)
        protos = default_manager().op_info(self.op_type).proto.inputs
        arrays = {s: v if protos[s].duplicable else v[0] for s, v in self.inputs.items() if v}
        return self._by_slot(context.run_op(self.op_type, arrays, self.attrs, self.lods))

    def _by_slot(self, result):
        slots = list(default_manager().op_info(self.op_type).proto.outputs)
        if not isinstance(result, dict):
            result = dict(zip(slots, result if isinstance(result, tuple) else (result,), strict=False))
        return {k.replace("_grad", "@GRAD"): v for k, v in result.items() if v is not None}


def _specs():
    for _, name, _ in pkgutil.iter_modules(kernels.__path__, kernels.__name__ + "."):
        for spec in kernel_specs(importlib.import_module(name)):
            if spec.library == "onednn":
                yield spec.op_type, spec


SPECS = dict(_specs())


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def image(*shape, seed=0):
    """[N, C, H, W] in channels-last memory."""
    strides = [4 * s for s in last_strides(shape)]
    return np.ndarray(shape, np.float32, normal(*shape, seed=seed).tobytes(), 0, strides).copy("K")


def integers(*shape, seed=0):
    """int8."""
    return np.random.default_rng((seed, *shape)).integers(-127, 128, shape).astype(np.int8)


def frozen(array):
    array = array.copy()
    array.flags.writeable = False
    return array


def _attrs(op_type, attrs):
    proto = default_manager().op_info(op_type).proto
    return {a.name: a.default for a in proto.attrs.values()} | attrs


def call(op_type, inputs, lods=None, **attrs):
    """A call; a bare array is the only one of its slot."""
    lists = {s: list(v) if isinstance(v, list | tuple) else [v] for s, v in inputs.items()}
    given = {s: [frozen(v) if s in PARAMETERS else v for v in vs] for s, vs in lists.items()}
    return Call(op_type, given, _attrs(op_type, attrs), lods or {})


def _training():
    """Calls of ops that only training has."""
    rows, gradients = np.array([[3], [0], [3]]), normal(3, 4)
    for op_type, ids in (("lookup_table_grad", rows), ("lookup_table_v2_grad", rows[:, 0])):
        yield call(op_type, {"W": normal(5, 4), "Ids": ids, "Out@GRAD": gradients}, padding_idx=-1)
    state = {"Moment1": normal(7, 4, seed=2), "Moment2": np.abs(normal(7, 4, seed=3))}
    rates = {s: np.array([v], np.float32) for s, v in (("LearningRate", 0.1), ("Beta1Pow", 0.9), ("Beta2Pow", 0.99))}
    yield call("adam", {"Param": normal(7, 4), "Grad": normal(7, 4, seed=1), **rates, **state})
    states = [normal(1, 3, 12), normal(1, 3, 12, seed=1)]
    after = {"Out@GRAD": normal(4, 3, 12), "State@GRAD": [normal(1, 3, 12, seed=4), normal(1, 3, 12, seed=5)]}
    for mode, gates, count, lengths in (("LSTM", 4, 2, {}), ("GRU", 3, 1, {"SequenceLength": np.array([4, 0, 2])})):
        given = {"Input": normal(4, 3, 10), "PreState": states[:count]} | lengths
        given["WeightList"] = [normal(12 * gates, n, seed=n) for n in (10, 12)] + [normal(12 * gates)] * 2
        named = dict(input_size=10, hidden_size=12, mode=mode)
        kept = {"Reserve": call("rnn", given, **named).direct()["Reserve"]}
        yield call("rnn_grad", given | kept | after | {"State@GRAD": after["State@GRAD"][:count]}, **named)
    for reverse in (False, True):
        lods, named = {"Input": [[[0, 4, 4, 9]]]}, dict(is_reverse=reverse, origin_mode=reverse)
        given = {"Weight": normal(12, 36), "H0": normal(3, 12)}
        bias = {"Input": normal(9, 36), "Bias": normal(1, 36)}
        kept = call("gru", given | bias, lods, **named).by_numpy()
        kept = {slot: kept[slot] for slot in ("BatchGate", "BatchResetHiddenPrev", "BatchHidden")}
        yield call("gru_grad", given | kept | {"Hidden@GRAD": normal(9, 12, seed=1)}, lods, **named)


def made():
    """Calls of ops that no case has, or none that oneDNN serves."""
    yield from _training()
    x, pixels = image(2, 6, 8, 7), image(2, 16, 8, 8)
    w33, square, b = normal(8, 6, 3, 3), normal(12, 12), normal(8)
    lod = [[0, 4, 9]]
    yield call("concat", {"X": [x, image(2, 3, 8, 7)]}, axis=1)
    yield call("nearest_interp", {"X": x}, interp_method="nearest", align_corners=False, out_h=16, out_w=14)
    for reverse in (False, True):
        given = {"Input": normal(9, 36), "Weight": normal(12, 36), "Bias": normal(1, 36)}
        yield call("gru", given | {"H0": normal(2, 12)}, {"Input": [lod]}, is_reverse=reverse)
        given = {"Input": normal(9, 48), "Weight": normal(12, 48), "Bias": normal(1, 48)}
        yield call("lstm", given, {"Input": [lod]}, is_reverse=reverse, use_peepholes=False)
    states = [normal(1, 3, 12), normal(1, 3, 12, seed=1)]
    weights = [normal(48, 10), normal(48, 12), normal(48), normal(48, seed=1)]
    named = dict(input_size=10, hidden_size=12, is_test=True, mode="LSTM")
    yield call("rnn", {"Input": normal(4, 3, 10), "PreState": states, "WeightList": weights}, **named)
    yield call("onednn_attention", {k: normal(2, 5, 16, seed=i) for i, k in enumerate("QKV")}, heads=2, alpha=0.5)
    mask = {"Mask": normal(2, 1, 5, 5)}
    yield call("onednn_attention", {k: normal(2, 5, 16, seed=i) for i, k in enumerate("QKV")} | mask, heads=2)
    fused = {"Input": x, "Filter": w33, "Bias": b}
    yield call("conv2d_post_ops", fused, paddings=[1, 1], post_ops=["relu"])
    residual = {"Residual": image(2, 8, 8, 7, seed=1)}
    yield call("conv2d_post_ops", fused | residual, paddings=[1, 1], post_ops=["residual", "relu"])
    yield call("conv2d_post_ops", {"Input": normal(3, 64, 1, 1), "Filter": normal(8, 64, 1, 1), "Bias": b})
    chain = dict(strides=[1, 1, 2, 2], paddings=[1] * 4 + [0] * 4, groups=[1, 1], biased=[True, True])
    filters = {"Input": x, "Filter": [w33, normal(4, 8, 3, 3)], "Bias": [b, normal(4)]}
    yield call("onednn_conv2d_chain", filters, **chain, post_op_counts=[1, 0], post_ops=["relu"])
    up = {"Input": x, "Filter": normal(6, 5, 2, 2), "Bias": normal(5)}
    yield call("conv2d_transpose_post_ops", up, strides=[2, 2], post_ops=["relu"])
    yield call("conv2d_transpose_post_ops", up, strides=[1, 1])
    pair = up | {"NextFilter": normal(5, 1, 2, 2), "NextBias": normal(1)}
    yield call("onednn_conv2d_transpose_pair", pair, post_ops=["relu"], next_post_ops=["sigmoid"])
    yield call("onednn_eltwise", {"X": x}, post_ops=["relu", "sigmoid"])
    recurrent = {"X": normal(9, 10), "WeightX": [normal(10, 36)], "Weight": [normal(12, 36)], "Bias": [normal(36)]}
    yield call("onednn_fc_gru", recurrent, {"X": [lod]}, is_reverse=[False], origin_mode=False)
    recurrent = {"X": normal(9, 10), "WeightX": [normal(10, 48)], "Weight": [normal(12, 48)], "Bias": [normal(48)]}
    yield call("onednn_fc_lstm", recurrent, {"X": [lod]}, is_reverse=[False], use_peepholes=False)
    step = {"X": normal(1, 3, 10), "PreviousH": normal(1, 3, 12), "PreviousC": normal(1, 3, 12, seed=1)}
    step |= {"WeightX": normal(10, 48), "WeightH": normal(12, 48), "Bias": normal(48)}
    yield call("onednn_lstm_step", step)
    yield call("onednn_take", {"X": normal(2, 5, 7)}, axis=1, places=[3, 0, 3])
    heads = {"Q": normal(9, 4, 8), "K": normal(9, 2, 8, seed=1), "V": normal(9, 2, 8, seed=2)}
    lods = {slot: [lod] for slot in heads}
    forward = call("sequence_attention", heads, lods, causal=True)
    yield forward
    yield call("sequence_attention", heads | {"RelativeBias": normal(4, 7)}, lods)
    results = {s: v for s, v in forward.by_numpy().items() if s in ("Out", "LogSumExp")}
    yield call("sequence_attention_grad", heads | results | {"Out@GRAD": normal(9, 4, 8, seed=3)}, lods, causal=True)
    product = {"X": normal(5, 12), "Y": square, "Bias": normal(12)}
    yield call("matmul_post_ops", product, x_num_col_dims=1, post_ops=["relu"])
    yield call("matmul_post_ops", product | {"Residual": normal(5, 12, seed=1)}, post_ops=["residual"])
    steps = np.abs(normal(8)) / 64
    bytes_ = {"Input": x, "Filter": integers(8, 6, 3, 3), "FilterStep": steps, "Bias": b, **residual}
    yield call("onednn_quantized_conv2d", bytes_, paddings=[1, 1], post_ops=["residual", "relu"], input_step=1 / 64)
    bytes_ = {"Input": integers(2, 6, 8, 7), "Filter": integers(8, 6, 3, 3), "FilterStep": steps}
    yield call("onednn_quantized_conv2d", bytes_, input_step=1 / 64, output_step=1 / 4)
    bytes_ = {"X": normal(5, 12), "Y": integers(12, 8), "FilterStep": steps, "Bias": b, "Residual": normal(5, 8)}
    yield call("onednn_quantized_matmul", bytes_, post_ops=["residual"], input_step=1 / 64)
    bytes_ = {"X": integers(5, 12), "Y": integers(12, 8), "FilterStep": steps}
    yield call("onednn_quantized_matmul", bytes_, input_step=1 / 64, output_step=1 / 4)
    point = {"Input": pixels, "Filter": normal(8, 16, 1, 1), "Bias": b, "InputScale": normal(2, 16, 1, 1)}
    yield call("onednn_pointwise_conv2d", point, post_ops=["relu"])
    more = {"OutputScale": normal(2, 8, 1, 1), "Residual": image(2, 8, 8, 8, seed=1)}
    yield call("onednn_pointwise_conv2d", point | more, post_ops=["residual"])
    yield call("reduce_max", {"X": pixels}, dim=[2, 3])
    yield call("reduce_max", {"X": normal(3, 5, 32)}, dim=[1])
    squeeze = {"X": pixels, "Reduce": normal(4, 16, 1, 1), "ReduceBias": normal(4)}
    squeeze |= {"Expand": normal(16, 4, 1, 1), "ExpandBias": normal(16)}
    yield call("onednn_squeeze_excite", squeeze, reduce_post_ops=["relu"], expand_post_ops=["sigmoid"])
    maps = {"X": [image(2, 6, 8, 8), image(2, 6, 4, 4)], "Filter": [w33, normal(8, 6, 3, 3, seed=1)], "Bias": b}
    none = dict(projects=[-1, -1], shifts=[-1, -1], scales=[-1, -1])
    yield call("onednn_upsampled_conv2d", maps, factors=[1, 2], **none, post_ops=["relu"])
    scaled = maps | {"Scale": [normal(2, 6, 1, 1)]}
    yield call("onednn_upsampled_conv2d", scaled, factors=[1, 2], **none | {"scales": [-1, 0]})
    tiles = {"Input": pixels, "Filter": normal(36, 16, 16), "Bias": normal(16), "Residual": image(2, 16, 8, 8, seed=1)}
    yield call("onednn_winograd_conv2d", tiles, paddings=[1] * 4, post_ops=["residual", "relu"])


def recorded(op_type):
    """Calls of the cases' programs, with the parameters as a predictor has them."""
    path = CASES / f"{op_type.removesuffix('_grad')}.npz"
    stage = "gradient" if op_type.endswith("_grad") else "forward"
    executor, proto = Executor(prepared=False, excluded_libraries=("onednn",)), default_manager().op_info(op_type).proto
    for case in load_cases(path) if path.exists() else ():
        if not case.has(stage) or missing_ops(case, stage, default_manager()):
            continue
        program, feed = case.program(stage), case.inputs(stage)
        for op in (op for op in program.global_block().ops if op.type == op_type):
            read = {slot for slot, *_ in bind_signature(SPECS[op_type].function, proto).inputs}
            given = {slot: names for slot, names in op.inputs.items() if slot in read and names}
            made = [n for names in given.values() for n in names if n not in feed]
            got = executor.run(program, feed, made, Scope(), return_numpy=False)
            values = feed | dict(zip(made, got, strict=True))
            tensors = {slot: [values[n] for n in names] for slot, names in given.items()}
            every = [v for vs in tensors.values() for v in vs]
            if not all(isinstance(v, LoDTensor) for v in every) or every[0].dtype != "float32":
                continue
            if 0 < sum(v.array.size for v in every) <= MOST_ELEMENTS:
                lods = {slot: [v.lod for v in vs] for slot, vs in tensors.items()}
                arrays = {slot: [v.array for v in vs] for slot, vs in tensors.items()}
                yield call(op_type, arrays, lods, **op.attrs)


@contextmanager
def native_runs():
    """A list that gets an element for each chain that runs, and for each call of a small function beside the runner."""
    runs, run, checked = [], BoundChain.run_addresses, BoundChain.addresses
    small = {name: getattr(RUNNER, name) for name in LOOPS}

    def counted(self, *addresses):
        runs.append(len(addresses))
        return run(self, *addresses)

    def checked_counted(self, operands):  # asked for in each run of a row of chains
        runs.append(len(operands))
        return checked(self, operands)

    def small_counted(function, *arguments):
        runs.append(len(arguments))
        return function(*arguments)

    BoundChain.run_addresses, BoundChain.addresses = counted, checked_counted
    for name, function in small.items():
        setattr(RUNNER, name, function and partial(small_counted, function))
    try:
        yield runs
    finally:
        BoundChain.run_addresses, BoundChain.addresses = run, checked
        for name, function in small.items():
            setattr(RUNNER, name, function)


def calls_of(op_type, most=2):
    """Valid calls of a kernel of this library that oneDNN computes."""
    found = []
    for candidate in [c for c in made() if c.op_type == op_type] or recorded(op_type):
        with native_runs() as runs:
            candidate.direct()
        if runs:
            found.append(candidate)
            if len(found) == most:
                break
    return found
