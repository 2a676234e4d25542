"""What gradient ops say that lack what their forward ops kept for them."""

from __future__ import annotations

import numpy as np
import pytest
from oprack.tensor import LoDTensor
from oprack.testing import OpCase

STEPS, STATE = np.ones((2, 1, 2)), np.ones((2, 1, 2))
WEIGHTS = [np.ones((2, 2))] * 4 + [np.ones(2)] * 4

FAILURES = [
    (
        OpCase(
            "sequence_pool_grad",
            {"X": LoDTensor(np.ones((3, 2)), [[0, 3]]), "Out@GRAD": np.ones((1, 2))},
            {"pooltype": "MAX"},
            {"X@GRAD": np.ones((3, 2))},
        ),
        "MaxIndex is absent and pooltype MAX",
    ),
    (
        OpCase(
            "rnn_grad",
            {
                "Input": STEPS,
                "PreState": [STATE],
                "WeightList": WEIGHTS,
                "Reserve": np.ones((2, 2, 1, 2)),
                "Out": STEPS,
                "Out@GRAD": STEPS,
            },
            {"mode": "RNN_TANH", "hidden_size": 2, "input_size": 2, "num_layers": 2, "dropout_prob": 0.5},
            {"Input@GRAD": STEPS},
        ),
        "DropoutState is absent, with 2 layers and dropout_prob 0.5",
    ),
]


@pytest.mark.parametrize("record, message", FAILURES, ids=lambda v: getattr(v, "op", ""))
def test_messages(record: OpCase, message: str) -> None:
    reasons = record.check()
    assert reasons and message in reasons[0], reasons
