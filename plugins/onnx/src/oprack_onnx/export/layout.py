"""Images whose channels are the last axis, written as ONNX has them."""

from __future__ import annotations

from typing import Any

from oprack.types import VarType

from oprack_onnx.export.graph import Call, Dims

_LAYOUTS = {"data_format", "data_layout"}
_LAST = {"NHWC": "NCHW", "NDHWC": "NCDHW", "NLC": "NCL", "NWC": "NCW"}
_SLOTS = {"X", "Input", "Out", "Output", "Y"}
"""The inputs and outputs that are images, in every op that has one of these attributes."""


class ChannelsLast(Call):
    """An op whose images are transposed on the way in, and on the way out."""

    def attr(self, name: str) -> Any:
        value = super().attr(name)
        return _LAST.get(value, value) if name in _LAYOUTS else value

    def dims(self, slot: str = "X", i: int = 0) -> Dims:
        found = super().dims(slot, i)
        return (found[0], found[-1], *found[1:-1]) if slot in _SLOTS and len(found) > 2 else found

    def input(self, slot: str = "X", i: int = 0) -> str:
        value, rank = super().input(slot, i), self.rank(slot, i) if slot in _SLOTS else 0
        return self.node("Transpose", value, perm=[0, rank - 1, *range(1, rank - 1)]) if rank > 2 else value

    def set(self, value: str, slot: str = "Out", i: int = 0, dtype: VarType | None = None) -> None:
        # the image that comes out has the rank of the one that goes in
        image = next((s for s in ("X", "Input") if self.has(s)), "")
        rank = self.rank(image) if slot in _SLOTS and image else 0
        if rank > 2:
            value = self.node("Transpose", value, perm=[0, *range(2, rank), 1])
        super().set(value, slot, i, dtype)


def turned(call: Call) -> Call:
    """The call, as one of images whose channels come first."""
    layouts = [call.op.attr(name) for name in _LAYOUTS]
    if any(value in _LAST for value in layouts):
        other = ChannelsLast(call.op, call.graph)
        other.told = call.told
        return other
    return call
