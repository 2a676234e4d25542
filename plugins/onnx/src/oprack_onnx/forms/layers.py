"""Normalizations, dropout and random numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from oprack.types import VarType

from oprack_onnx.table import form
from oprack_onnx.values import FLOATING, HALF, Node, Value, dtype_of
from oprack_onnx.writer import Writer

Results = list["Value | None"]


@form("BatchNormalization")
def batch_norm(node: Node, w: Writer) -> Results:
    """batch_norm of inference; onnx_batch_norm_training where the batch's own statistics count."""
    x, scale, bias, mean, var = (node.input(i) for i in range(5))
    epsilon = float(node.attrs["epsilon"])
    training = bool(node.attrs.get("training_mode", 0)) or (node.opset < 14 and any(node.outputs[1:]))
    if training:
        attrs = {"epsilon": epsilon, "momentum": float(node.attrs["momentum"])}
        inputs = {"X": x, "scale": scale, "B": bias, "input_mean": mean, "input_var": var}
        outs = [
            w.declare(n or "norm", v.dtype, v.shape) for n, v in zip(node.outputs[:3], (x, mean, var), strict=False)
        ]
        slots = dict(zip(("Y", "running_mean", "running_var"), outs, strict=False))
        w.emit("onnx_batch_norm_training", inputs, slots, attrs)
        return list(outs)
    if epsilon > MOST_EPSILON:
        return [_scaled(node, w, x, (scale, bias, mean, var), epsilon)]
    if x.rank is not None and not 2 <= x.rank <= 5:
        raise node.lacking(f"its input has rank {x.rank}; expected 2 to 5")
    half = x.dtype in HALF
    inputs = {"X": x, "Scale": scale, "Bias": bias, "Mean": mean, "Variance": var}
    if half:
        inputs = {slot: w.cast(v, VarType.FP32) for slot, v in inputs.items()}
    out = w.declare(node.outputs[0], VarType.FP32 if half else x.dtype, x.shape)
    # a program of inference writes the statistics to their own variables, as Paddle's do
    plain: dict[str, Any] = {"epsilon": epsilon, "is_test": True, "use_global_stats": True, "data_layout": "NCHW"}
    slots = {"Y": out, "MeanOut": inputs["Mean"], "VarianceOut": inputs["Variance"]}
    if any(v.constant is None for v in (inputs["Mean"], inputs["Variance"])):
        slots = {"Y": out}
    w.emit("batch_norm", inputs, slots, plain)
    return [w.cast(out, x.dtype)]


MOST_EPSILON = 1e-3
"""The largest one that Fluid's norms take."""


def _scaled(node: Node, w: Writer, x: Value, terms: tuple[Value, Value, Value, Value], epsilon: float) -> Value:
    """A batch norm of inference by its formula."""
    shape = [-1, *([1] * ((x.rank or 2) - 2))]
    scale, bias, mean, var = (w.reshape(t, shape) for t in terms)
    deviation = w.run("sqrt", {"X": w.binary("elementwise_add", var, w.constant(epsilon, var.dtype))}, shape=var.shape)
    factor = w.binary("elementwise_div", scale, deviation)
    out = w.binary("elementwise_mul", w.binary("elementwise_sub", x, mean), factor)
    return w.binary("elementwise_add", out, bias)


@form("InstanceNormalization")
def instance_norm(node: Node, w: Writer) -> Results:
    """instance_norm; by its formula where epsilon is larger than Fluid's op takes."""
    x = node.input()
    if float(node.attrs["epsilon"]) > MOST_EPSILON:
        attrs = {"dim": list(range(2, x.rank or 3)), "keep_dim": True, "reduce_all": False}
        mean = w.run("reduce_mean", {"X": x}, attrs)
        away = w.binary("elementwise_sub", x, mean)
        var = w.run("reduce_mean", {"X": w.binary("elementwise_mul", away, away)}, attrs)
        shape = [-1, *([1] * ((x.rank or 3) - 2))]
        deviation = w.run("sqrt", {"X": w.binary("elementwise_add", var, w.constant(node.attrs["epsilon"], x.dtype))})
        out = w.binary("elementwise_mul", w.binary("elementwise_div", away, deviation), w.reshape(node.input(1), shape))
        return [w.binary("elementwise_add", out, w.reshape(node.input(2), shape))]
    inputs = {"X": x, "Scale": node.input(1), "Bias": node.input(2)}
    return [w.run("instance_norm", inputs, {"epsilon": float(node.attrs["epsilon"])}, out="Y", shape=x.shape)]


@form("LRN")
def lrn(node: Node, w: Writer) -> Results:
    """lrn, whose factor is not divided by the size."""
    size = int(node.attrs["size"])
    attrs = {"n": size, "k": node.attrs["bias"], "alpha": node.attrs["alpha"] / size, "beta": node.attrs["beta"]}
    if node.input().rank != 4 or size % 2 == 0:
        raise node.lacking(f"its input has rank {node.input().rank} and size {size}; expected rank 4 and an odd size")
    return [w.run("lrn", {"X": node.input()}, attrs | {"data_format": "NCHW"}, shape=node.input().shape)]


