"""What operators with an input RankTable share; a Python loop goes over time steps only."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import InvalidArgumentError
from oprack.kernel import Array
from oprack.runtime import OperatorBase
from oprack.tensor import LoDTensor, Scope

from oprack_control_flow.rank_table import LoDRankTable


class RankedOperator(OperatorBase):
    """An op with an input RankTable."""

    def table(self, scope: Scope) -> LoDRankTable:
        name = self.input("RankTable")
        value = self.get_input(scope, name)
        if not isinstance(value, LoDRankTable):
            raise InvalidArgumentError(
                f"op {self.type}: RankTable (variable {name!r}) is a {type(value).__name__}; expected what "
                "lod_rank_table writes"
            )
        return value

    def tensor(self, scope: Scope, slot: str) -> LoDTensor:
        value: LoDTensor = self.get_input(scope, self.input(slot))
        return value

    def put(self, scope: Scope, slot: str, array: Array, lod: Sequence[Sequence[int]] = ()) -> None:
        if slot in self.outputs:
            place = self.tensor(scope, "X").place
            self.set_output(scope, self.output(slot), LoDTensor(array, lod, place=place, check=False))
