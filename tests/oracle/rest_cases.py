"""Cases of ops that no unit test of the other sets runs: steps into and out of quantised numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

_rng = np.random.default_rng(26)
CASES: list[dict[str, Any]] = []


def _x(*shape: int, dtype: str = "float32") -> np.ndarray:
    return (_rng.integers(-32, 33, shape) / 32).astype(dtype)


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
    types = more.pop("types", {})
    dtypes = {name: types[slot] for slot in types for name in outs[slot]}
    CASES.append(
        {"op": op, "ops": [[op, slots, outs, attrs]], "feeds": feeds, "fetch": fetch, "dtypes": dtypes, **more}
    )


def _steps() -> None:
    one, x = {"use_mkldnn": True}, _x(2, 3, 4)
    for negative in (True, False):
        source = x if negative else np.abs(x)
        attrs = {"Scale": 50.0, "is_negative_input": negative, "output_format": "NCHW"} | one
        _one("quantize", {"Input": source}, ["Output"], attrs, types={"Output": "int8" if negative else "uint8"})
    attrs = {"Scale": 50.0, "Shift": 10.0, "output_format": "NCHW"} | one
    _one("quantize", {"Input": x}, ["Output"], attrs, types={"Output": "uint8"}, source="Shift")
    steps = _rng.integers(-127, 128, (2, 3, 4)).astype("int8")
    _one("dequantize", {"Input": steps}, ["Output"], {"Scale": 50.0} | one)
    _one("dequantize", {"Input": steps.view("uint8")}, ["Output"], {"Scale": 50.0, "Shift": 10.0} | one)
    attrs = {"Scale_in": 50.0, "Scale_out": 20.0, "Shift_in": 0.0, "Shift_out": 0.0} | one
    _one("requantize", {"Input": steps}, ["Output"], attrs, types={"Output": "int8"})


_steps()
