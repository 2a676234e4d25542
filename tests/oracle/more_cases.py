"""Cases beside those of the unit tests: empty pieces, LoD, integers and odd shapes. Recorded by record_cases.py."""

from __future__ import annotations

from typing import Any

import numpy as np

_rng = np.random.default_rng(20)
CASES: list[dict[str, Any]] = []


def _x(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (_rng.integers(-32, 33, shape) / 16).astype(dtype)


def _ints(*shape: int, high: int = 9, dtype: str = "int64") -> np.ndarray:
    return _rng.integers(0, high, shape).astype(dtype)


def _one(op: str, inputs: dict[str, Any], outputs: list[str], attrs: dict[str, Any], **more: Any) -> None:
    """A case of one op: slot -> value or list of values; outputs are slots, of which `fetch` are compared."""
    feeds, slots = {}, {}
    for slot, values in inputs.items():
        values = values if isinstance(values, list) else [values]
        slots[slot] = [f"{slot.lower()}{i}" if len(values) > 1 else slot.lower() for i in range(len(values))]
        feeds |= dict(zip(slots[slot], values, strict=True))
    outs = {s: [s + "_out"] for s in outputs}
    fetch = [s + "_out" for s in more.pop("fetch", outputs)]
    CASES.append({"op": op, "ops": [[op, slots, outs, attrs]], "feeds": feeds, "fetch": fetch, **more})


def _concat() -> None:
    shapes = [
        ("empty last", 0, [(2, 3), (0, 3)]),
        ("empty first", 0, [(0, 3), (2, 3)]),
        ("empty in the middle", 1, [(2, 1), (2, 0), (2, 3)]),
        ("all empty", 0, [(0, 3), (0, 3)]),
        ("other dims of an empty piece", 2, [(0, 2, 0, 3), (2, 2, 1, 3)]),
        ("empty by another dim", 0, [(2, 3), (1, 0)]),
        ("empty by another dim, first", 1, [(0, 2), (3, 2)]),
        ("many pieces, one empty", 0, [(1, 2)] * 5 + [(0, 2)] + [(1, 2)] * 6),
    ]
    for source, axis, dims in shapes:
        pieces = [_x(*d) for d in dims]
        names = [f"x{i}" for i in range(len(dims))]
        _one("concat", {"X": pieces}, ["Out"], {"axis": axis}, wrt=names, source=source)
        _one("concat", {"X": [p.astype("int64") for p in pieces]}, ["Out"], {"axis": axis}, source=source + ", int64")
    lod = [(_x(3, 2), [[1, 2]]), (_x(2, 2), [[2, 0]]), (np.zeros((0, 2), "float32"), [[0, 0]])]
    _one("concat", {"X": lod}, ["Out"], {"axis": 0}, wrt=["x0", "x1", "x2"], source="rows of sequences")
    _one("concat", {"X": lod[::-1]}, ["Out"], {"axis": 0}, wrt=["x0", "x1", "x2"], source="empty sequences first")
    same = [(_x(3, 2), [[1, 2]]), (_x(3, 1), [[3, 0]])]
    _one("concat", {"X": same}, ["Out"], {"axis": 1}, wrt=["x0", "x1"], source="columns of sequences")
    _one("concat", {"X": [_x(2, 2), _x(0, 2, dtype="float64")]}, ["Out"], {"axis": 0}, source="empty of other dtype")
    part = [(_x(3, 2), [[1, 2]]), _x(2, 2)]
    _one("concat", {"X": part[::-1]}, ["Out"], {"axis": 0}, wrt=["x0", "x1"], source="sequences last")
    two = [(_x(3, 2), [[1, 1], [1, 2]]), (_x(2, 2), [[2], [0, 2]])]
    _one("concat", {"X": two}, ["Out"], {"axis": 0}, wrt=["x0", "x1"], source="sequences of two levels")
    _one("concat", {"X": lod, "AxisTensor": np.array([0], "int32")}, ["Out"], {"axis": 1}, source="axis as a tensor")
    other = {"X": same, "AxisTensor": np.array([1], "int32")}
    _one("concat", other, ["Out"], {"axis": 0}, source="another axis as a tensor")


def _top_k() -> None:
    scores = (_rng.permutation(18).reshape(6, 3) / 8).astype("float32")
    for lod in ([[2, 4]], [[0, 6]], [[1, 1], [2, 4]]):
        source = f"lod {lod}"
        _one("top_k", {"X": (scores, lod)}, ["Out", "Indices"], {"k": 2}, wrt=["x"], source=source)
        attrs = {"k": 2, "axis": -1, "largest": True, "sorted": True}
        _one("top_k_v2", {"X": (scores, lod)}, ["Out", "Indices"], attrs, wrt=["x"], source=source)
    k = np.array([1], "int32")
    _one("top_k", {"X": (scores, [[2, 4]]), "K": k}, ["Out", "Indices"], {"k": 2}, wrt=["x"], source="K as a tensor")
    attrs = {"k": 2, "axis": 0, "largest": False, "sorted": True}
    _one("top_k_v2", {"X": (scores, [[2, 4]])}, ["Out", "Indices"], attrs, wrt=["x"], source="axis 0 with LoD")


def _rnn() -> None:
    for mode, gates in (("LSTM", 4), ("GRU", 3), ("RNN_TANH", 1), ("RNN_RELU", 1)):
        for layers, both in ((1, False), (2, False), (2, True), (3, True)):
            ways, size, width, steps, batch = 2 if both else 1, 3, 5, 4, 2
            weights, biases = [], []
            for layer in range(layers):
                for _ in range(ways):
                    rows = width if layer == 0 else size * ways
                    weights += [_x(gates * size, rows) / 4, _x(gates * size, size) / 4]
                    biases += [_x(gates * size) / 4, _x(gates * size) / 4]
            names = [f"weightlist{i}" for i in range(len(weights) * 2)]
            state = [_x(layers * ways, batch, size) / 4 for _ in range(2 if mode == "LSTM" else 1)]
            attrs = {
                "mode": mode, "hidden_size": size, "input_size": width, "num_layers": layers, "is_bidirec": both,
                "dropout_prob": 0.0, "is_test": False, "seed": 0,
            }  # fmt: skip
            inputs = {"Input": _x(steps, batch, width) / 2, "PreState": state, "WeightList": weights + biases}
            feeds = {"input": inputs["Input"]}
            state_names = [f"prestate{i}" for i in range(len(state))]
            feeds |= dict(zip(state_names, state, strict=True)) | dict(zip(names, weights + biases, strict=True))
            outs = {"Out": ["out"], "State": [f"state{i}" for i in range(len(state))]}
            outs |= {"Reserve": ["reserve"], "DropoutState": ["dropoutstate"]}
            op = ["rnn", {"Input": ["input"], "PreState": state_names, "WeightList": names}, outs, attrs]
            CASES.append({
                "op": "rnn", "ops": [op], "feeds": feeds, "fetch": ["out", *outs["State"]],
                "wrt": ["input", *state_names, *names], "source": f"{mode} of {layers} layers, both ways: {both}",
            })  # fmt: skip


def _auc() -> None:
    predict = np.array([[0.2, 0.8], [0.6, 0.4], [0.9, 0.1], [0.3, 0.7]], "float32")
    label = np.array([[1], [0], [0], [1]], "int64")
    for thresholds, slide in ((7, 0), (7, 1), (7, 3)):
        size = thresholds + 1 if slide == 0 else (1 + slide) * (thresholds + 1) + 1
        for shape in ((size,), (1, size), (1, size, 1)):
            stat = np.zeros(shape, "int64")
            attrs = {"curve": "ROC", "num_thresholds": thresholds, "slide_steps": slide}
            inputs = {"Predict": predict, "Label": label, "StatPos": stat, "StatNeg": stat.copy()}
            outs = ["AUC", "StatPosOut", "StatNegOut"]
            _one("auc", inputs, outs, attrs, source=f"statistics of shape {shape}, slide_steps {slide}")


def _merged_momentum() -> None:
    for nesterov, method in ((False, ""), (True, ""), (False, "l2_decay"), (True, "l2_decay")):
        params, grads, velocity = ([_x(2, 3), _x(4), _x(1)] for _ in range(3))
        names = [f"{s}{i}" for s in ("param", "grad", "velocity") for i in range(3)]
        feeds = dict(zip(names, params + grads + velocity, strict=True)) | {"rate": np.array([0.1], "float32")}
        slots = {"Param": names[:3], "Grad": names[3:6], "Velocity": names[6:]}
        for rates in (["rate"], ["rate"] * 3):
            attrs = {"mu": 0.9, "use_nesterov": nesterov, "rescale_grad": 1.0}
            attrs |= {"regularization_method": [method] * 3, "regularization_coeff": [0.2, 0.0, 0.3]} if method else {}
            outs = {"ParamOut": slots["Param"], "VelocityOut": slots["Velocity"]}
            op = ["merged_momentum", slots | {"LearningRate": rates}, outs, attrs]
            fetch = [*outs["ParamOut"], *outs["VelocityOut"]]
            source = f"nesterov {nesterov}, {method or 'no decay'}, {len(rates)} rates"
            CASES.append({"op": "merged_momentum", "ops": [op], "feeds": feeds, "fetch": fetch, "source": source})


def _tensor_arrays() -> None:
    for dtype in ("int64", "int32", "float64"):
        for stack, axis in ((True, 0), (True, 1), (False, 0), (False, 1)):
            feeds: dict[str, Any] = {"a": _x(2, 3, dtype=dtype), "b": _x(2, 3, dtype=dtype)}
            feeds |= {"i0": np.array([0], "int64"), "i1": np.array([1], "int64")}
            ops = [
                ["write_to_array", {"X": [n], "I": [i]}, {"Out": ["array"]}, {}] for n, i in (("a", "i0"), ("b", "i1"))
            ]
            attrs = {"axis": axis, "use_stack": stack}
            outs = {"Out": ["out"], "OutIndex": ["index"]}
            ops.append(["tensor_array_to_tensor", {"X": ["array"]}, outs, attrs])
            CASES.append({
                "op": "tensor_array_to_tensor", "ops": ops, "feeds": feeds, "fetch": ["out"],
                "arrays": ["array"], "array_dtype": dtype, "dtypes": {"out": dtype, "index": "int32"},
                "source": f"{dtype}, stack {stack}, axis {axis}",
            } | ({"wrt": ["a", "b"]} if dtype == "float64" else {}))  # fmt: skip


def _layer_norm() -> None:
    for lod in ([[2, 1, 3]], [[0, 6]], [[1, 2], [2, 1, 3]]):
        for shape, begin in (((6, 4), 1), ((6, 2, 3), 1), ((6, 2, 3), 2)):
            width = int(np.prod(shape[begin:]))
            inputs = {"X": (_x(*shape), lod), "Scale": _x(width), "Bias": _x(width)}
            attrs = {"epsilon": 1e-5, "begin_norm_axis": begin}
            outs, source = ["Y", "Mean", "Variance"], f"lod {lod}, begin {begin}"
            more = {"wrt": ["x", "scale", "bias"], "fetch": ["Y", "Mean", "Variance"]}
            _one("layer_norm", inputs, outs, attrs, source=source, no_cotangent=["Mean_out", "Variance_out"], **more)


def _polygons() -> None:
    ints = {"Index_out": "int32", "NmsRoisNum_out": "int32"}
    for corners in (4, 8, 12, 16):
        turns = np.sort(_rng.uniform(0, 2 * np.pi, (2, 9, corners)), axis=-1)
        radius, centres = _rng.uniform(1, 4, (2, 9, corners, 1)), _rng.uniform(0, 8, (2, 9, 1, 2))
        points = centres + radius * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
        boxes = points.reshape(2, 9, 2 * corners).astype("float32")
        scores = _rng.permutation(54).reshape(2, 3, 9).astype("float32") / 54
        for threshold, eta, background, keep in ((0.1, 1.0, -1, -1), (0.3, 1.0, 0, 7), (0.7, 0.8, 1, -1)):
            attrs = {
                "background_label": background, "score_threshold": 0.05, "nms_top_k": 8, "nms_threshold": threshold,
                "nms_eta": eta, "keep_top_k": keep, "normalized": corners != 8,
            }  # fmt: skip
            inputs, source = {"BBoxes": boxes, "Scores": scores}, f"{corners} corners, threshold {threshold}"
            _one("multiclass_nms3", inputs, ["Out", "Index", "NmsRoisNum"], attrs, source=source, dtypes=ints)
            _one("multiclass_nms2", inputs, ["Out", "Index"], attrs, source=source, dtypes=ints)
            _one("multiclass_nms", inputs, ["Out"], attrs, source=source)


for _add in (_concat, _top_k, _rnn, _auc, _merged_momentum, _tensor_arrays, _layer_norm, _polygons):
    _add()