@form("LayerNormalization")
def layer_norm(node: Node, w: Writer) -> Results:
    """layer_norm; the function body where mean and deviation are asked for, or the shapes are not known."""
    x, scale, bias, axis = node.input(0), node.input(1), node.get(2), int(node.attrs["axis"])
    if any(node.outputs[1:]) or x.shape is None or x.dtype not in (VarType.FP32, VarType.FP64):
        return []
    begin = axis % len(x.shape)
    rest = x.shape[begin:]
    size = math.prod(rest)
    if begin == 0 or min(rest) <= 0 or scale.shape is None or math.prod(scale.shape) != size:
        return []
    inputs = {"X": x, "Scale": w.reshape(scale, [size]), "Bias": None if bias is None else w.reshape(bias, [size])}
    attrs = {"epsilon": float(node.attrs["epsilon"]), "begin_norm_axis": begin}
    return [w.run("layer_norm", inputs, attrs, out="Y", shape=x.shape)]


@form("Dropout")
def dropout(node: Node, w: Writer) -> Results:
    """Nothing in inference; onnx_dropout where a run may be training, or the mask is asked for."""
    x = node.input()
    training = node.get(2)
    known_off = training is None or (training.constant is not None and not bool(training.constant.reshape(-1)[0]))
    if known_off and not node.wants(1):
        return [w.run("assign", {"X": x}, shape=x.shape)]
    ratio = node.get(1)
    outs = {"output": w.declare(node.outputs[0] or "dropout", x.dtype, x.shape)}
    if node.wants(1):
        outs["mask"] = w.declare(node.outputs[1], VarType.BOOL, x.shape)
    attrs = {"seed": int(node.attrs.get("seed", 0))}
    w.emit("onnx_dropout", {"data": x, "ratio": ratio, "training_mode": training}, outs, attrs)
    return list(outs.values())


@form("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike")
def random(node: Node, w: Writer) -> Results:
    """gaussian_random or uniform_random."""
    like = node.op.endswith("Like")
    dims = list(node.input().shape or ()) if like else [int(d) for d in node.attrs["shape"]]
    if like and not node.input().size_is_known:
        raise node.lacking("the shape of its input is not known")
    dtype = dtype_of(int(node.attrs["dtype"]), node.where) if "dtype" in node.attrs else node.input().dtype
    attrs = {"shape": dims, "dtype": int(dtype), "seed": int(node.attrs.get("seed", 0))}
    if "Normal" in node.op:
        attrs |= {"mean": node.attrs["mean"], "std": node.attrs["scale"]}
        return [w.run("gaussian_random", {}, attrs, dtype=dtype, shape=tuple(dims))]
    attrs |= {"min": node.attrs["low"], "max": node.attrs["high"]}
    return [w.run("uniform_random", {}, attrs, dtype=dtype, shape=tuple(dims))]


@form("Bernoulli")
def bernoulli(node: Node, w: Writer) -> Results:
    """bernoulli and cast."""
    x = node.input()
    dtype = dtype_of(int(node.attrs["dtype"]), node.where) if "dtype" in node.given else x.dtype
    if x.dtype not in FLOATING:
        raise node.lacking(f"its input has dtype {x.dtype.name}; expected a floating one")
    found = w.run("bernoulli", {"X": x}, shape=x.shape)
    return [w.cast(found, dtype)]


@form("TfIdfVectorizer")
def tf_idf(node: Node, w: Writer) -> Results:
    """onnx_tf_idf of integers."""
    if "pool_strings" in node.given:
        raise node.lacking("its pool is text, and oprack has no tensors of text")
    names = (
        "mode",
        "min_gram_length",
        "max_gram_length",
        "max_skip_count",
        "ngram_counts",
        "ngram_indexes",
        "pool_int64s",
        "weights",
    )
    attrs = {n: node.attrs[n] for n in names if n in node.attrs}
    return [w.run("onnx_tf_idf", {"X": node.input()}, attrs, out="Y", dtype=VarType.FP32, shape=node.out_shape())]


@form("MelWeightMatrix")
def mel_weight_matrix(node: Node, w: Writer) -> Results:
    """onnx_mel_weight_matrix."""
    dtype = dtype_of(int(node.attrs["output_datatype"]), node.where)
    slots = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    inputs = {slot: node.input(i) for i, slot in enumerate(slots)}
    attrs = {"output_datatype": int(dtype)}
    return [w.run("onnx_mel_weight_matrix", inputs, attrs, out="output", dtype=dtype, shape=node.out_shape())]


@form("DFT")
def dft(node: Node, w: Writer) -> Results:
    """onnx_dft; its axis was an attribute before opset 20."""
    x, axis = node.input(), node.get(2)
    if node.opset < 20:
        axis = w.constant(int(node.attrs.get("axis", 1)))
    attrs = {n: bool(node.attrs[n]) for n in ("inverse", "onesided")}
    inputs = {"input": x, "dft_length": node.get(1), "axis": axis}
    return [w.run("onnx_dft", inputs, attrs, out="output", shape=node.out_shape())]


