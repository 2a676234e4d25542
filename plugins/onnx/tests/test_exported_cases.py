"""Ops written as models and run by ONNX Runtime, against what Paddle gave: a sample; `make onnx-exports` takes all."""

from __future__ import annotations

import itertools

import pytest
from exported_cases import DIFFERS, cases_of, op_types, outcome
from oprack_onnx.export.model import forms

EACH = 3  # cases of an op
COMPLEX = {"as_complex", "complex", "fft_r2c", "stft"}
TRAINS = {"batch_norm", "dropout", "fake_quantize_moving_average_abs_max", "moving_average_abs_max_scale"}
REFUSED = COMPLEX | TRAINS | {"lrn", "rrelu", "trilinear_interp", "trilinear_interp_v2", "while"}
"""Ops of which no case of the sample is written: outputs are complex, or they train, or ask for what forms lack."""
OPS = sorted(op_types())


@pytest.mark.parametrize("first", sorted({op[0] for op in OPS}))
def test_what_is_written_answers_as_paddle(first):
    """Whatever is written gives Paddle's numbers; what can't be written is refused, not written wrongly."""
    ops = [op for op in OPS if op[0] == first]
    found = [outcome(op, case) for op in ops for case in itertools.islice(cases_of(op), EACH)]
    wrong = [o for o in found if o.kind == "differs" and o.case not in DIFFERS]
    assert not wrong, "\n".join(f"{o.case}: {o.reason}" for o in wrong)
    # an op with a form of its own is written in one case at least
    agree = {o.op for o in found if o.kind == "agrees"}
    tried = {o.op for o in found if o.kind in ("foreign", "refused")}
    assert {op for op in tried - agree if op in forms()} <= REFUSED
