"""What became of the dtypes that a command line lets ops compute in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from oprack.ir import registered_passes

if TYPE_CHECKING:
    from oprack.ir import Optimized
    from oprack.packs.manager import PackManager

_OPTIONS = {"int8": "--int8", "bfloat16": "--bf16"}
_REASONS = {
    "int8": "the model quantises nothing (`oprack quantize` makes one that does), or this CPU lacks VNNI",
    "bfloat16": "no convolution or product of the model can, or this CPU has no such instructions",
}


def unused_precisions(wanted: Iterable[str], optimized: Optimized, manager: PackManager) -> Iterator[str]:
    """For each dtype that no op of a rewritten model computes in, why that may be.

    Args:
        wanted: Names of dtypes.
        optimized: What the passes did.
        manager: The packs that brought them.
    """
    by_dtype: dict[str, set[str]] = {}
    for one in registered_passes(manager):
        by_dtype.setdefault(one.precision, set()).add(one.name)
    matched = {report.name for report in optimized.reports if report.matches}
    for dtype in wanted:
        passes = by_dtype.get(dtype, set())
        if not passes:
            yield f"{_OPTIONS[dtype]} has no effect: no installed plugin computes in {dtype}; pip install oprack-onednn"
        elif not passes & matched:
            yield f"{_OPTIONS[dtype]} has no effect: {_REASONS[dtype]}"
