"""The communicator of a ring, and the dtypes that collectives take."""

from __future__ import annotations

from oprack.errors import InvalidArgumentError
from oprack.parallel import Communicator
from oprack.parallel.rings import ring

PLACES = ("cpu",)
NUMBERS = ("float16", "float32", "float64", "int32", "int64")
ANY = (*NUMBERS, "bool", "int8", "uint8")

__all__ = ["ANY", "NUMBERS", "PLACES", "require_ranks", "ring"]


def require_ranks(op_type: str, group: Communicator, nranks: int) -> None:
    """Raise InvalidArgumentError if a ring has another number of ranks than the program was written for."""
    if group.size != nranks:
        raise InvalidArgumentError(
            f"op {op_type}: the program was written for {nranks} ranks, but {group.size} run; start it with oprack "
            f"launch -n {nranks}"
        )
