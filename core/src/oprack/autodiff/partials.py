"""Partial gradients: a variable receives one from each op that reads it; they are summed before its producer's turn."""

from __future__ import annotations

from dataclasses import field

from oprack.desc import OpDesc
from oprack.packs.manager import PackManager
from oprack.records import dataclass


@dataclass
class _Writer:
    """The writer of a partial gradient: position `index` of an output slot of a gradient op, or None for a seed."""

    op: OpDesc | None
    slot: str
    index: int
    name: str

    def rename(self, name: str) -> None:
        if self.op is not None:
            self.op.outputs[self.slot][self.index] = name
            self.name = name


@dataclass
class Partials:
    """Partial gradients that are not summed yet, by variable.

    Attributes:
        block_idx: Index of the block, which is part of the names of partials that are renamed.
    """

    block_idx: int
    manager: PackManager
    _waiting: dict[str, list[_Writer]] = field(default_factory=dict)

    def start(self, var: str, name: str) -> None:
        """Register a gradient of `var` that exists already, the start of the backward pass."""
        self._waiting.setdefault(var, []).append(_Writer(None, "", 0, name))

    def add(self, var: str, op: OpDesc, slot: str, index: int) -> None:
        """Register a partial gradient of `var`: output `index` of a slot of gradient op `op`."""
        self._waiting.setdefault(var, []).append(_Writer(op, slot, index, op.outputs[slot][index]))

    def has(self, var: str) -> bool:
        return bool(self._waiting.get(var))

    def drop(self, var: str) -> None:
        """Discard the partial gradients of `var`: its value depends on nothing whose gradient is needed."""
        self._waiting.pop(var, None)

    def take(self, var: str, total: str) -> tuple[str | None, OpDesc | None]:
        """Remove the partial gradients of `var` and return how to get their sum.

        Several partials are renamed to `<total>@RENAME@block<b>@<i>`, as in Fluid.

        Returns:
            (name of the gradient, op that sums the partials; None for a single one); (None, None) without any.
        """
        writers = self._waiting.pop(var, [])
        if not writers:
            return None, None
        if len(writers) == 1:
            return writers[0].name, None
        # Renamed only now, as most variables have a single reader, whose gradient keeps its name.
        for i, writer in enumerate(writers):
            writer.rename(f"{total}@RENAME@block{self.block_idx}@{i}")
        op_type = self.manager.op_for("sum_of_all")
        return total, OpDesc(op_type, {"X": [w.name for w in writers]}, {"Out": [total]}, {"use_mkldnn": False})
