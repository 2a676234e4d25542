"""Boxing in programs: ops that bring a variable from one layout into another.

Which ops these are is said by packs, which assign them to roles of the vocabulary. Parts have to be of one size, so
that the same ops serve every size of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from oprack.desc import BlockDesc, OpDesc
from oprack.errors import UnimplementedError
from oprack.packs import op_for
from oprack.packs.manager import default_manager
from oprack.parallel.layouts.boxing import Step, route
from oprack.parallel.layouts.layout import Layout
from oprack.parallel.rings import ring_number
from oprack.types import AttrType, VarType


class ProgramBoxing:
    """Appends boxing to the ops of a block.

    Args:
        block: Where new variables are made.
        emit: Takes the new ops.

    Attributes:
        role: The op_role of the new ops.
    """

    def __init__(self, block: BlockDesc, emit: Callable[[OpDesc], None]) -> None:
        self.block, self._emit = block, emit
        self._count = 0
        self._last: OpDesc
        self.role = 0

    def new_var(self, like: str, what: str) -> str:
        """A new variable with the dtype of another one."""
        self._count += 1
        name = f"{like}@{what}_{self._count}"
        source = self.block.var(like)
        self.block.create_var(name, type=source.type, dtype=source.dtype, shape=source.shape)
        return name

    def box(self, name: str, rank: int, source: Layout, target: Layout, into: str | None = None) -> str:
        """Append the ops that bring a variable into another layout.

        Args:
            name: The variable.
            rank: Its number of dims.
            source: Its layout.
            target: The wanted layout.
            into: The variable that gets the result; default: a new one.

        Returns:
            The variable that has the result.

        Raises:
            UnimplementedError: The variable is no dense tensor, and not only summed.
        """
        self._require_movable(name, source, target)
        now = name
        for step in route(source, target):
            now = self._STEPS[step.source.kind + step.target.kind](self, now, rank, step)
        if into is None:
            return now
        if now == name:
            self._append("copy", {"X": name}, {"Out": into}, {})
        else:
            self._last.rename_output(now, into)
            self.block.remove_var(now)
        return into

    def _require_movable(self, name: str, source: Layout, target: Layout) -> None:
        """Raise UnimplementedError for what no op moves: of SelectedRows there is the sum alone."""
        kind = self.block.var(name).type
        summed = all(s.source.kind + s.target.kind == "PB" for s in route(source, target))
        if kind != VarType.LOD_TENSOR and not (kind == VarType.SELECTED_ROWS and summed):
            raise UnimplementedError(
                f"distribute: variable {name!r} is a {kind.name} in {source!r}, wanted in {target!r}; SelectedRows are "
                "only summed over ranks, and other kinds not moved: give embeddings is_sparse=False, or their table "
                "another layout"
            )

    def scaled(self, name: str, factor: float, into: str | None = None) -> str:
        """Append a multiplication; returns the variable that has the product."""
        out = into or self.new_var(name, "SCALED")
        self._append("affine", {"X": name}, {"Out": out}, {"scale": factor, "bias": 0.0})
        return out

    def average(self, name: str, ring: int, ranks: int) -> None:
        """Append what makes a variable the mean over the ranks of a ring."""
        self.scaled(name, 1.0 / ranks, name)
        self._append("sum_of_ranks", {"X": name}, {"Out": name}, {"ring_id": ring})

    def broadcast(self, name: str, ring: int) -> None:
        """Append what gives all ranks of a ring the value that its first one has."""
        self._append("from_one_rank", {"X": name}, {"Out": name}, {"ring_id": ring, "root": 0})

    def _append(
        self,
        role: str,
        inputs: Mapping[str, Sequence[str] | str],
        outputs: Mapping[str, Sequence[str] | str],
        attrs: Mapping[str, Any],
    ) -> None:
        op_type = op_for(role)
        declared = default_manager().op_info(op_type).proto.attrs
        types = {k: declared[k].type for k in attrs}
        op = OpDesc(op_type, inputs, outputs, attrs, types)
        op.set_attr("op_role", self.role, AttrType.INT)
        self._last = op
        self._emit(op)

    # The transitions --------------------------------------------------------------------------------------------------
    def _moved(self, name: str, order: Sequence[int]) -> str:
        out, shape = self.new_var(name, "MOVED"), self.new_var(name, "XSHAPE")
        self._append("permute_dims", {"X": name}, {"Out": out, "XShape": shape}, {"axis": list(order)})
        return out

    def _gather(self, name: str, rank: int, step: Step) -> str:
        dim = step.source.dim
        order = [dim, *(k for k in range(rank) if k != dim)]
        front = self._moved(name, order) if dim else name
        out = self.new_var(name, "WHOLE")
        n = step.before.placement.shape[step.axis]
        self._append("rows_of_ranks", {"X": front}, {"Out": out}, {"ring_id": _ring(step), "nranks": n})
        return self._moved(out, [order.index(k) for k in range(rank)]) if dim else out

    def _part(self, name: str, rank: int, step: Step) -> str:
        placement = step.before.placement
        n = placement.shape[step.axis]
        parts = [self.new_var(name, "PART") for _ in range(n)]
        attrs = {"axis": step.target.dim, "num": n, "sections": []}
        self._append("split_dim", {"X": name}, {"Out": parts}, attrs)
        return parts[placement.coords[step.axis]]

    def _sum(self, name: str, rank: int, step: Step) -> str:
        out = self.new_var(name, "SUM")
        self._append("sum_of_ranks", {"X": name}, {"Out": out}, {"ring_id": _ring(step)})
        return out

    def _sum_part(self, name: str, rank: int, step: Step) -> str:
        if step.target.dim:
            return self._part(self._sum(name, rank, step), rank, step)
        out = self.new_var(name, "PART")
        n = step.before.placement.shape[step.axis]
        self._append("sum_of_rows_of_ranks", {"X": name}, {"Out": out}, {"ring_id": _ring(step), "nranks": n})
        return out

    def _exchange(self, name: str, rank: int, step: Step) -> str:
        return self._part(self._gather(name, rank, step), rank, step)

    def _one_keeps(self, name: str, rank: int, step: Step) -> str:
        # All ranks have this op, so that ops have the same places in all programs.
        return self.scaled(name, 1.0 if step.before.placement.coords[step.axis] == 0 else 0.0)

    def _pad(self, name: str, rank: int, step: Step) -> str:
        return self._one_keeps(self._gather(name, rank, step), rank, step)

    _STEPS = {
        "SB": _gather,
        "BS": _part,
        "SS": _exchange,
        "SP": _pad,
        "BP": _one_keeps,
        "PB": _sum,
        "PS": _sum_part,
    }


def _ring(step: Step) -> int:
    return ring_number(step.before.placement.group(step.axis))
