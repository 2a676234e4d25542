"""Shape rules with dims that only a run knows: no call that runs is refused, and nothing untrue of it is promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from oprack.op.desc_rules import infer_op
from oprack.packs.manager import default_manager
from oprack.program import Program
from oprack.types import VarType


def shape_of(op_type: str, inputs: Mapping[str, Sequence[int]], attrs: Mapping[str, Any], out: str) -> Any:
    """The dims that the rule of an op says of an output; None where it says not even how many there are."""
    block = Program().global_block()
    info = default_manager().op_info(op_type)
    for slot, dims in inputs.items():
        kind = VarType.SPARSE_COO if op_type.startswith("sparse") and slot == "x" else VarType.LOD_TENSOR
        block.create_var(slot, type=kind, dtype="float32", shape=dims, lod_level=int(slot == "Input"))
    outputs = {s: [f"{s}.out"] for s, p in info.proto.outputs.items() if s == out or not p.dispensable}
    for (name,) in outputs.values():
        block.create_var(name)
    op = block.append_op(op_type, {slot: [slot] for slot in inputs}, outputs, attrs)
    infer_op(op, block, info, guesses=False)
    return block.var(f"{out}.out").shape


CONV3D = {"paddings": [0], "dilations": [1], "strides": [1], "groups": 1, "subm": False}
CONV3D |= {name: 2 * value for name, value in CONV3D.items() if isinstance(value, list)}


@pytest.mark.parametrize(
    ("op_type", "inputs", "attrs", "out", "want"),
    [
        # Y is [3, 1] in a run, and its trailing 1 is dropped
        ("elementwise_div", {"X": (2, -1, -1), "Y": (3, -1)}, {"axis": 2}, "Out", (2, -1, 3)),
        ("elementwise_add", {"X": (2, 4, 3), "Y": (-1, -1)}, {"axis": 2}, "Out", (2, 4, 3)),
        ("affine_grid", {"Theta": (-1, -1, -1), "OutputShape": (-1,)}, {}, "Output", None),
        ("affine_grid", {"Theta": (-1, -1, -1), "OutputShape": (4,)}, {}, "Output", (-1, -1, -1, 2)),
        ("sparse_conv3d", {"x": (1, 3, 4, 2), "kernel": (-1, -1, -1, -1)}, CONV3D, "out", (1, -1, -1, -1)),
        ("sparse_conv3d", {"x": (1, 3, 4, -1), "kernel": (2, 2, 2, 5)}, CONV3D, "out", (1, 2, 3, 5)),
        ("uniform_random", {"ShapeTensor": (-1,)}, {}, "Out", None),
        ("uniform_random", {"ShapeTensor": (2,)}, {}, "Out", (-1, -1)),
        ("fill_constant", {"ShapeTensor": (-1,)}, {}, "Out", None),
        ("reshape2", {"X": (4, 6), "Shape": (-1,)}, {"shape": [2, 12]}, "Out", None),
        ("unsqueeze2", {"X": (4, 6), "AxesTensor": (-1,)}, {}, "Out", None),
        ("gather_nd", {"X": (5, 3), "Index": (2, -1)}, {}, "Out", None),
        ("gather_nd", {"X": (5, 3), "Index": (-1, 1)}, {}, "Out", (-1, 3)),
        ("gru", {"Input": (5, -1), "Weight": (-1, -1)}, {}, "BatchGate", (5, -1)),
        ("lstm", {"Input": (5, -1), "Weight": (-1, -1), "Bias": (1, -1)}, {}, "BatchGate", (5, -1)),
        ("lstsq", {"X": (-1, 3), "Y": (-1, 2)}, {}, "Residuals", (-1,)),
        ("lstsq", {"X": (-1, 4, 3), "Y": (-1, 4, 2)}, {}, "Residuals", (-1, 2)),
    ],
)
def test_what_is_not_known_is_not_promised(
    op_type: str, inputs: Mapping[str, Sequence[int]], attrs: Mapping[str, Any], out: str, want: Any
) -> None:
    assert shape_of(op_type, inputs, attrs, out) == want
