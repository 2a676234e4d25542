"""Arguments that are rank tables."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.layers import Variable, check_variable
from oprack.types import VarType


def table_variable(value: Variable) -> Variable:
    check_variable(value, "rank_table", "rank table")
    if value.type is not VarType.LOD_RANK_TABLE:
        raise InvalidArgumentError(
            f"variable {value.name!r} is a {value.type.name}; expected a rank table made by layers.lod_rank_table"
        )
    return value
