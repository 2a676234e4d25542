"""Partial gradients: a variable that several ops read gets one from each; they are summed at its own op."""

from __future__ import annotations

from dataclasses import dataclass, field

from oprack.desc import OpDesc
from oprack.packs.manager import PackManager


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
    """Partial gradients that wait to be summed, by variable.

    Attributes:
        block_idx: Index of the block, which is part of the names of partials that are renamed.
    """

    block_idx: int
    manager: PackManager
    _waiting: dict[str, list[_Writer]] = field(default_factory=dict)

    def start(self, var: str, name: str) -> None:
        """The gradient `name` of `var` exists already."""
        self._waiting.setdefault(var, []).append(_Writer(None, "", 0, name))

    def add(self, var: str, op: OpDesc, slot: str, index: int) -> None:
        """Gradient op `op` writes a partial gradient of `var`."""
        self._waiting.setdefault(var, []).append(_Writer(op, slot, index, op.outputs[slot][index]))

    def has(self, var: str) -> bool:
        return bool(self._waiting.get(var))

    def drop(self, var: str) -> None:
        """Forget what waits for `var`: the value that it belongs to depends on nothing of interest."""
        self._waiting.pop(var, None)

    def take(self, var: str, total: str) -> tuple[str | None, OpDesc | None]:
        """(name of the gradient of `var`, the op that has to be added to sum it); (None, None) when there is none.

        Several partials are renamed to `<total>@RENAME@block<b>@<i>`, as Fluid names them.
        """
        writers = self._waiting.pop(var, [])
        if not writers:
            return None, None
        if len(writers) == 1:
            return writers[0].name, None
        # Renamed only now: with a single reader, which most variables have, the gradient keeps its name.
        for i, writer in enumerate(writers):
            writer.rename(f"{total}@RENAME@block{self.block_idx}@{i}")
        op_type = self.manager.op_for("sum_of_all")
        return total, OpDesc(op_type, {"X": [w.name for w in writers]}, {"Out": [total]}, {"use_mkldnn": False})
