"""The dtypes that a command line lets ops compute in, and what became of them."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oprack.ir import Optimized
    from oprack.packs.manager import PackManager

_OPTIONS = {"int8": "--int8", "bfloat16": "--bf16"}
_REASONS = {
    "int8": "the model quantises nothing (`oprack quantize` makes one that does), or this CPU lacks VNNI",
    "bfloat16": "no convolution or product of the model can, or this CPU has no such instructions",
}


def add_precisions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--int8",
        action="store_true",
        help="multiply bytes where the model quantises both factors, as those of `oprack quantize` do; needs VNNI",
    )
    parser.add_argument(
        "--bf16", action="store_true", help="let convolutions and products round what they multiply to bfloat16"
    )


def precisions_of(args: argparse.Namespace) -> dict[str, None]:
    """The dtypes that ops may compute in besides their own, as oprack.ir.select_passes takes them."""
    return {name: None for name, given in (("bfloat16", args.bf16), ("int8", args.int8)) if given}


def unused_precisions(wanted: Iterable[str], optimized: Optimized, manager: PackManager) -> Iterator[str]:
    """For each dtype that no op of a rewritten model computes in, why that may be.

    Args:
        wanted: Names of dtypes.
        optimized: What the passes did.
        manager: The packs that brought them.
    """
    from oprack.ir import registered_passes

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
