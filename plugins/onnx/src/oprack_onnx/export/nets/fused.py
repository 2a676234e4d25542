"""Ops that passes of Paddle put in the place of several."""

from __future__ import annotations

import numpy as np
from oprack.errors import UnimplementedError

from oprack_onnx.export.expressions import Expr, arange, maybe, read, write
from oprack_onnx.export.graph import Call, exported
from oprack_onnx.export.lod import Sequences, set_lod
from oprack_onnx.export.nets.sequences import pooled, windows

_ACTIVATIONS = {"": "Identity", "identity": "Identity", "relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid"}
_ACTIVATIONS |= {"gelu": "Gelu"}


def activated(x: Expr, name: str) -> Expr:
    """An activation by its name."""
    if name not in _ACTIVATIONS:
        raise UnimplementedError(f"its activation is {name}")
    return x.op(_ACTIVATIONS[name])


@exported("fc")
def fc(call: Call) -> None:
    if call.attr("padding_weights") or call.attr("use_quantizer"):
        raise UnimplementedError("its weights are padded or quantised")
    x, weight, axis = read(call, "Input"), read(call, "W"), call.attr("in_num_col_dims")
    out = x.op("Flatten", axis=axis) @ weight
    bias = maybe(call, "Bias")
    out = activated(out if bias is None else out + bias.reshape(1, -1), call.attr("activation_type"))
    write(call, out.op("Reshape", x.shape(0, axis).join(weight.size(1), axis=0)))


@exported("fusion_repeated_fc_relu")
def fusion_repeated_fc_relu(call: Call) -> None:
    x = read(call)
    for i in range(len(call.op.input("W"))):
        x = (x @ read(call, "W", i) + read(call, "Bias", i).reshape(1, -1)).op("Relu")
        write(call, x, "ReluOut", i)
    write(call, x)


@exported("fusion_squared_mat_sub")
def fusion_squared_mat_sub(call: Call) -> None:
    x, y = read(call), read(call, "Y")
    product = x @ y
    squares = [v * v for v in (x, y, product)]
    for slot, value in zip(("SquaredX", "SquaredY", "SquaredXY"), squares, strict=True):
        write(call, value, slot)
    write(call, (squares[2] - squares[0] @ squares[1]) * call.attr("scalar"))


@exported("fused_softmax_mask", "fused_softmax_mask_upper_triangle")
def fused_softmax_mask(call: Call) -> None:
    x = read(call)
    if call.type == "fused_softmax_mask":
        x = x + read(call, "Mask")
    else:
        place = arange(x.size(-1))
        x = (place.unsqueeze(0) <= place.unsqueeze(1)).select(x, -np.inf)
    name = "Out" if call.op.output("Out") else "Softmax"
    write(call, x.op("Softmax", axis=-1), name)


@exported("skip_layernorm")
def skip_layernorm(call: Call) -> None:
    x = read(call) + read(call, "Y")
    axis = call.attr("begin_norm_axis")
    write(
        call,
        x.op("LayerNormalization", read(call, "Scale"), read(call, "Bias"), axis=axis, epsilon=call.attr("epsilon")),
    )


@exported("fused_embedding_seq_pool")
def fused_embedding_seq_pool(call: Call) -> None:
    table, ids, sequences = read(call, "W"), read(call, "Ids").reshape(-1), Sequences(call, "Ids")
    rows, padding = table.gather(ids), call.attr("padding_idx")
    if padding is not None and padding != -1:
        rows = ids.equal(padding).unsqueeze(1).select(0, rows)
    write(call, pooled(call, rows, sequences, "SUM", 2))


@exported("fusion_seqpool_concat", "fusion_seqpool_cvm_concat")
def fusion_seqpool_concat(call: Call) -> None:
    parts = []
    for i in range(len(call.op.input("X"))):
        x, sequences = read(call, "X", i), Sequences(call, "X", i)
        found = pooled(call, x, sequences, call.attr("pooltype"), call.rank("X", i))
        if call.type == "fusion_seqpool_cvm_concat":
            logs = [(found.slice(k, k + 1, 1) + 1.0).log() for k in (0, 1)]
            found = logs[0].join(logs[1] - logs[0], found.slice(2, 2**31, 1), axis=1)
        parts.append(found)
    write(call, parts[0].join(*parts[1:], axis=1))
    set_lod(call, [arange(Sequences(call).count + 1)])  # each row is a sequence of its own


@exported("fusion_seqconv_eltadd_relu")
def fusion_seqconv_eltadd_relu(call: Call) -> None:
    x, kernel, sequences = read(call), read(call, "Filter"), Sequences(call)
    found = windows(x, sequences, call.attr("contextStart"), call.attr("contextLength"))
    columns = found.op("Reshape", x.shape(0, 1).join(kernel.size(0), axis=0))
    write(call, columns, "ColMat")
    write(call, (columns @ kernel + read(call, "Bias").reshape(1, -1)).op("Relu"))
    set_lod(call, sequences.levels)


@exported("self_dp_attention")
def self_dp_attention(call: Call) -> None:
    """X [batch, length, 3, heads, width] of queries, keys and values."""
    x = read(call)
    query, key, value = (x.at(k, 2).transpose(0, 2, 1, 3) for k in range(3))
    weights = (query @ key.transpose(0, 1, 3, 2) * call.attr("alpha")).op("Softmax", axis=-1)
    write(call, (weights @ value).transpose(0, 2, 1, 3))
