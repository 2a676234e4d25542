"""Which of oneDNN's implementations of a convolution to take; its own order is not always that of speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from oprack.cache import BUDGET, Cache
from oprack.python.interruption import let_interruptions_pass

from oprack_onednn.chain.descs import cached_desc
from oprack_onednn.dnnl import _c
from oprack_onednn.dnnl.layout import NotServedError
from oprack_onednn.dnnl.objects import LOST, PrimitiveDesc

# Place of the filter's layout among the arguments of a descriptor's creation.
_FILTER = 4

# Numbers in a filter up to which the direct implementation is no slower than brgemm's on a CPU that halves vectors: for
# windows of up to three taps, and for larger ones. It was 30 % faster for the smallest windows and channels, as fast at
# these sizes, and up to 20 % slower far above.
_SMALL_FILTERS = 3 << 16, 1 << 16
# Channels of a result up to which half a vector saved is worth vectors of half the length, of which there are fewer.
_FEW_CHANNELS = 56
# Pixels up to which, and numbers in a 1x1 filter from which on, each is read from outside the caches for next to no
# arithmetic: brgemm's order of reading then takes up to a third longer than that of the direct implementation.
_FEW_PIXELS, _LARGE_FILTER = 12, 1 << 18

# By the shape of a depthwise filter and the bytes of its numbers: the layout that the implementation that was taken for
# it wants. Asked for in that layout, oneDNN does not try those that come before it, for any size of the image.
_LAYOUTS = Cache(4096)

# oneDNN 3.2 loses memory for each primitive of these that is destroyed. When it has lost this part of the budget of all
# caches, convolutions of new sizes get the implementations behind them, which take about 5 % longer.
_LOSING, _MOST_LOST = "brgconv", 8


def convolution(*arguments: Any, outputs: int, depthwise: bool = False) -> PrimitiveDesc:
    """The primitive descriptor of a forward convolution.

    Depthwise: jit_dw, which comes behind brgemm's, takes 20 to 45 % less time at any stride. On a CPU that computes
    vectors in halves, a last vector of channels that is at most half full costs as much as a full one, which short
    vectors do without where there are few; and the direct implementation suits small filters better, and takes half as
    long to compile, and large ones over a few pixels.

    Args:
        arguments: What the descriptor's creation takes.
        outputs: Channels of the result.
        depthwise: Whether each group has one channel.
    """
    return cached_desc(_choose, outputs, depthwise, halves_vectors(), *arguments)


def _choose(outputs: int, depthwise: bool, halves: bool, *arguments: Any) -> PrimitiveDesc:
    shape = arguments[_FILTER].shape  # () when its layout is given, which settles the implementation
    if depthwise:
        return _depthwise(shape, arguments)
    desc = PrimitiveDesc("convolution_forward", *arguments)
    if desc.impl.startswith(_LOSING) and BUDGET.taken(LOST) > BUDGET.limit // _MOST_LOST:
        desc = _another_kind(desc, arguments)
    name, _, isa = desc.impl.partition(":")
    short = 0 < outputs % 16 <= 8 and outputs <= _FEW_CHANNELS
    if halves and (name.startswith("brgconv") or name == "jit") and short:
        return _another(f"{name}:avx2", desc, arguments)
    if halves and (name, isa) == ("brgconv_1x1", "avx512_core") and shape:
        source = arguments[_FILTER - 1].shape
        if is_read_once(math.prod(source) // source[1], math.prod(shape)):
            return _another("jit_1x1:avx512_core", desc, arguments)
    if halves and (name, isa) == ("brgconv", "avx512_core") and _is_small(shape, len(arguments[_FILTER - 1].shape) - 2):
        return _another("jit:avx512_core", desc, arguments)
    return desc


def is_read_once(pixels: int, numbers: int) -> bool:
    """Whether reading a filter of one tap, of so many numbers, is what a convolution of so many pixels takes."""
    return pixels <= _FEW_PIXELS and numbers >= _LARGE_FILTER


def _is_small(shape: tuple[int, ...], dims: int) -> bool:
    """Whether the direct implementation suits a filter of that shape, whose last `dims` dims are the window."""
    return bool(shape) and math.prod(shape) <= _SMALL_FILTERS[math.prod(shape[-dims:]) > 3]


def _depthwise(shape: tuple[int, ...], arguments: Sequence[Any]) -> PrimitiveDesc:
    key = shape, arguments[_FILTER].itemsize
    known = _LAYOUTS[key] if shape else None
    if known is not None:
        with suppress(NotServedError):
            desc = PrimitiveDesc("convolution_forward", *arguments[:_FILTER], known, *arguments[_FILTER + 1 :])
            if desc.impl.startswith("jit_dw:"):
                return desc
    desc = PrimitiveDesc("convolution_forward", *arguments)
    if not desc.impl.startswith("brdgmm_dw:"):
        return desc
    desc = _another(desc.impl.replace("brdgmm_dw:", "jit_dw:"), desc, arguments)
    if shape and desc.impl.startswith("jit_dw:"):
        _LAYOUTS[key] = desc.desc(_c.QUERY_WEIGHTS_MD)
    return desc


def _another(wanted: str, desc: PrimitiveDesc, arguments: Sequence[Any]) -> PrimitiveDesc:
    """The implementation of that name, which comes behind that of `desc`; where there is none, the first one."""
    # Implementations come one after the other from the same descriptor, which can't go back.
    while desc.next_impl() and not desc.slow:
        if desc.impl == wanted:
            return desc
    return PrimitiveDesc("convolution_forward", *arguments)


def _another_kind(desc: PrimitiveDesc, arguments: Sequence[Any]) -> PrimitiveDesc:
    """The first implementation that loses no memory; where there is none that is fast, the first of all."""
    while desc.next_impl() and not desc.slow:
        if not desc.impl.startswith(_LOSING):
            return desc
    return PrimitiveDesc("convolution_forward", *arguments)


@cache
def halves_vectors() -> bool:
    """Whether this CPU computes vectors of 512 bits as two of 256 (Zen 4), so that short ones lose nothing."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        let_interruptions_pass()
        return False
    # All cores of a machine are of one kind here, so the first entry says enough.
    first = dict(line.split(":", 1) for line in text.split("\n\n")[0].splitlines() if ":" in line)
    known = {key.strip(): value.strip() for key, value in first.items()}
    is_zen = known.get("vendor_id") == "AuthenticAMD" and known.get("cpu family") == "25"
    return is_zen and "avx512f" in known.get("flags", "").split()