@form("TreeEnsemble", domain="ai.onnx.ml")
def tree_ensemble(node: Node, w: Writer) -> Results:
    """onnx_tree_ensemble."""
    tensors = {"splits": "nodes_splits", "leaf_weights": "leaf_weights", "modes": "nodes_modes"}
    inputs = {"X": node.input()} | {slot: w.parameter(slot, node.attrs[name]) for slot, name in tensors.items()}
    if "membership_values" in node.given:
        inputs["membership_values"] = w.parameter("membership_values", node.attrs["membership_values"])
    names = (
        "n_targets",
        "aggregate_function",
        "post_transform",
        "tree_roots",
        "nodes_featureids",
        "nodes_truenodeids",
        "nodes_trueleafs",
        "nodes_falsenodeids",
        "nodes_falseleafs",
        "nodes_missing_value_tracks_true",
        "leaf_targetids",
    )
    attrs = {n: node.attrs[n] for n in names if n in node.attrs}
    return [w.run("onnx_tree_ensemble", inputs, attrs, out="Y", shape=node.out_shape())]


# Recurrent layers -----------------------------------------------------------------------------------------------------
_GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2)}
"""Op -> which of ONNX's gates each of Fluid's is."""
_ACTIVATIONS = {"LSTM": ["Sigmoid", "Tanh", "Tanh"], "GRU": ["Sigmoid", "Tanh"]}


@form("LSTM", "GRU")
def recurrent(node: Node, w: Writer) -> Results:
    """rnn where weights and sizes are known and activations are the usual ones, else onnx_lstm or onnx_gru."""
    x, held = node.input(), [node.input(1).constant, node.input(2).constant]
    bias = node.get(3)
    directions = {"forward": 1, "bidirectional": 2}.get(node.attrs.get("direction", "forward"), 0)
    usual = node.attrs.get("activations") in (None, [], _ACTIVATIONS[node.op] * directions)
    own = [n for n in ("clip", "input_forget", "layout", "activation_alpha", "activation_beta") if node.attrs.get(n)]
    linear = node.op == "LSTM" or bool(node.attrs.get("linear_before_reset", 0))
    if not directions or not usual or own or not linear or x.dtype is not VarType.FP32 or x.rank != 3 or node.has(7):
        return []
    if any(a is None for a in held) or (bias is not None and bias.constant is None):
        return []
    states = [node.get(5), node.get(6)][: 2 if node.op == "LSTM" else 1]
    batch = (x.shape or (-1, -1))[1]
    hidden = int(node.attrs.get("hidden_size") or (held[1].shape[2] if held[1] is not None else 0))
    if batch < 0 and any(s is None for s in states):
        return []
    weights = _weights(node, [a for a in held if a is not None], bias, hidden, w)
    zeros = np.zeros((directions, max(batch, 0), hidden), np.float32)
    first = [w.parameter(f"{node.outputs[0] or 'rnn'}.start", zeros) if s is None else s for s in states]
    steps = (x.shape or (-1,))[0]
    attrs: dict[str, Any] = {"is_bidirec": directions == 2, "hidden_size": hidden, "num_layers": 1, "mode": node.op}
    attrs |= {"input_size": int(held[0].shape[2]) if held[0] is not None else 0, "is_test": True}
    out = w.declare("rnn", x.dtype, (steps, batch, directions * hidden))
    lasts = [w.declare("rnn.state", x.dtype, (directions, batch, hidden)) for _ in states]
    inputs: dict[str, Any] = {"Input": x, "PreState": first, "WeightList": weights}
    if node.has(4):
        inputs["SequenceLength"] = w.cast(node.input(4), VarType.INT32)
    w.emit("rnn", inputs, {"Out": out, "State": lasts}, attrs)
    results: Results = [_by_direction(out, directions, hidden, w) if node.wants(0) else None, *lasts]
    return results[: len(node.outputs)]


def _weights(node: Node, held: list[np.ndarray], bias: Value | None, hidden: int, w: Writer) -> list[Value]:
    """Matrices of all directions, then biases, with the gates in Fluid's order."""
    order = _GATES[node.op]
    rows = np.concatenate([np.arange(g * hidden, (g + 1) * hidden) for g in order])
    count, gates = len(held[0]), len(order) * hidden
    both = np.zeros((count, 2 * gates), np.float32) if bias is None or bias.constant is None else bias.constant
    arrays = [held[k][d][rows] for d in range(count) for k in (0, 1)]
    arrays += [both[d, k * gates : (k + 1) * gates][rows] for d in range(count) for k in (0, 1)]
    return [w.parameter(f"{node.input(1).name}.{i}", np.ascontiguousarray(a)) for i, a in enumerate(arrays)]


def _by_direction(out: Value, directions: int, hidden: int, w: Writer) -> Value:
    """[steps, directions, batch, hidden] of [steps, batch, directions * hidden]."""
    steps, batch = (out.shape or (-1, -1))[:2]
    if directions == 1:
        return w.run("unsqueeze2", {"X": out}, {"axes": [1]}, shape=(steps, 1, batch, hidden))
    return w.transpose(w.reshape(out, [0, 0, directions, hidden]), [0, 2, 1, 3])
