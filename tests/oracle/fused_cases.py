"""Cases of fused ops beside those of the unit tests: peepholes, initial states, attention, all pairs of functions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

_rng = np.random.default_rng(24)
CASES: list[dict[str, Any]] = []
LOD = [[3, 1, 2]]


def _x(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (_rng.integers(-32, 33, shape) / 32).astype(dtype)


def _ids(*shape: int, high: int = 7) -> np.ndarray:
    return _rng.integers(0, high, shape).astype("int64")


def _one(op: str, inputs: dict[str, Any], outputs: list[str], attrs: dict[str, Any], **more: Any) -> None:
    """A case of one op: slot -> value or list of values; outputs are slots (`Out*3`: a list)."""
    feeds, slots, outs = {}, {}, {}
    for slot, values in inputs.items():
        values = values if isinstance(values, list) else [values]
        slots[slot] = [f"{slot.lower()}{i}" if len(values) > 1 else slot.lower() for i in range(len(values))]
        feeds |= dict(zip(slots[slot], values, strict=True))
    for text in outputs:
        slot, _, count = text.partition("*")
        outs[slot] = [f"{slot}_out{i or ''}" for i in range(int(count or 1))]
    fetch = [name for slot in more.pop("fetch", outs) for name in outs[slot]]
    CASES.append({"op": op, "ops": [[op, slots, outs, attrs]], "feeds": feeds, "fetch": fetch, **more})


def _dense() -> None:
    for activation, dims, bias in itertools.product(("", "relu"), (1, 2), (True, False)):
        if activation and not bias:  # Paddle refuses it
            continue
        inputs = {"Input": _x(2, 3, 4), "W": _x(12 if dims == 1 else 4, 5)} | ({"Bias": _x(1, 5)} if bias else {})
        _one("fc", inputs, ["Out"], {"in_num_col_dims": dims, "activation_type": activation})
    padded = {"Input": _x(2, 4), "W": _x(8, 9), "Bias": _x(5)}
    _one("fc", padded, ["Out"], {"padding_weights": True}, source="padding")
    for binary, unary in itertools.product(
        ("elementwise_add", "elementwise_mul"), ("relu", "scale", "tanh", "sigmoid")
    ):
        for pair in ([unary, binary], [binary, unary]):
            attrs = {"functor_list": pair, "axis": 1, "scale": 0.5}
            inputs = {"X": _x(2, 3, 4), "Y": _x(3, 4)}
            outputs = ["Out", "IntermediateOut"]
            more = {"wrt": ["x", "y"], "fetch": ["Out"], "source": str(pair)}
            _one("fused_elemwise_activation", inputs, outputs, attrs, **more)


def _attention() -> None:
    _one("self_dp_attention", {"X": _x(2, 3, 3, 4, 5)}, ["Out"], {"alpha": 0.25, "head_number": 4})


def _recurrent() -> None:
    buffers = ["XX", "BatchedInput", "BatchedHidden", "BatchedCell", "ReorderedH0", "ReorderedC0"]
    states = {"H0": _x(3, 4), "C0": _x(3, 4)}
    for peepholes, known, reverse in itertools.product((True, False), (True, False), (True, False)):
        attrs = {"use_peepholes": peepholes, "is_reverse": reverse}
        weights = {"WeightH": _x(4, 16), "Bias": _x(1, 28 if peepholes else 16)} | (states if known else {})
        for batched in (True, False):
            rows = {"X": (_x(6, 5), LOD), "WeightX": _x(5, 16)}
            outputs = ["Hidden", "Cell", *buffers, "CheckedCell"]
            more = {"fetch": ["Hidden", "Cell"], "source": f"sequences first: {not batched}"}
            _one("fusion_lstm", {**rows, **weights}, outputs, attrs | {"use_seq": not batched}, **more)
        ids = {"Ids": (_ids(6, 1), LOD), "Embeddings": _x(7, 16)}
        _one(
            "fused_embedding_fc_lstm", {**ids, **weights}, ["Hidden", "Cell", *buffers], attrs, fetch=["Hidden", "Cell"]
        )
    outputs = ["Hidden", "Cell", "AttentionedX", "AttentionFCOut", "LSTMX", "LSTMOUT"]
    for known, bias, scalar in itertools.product((True, False), (True, False), (0, 1, 2)):
        inputs = {"X": (_x(6, 5), LOD), "C0": _x(3, 4), "AttentionWeight": _x(9, 1), "LSTMWeight": _x(9, 16)}
        inputs |= {"LSTMBias": _x(1, 16)} | ({"H0": _x(3, 4)} if known else {})
        inputs |= {"AttentionBias": _x(1, 1)} if bias else {}
        inputs |= {"AttentionScalar": 1 + _x(1, 1)} if scalar else {}
        inputs |= {"AttentionScalarBias": _x(1, 1)} if scalar == 2 else {}
        _one("attention_lstm", inputs, outputs, {}, fetch=["Hidden", "Cell"])


def _sequence() -> None:
    for sparse in (True, False):
        attrs = {"combiner": "sum", "is_sparse": sparse}
        inputs = {"W": _x(7, 3), "Ids": (_ids(6, 1), LOD)}
        _one("fused_embedding_seq_pool", inputs, ["Out"], attrs, wrt=["w"], source=f"sparse: {sparse}")
    for kind in ("SUM", "AVERAGE", "SQRT"):
        rows = [(_x(6, 3), LOD), (_x(4, 3), [[1, 2, 1]]), (_x(3, 3), [[1, 1, 1]])]
        _one("fusion_seqpool_concat", {"X": rows}, ["Out"], {"pooltype": kind})
        rows = [(abs(_x(6, 4)), LOD), (abs(_x(4, 4)), [[1, 2, 1]])]
        _one("fusion_seqpool_cvm_concat", {"X": rows, "CVM": _x(3, 2)}, ["Out"], {"pooltype": kind})
    for activation in ("identity", "tanh", "sigmoid"):
        inputs = {"X": [(_x(6, 3), LOD), (_x(3, 2), [[1, 1, 1]]), (_x(3, 1), [[1, 1, 1]])], "FCWeight": _x(6, 4)}
        _one("fusion_seqexpand_concat_fc", inputs, ["Out", "FCOut"], {"fc_activation": activation}, fetch=["Out"])
    for start, length in ((-2, 3), (0, 2), (1, 1)):
        inputs = {"X": (_x(6, 3), LOD), "Filter": _x(3 * length, 4), "Bias": _x(1, 4)}
        attrs = {"contextLength": length, "contextStart": start}
        _one("fusion_seqconv_eltadd_relu", inputs, ["Out", "ColMat"], attrs, fetch=["Out"])


def _update() -> None:
    many = {s: [_x(2, 3), _x(4)] for s in ("Params", "Grads", "Moments1")}
    many |= {"Moments2": [abs(_x(2, 3)), abs(_x(4))], "LearningRate": np.array([0.25], "float32")}
    many |= {s: [np.array([v], "float32")] * 2 for s, v in (("Beta1Pows", 0.9), ("Beta2Pows", 0.999))}
    outputs = [f"{s}Out*2" for s in ("Params", "Moments1", "Moments2", "Beta1Pows", "Beta2Pows")]
    for attrs in ({"use_adamw": True, "weight_decay": 0.125}, {"use_adamw": False}):
        _one("fused_adam", many, outputs, {"chunk_size": 65536, **attrs}, source=str(attrs))


_dense()
_attention()
_recurrent()
_sequence()
_update()
