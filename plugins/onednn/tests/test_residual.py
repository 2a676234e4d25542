"""A residual that is given is added by a post-op, and one that a post-op adds is given: models may say otherwise."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from native_calls import SPECS, calls_of
from oprack.errors import InvalidArgumentError
from oprack.packs.manager import default_manager
from oprack.runtime.infer import RuntimeInferShapeContext
from oprack.tensor import LoDTensor
from oprack_nn.ops.post_ops import RESIDUAL, encode
from oprack_onednn.chain.primitive_chain import OneDNNError
from test_operands import as_constants, outcome


def _has_residual(op_type):
    proto = default_manager().op_info(op_type).proto
    return "Residual" in proto.inputs and "post_ops" in proto.attrs


OPS = [op_type for op_type in sorted(SPECS) if _has_residual(op_type)]
RELU = encode("relu", [])


def with_post_ops(call, post_ops, residual):
    """The call with a residual of the shape of its result, or none."""
    inputs = {slot: values for slot, values in call.inputs.items() if slot != "Residual"}
    attrs = call.attrs | {"post_ops": list(post_ops)}
    if "post_op_counts" in attrs:
        attrs["post_op_counts"] = [*[0] * (len(attrs["post_op_counts"]) - 1), len(post_ops)]
    made = replace(call, inputs=inputs, attrs=attrs)
    return made if residual is None else replace(made, inputs={**inputs, "Residual": [residual]})


def result_of(call):
    (values,) = with_post_ops(call, [], None).by_numpy().values()
    return np.array(values[0] if isinstance(values, list) else values, np.float32)


def ask_rule(call):
    info = default_manager().op_info(call.op_type)
    values = {slot: [LoDTensor(a, check=False) for a in arrays] for slot, arrays in call.inputs.items()}
    names = {slot: [f"{slot}{i}" for i in range(len(arrays))] for slot, arrays in call.inputs.items()}
    outputs = {slot: [slot] for slot in info.proto.outputs}
    info.infer_shape(RuntimeInferShapeContext(info.proto, call.attrs, values, names, outputs))


@pytest.mark.parametrize("op_type", OPS)
def test_the_rule_wants_both_or_neither(op_type):
    for call in calls_of(op_type):
        added = result_of(call)
        for post_ops, residual in (([RESIDUAL], added), ([RELU, RESIDUAL], added), ([RELU], None), ([], None)):
            ask_rule(with_post_ops(call, post_ops, residual))
        for post_ops, residual in (([RESIDUAL], None), ([RELU], added), ([], added), ([RESIDUAL] * 2, added)):
            with pytest.raises(InvalidArgumentError, match=f"op {op_type}: post_ops is .*; expected"):
                ask_rule(with_post_ops(call, post_ops, residual))


def test_a_chain_adds_it_at_the_end():
    call = next(c for c in calls_of("onednn_conv2d_chain") if len(c.attrs["post_op_counts"]) > 1)
    call = with_post_ops(call, [RESIDUAL], result_of(call))
    counts = [1, *[0] * (len(call.attrs["post_op_counts"]) - 1)]
    with pytest.raises(InvalidArgumentError, match="the last of"):
        ask_rule(replace(call, attrs=call.attrs | {"post_op_counts": counts}))


@pytest.mark.parametrize("op_type", OPS)
def test_kernels_without_the_rule_leave_memory_alone(op_type, any_size, monkeypatch):
    as_constants(monkeypatch)
    for call in calls_of(op_type):
        added = result_of(call)
        before = added.copy()
        for post_ops, residual in (([RESIDUAL], None), ([RELU], added), ([], added)):
            wrong = with_post_ops(call, post_ops, residual)
            with suppress(OneDNNError):  # oneDNN misses an argument, and says so
                outcome(wrong.direct)
            np.testing.assert_array_equal(added, before, "it was written to")
