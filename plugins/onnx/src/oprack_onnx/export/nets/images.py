"""Patches of images, and images of patches."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import UnimplementedError

from oprack_onnx.export.expressions import Expr, arange, constant, read, write
from oprack_onnx.export.graph import Call, exported


def patches(
    call: Call,
    x: Expr,
    kernel: Sequence[int],
    strides: Sequence[int],
    pads: Sequence[int],
    dilations: Sequence[int],
    slot: str = "X",
) -> tuple[Expr, Expr]:
    """Every patch of images as a column [batch, channels x taps, patches], and how many there are.

    Pads are those above, left, below and right.
    """
    top, left, bottom, right = pads
    padded = x.op("Pad", x.ints([0, 0, top, left, 0, 0, bottom, right])) if any(pads) else x
    places, counts = [], []
    for axis in (0, 1):
        size, k, d, s = padded.size(axis + 2), kernel[axis], dilations[axis], strides[axis]
        count = (size - (d * (k - 1) + 1)) / s + 1
        first = arange(count) * s
        places.append(arange(constant(call.graph, k)).unsqueeze(1) * d + first.unsqueeze(0))
        counts.append(count)
    rows = padded.gather(places[0], 2)  # [n, c, k, rows, width]
    cells = rows.gather(places[1], 4)  # [n, c, k, rows, k, columns]
    found = cells.transpose(0, 1, 2, 4, 3, 5)
    total = counts[0] * counts[1]
    channels = x.size(1) * (kernel[0] * kernel[1])
    return found.reshape(x.size(0), channels, total), total


@exported("unfold")
def unfold(call: Call) -> None:
    pads = call.attr("paddings")
    pads = (*pads, *pads) if len(pads) == 2 else tuple(pads)
    found, _ = patches(call, read(call), call.attr("kernel_sizes"), call.attr("strides"), pads, call.attr("dilations"))
    write(call, found, "Y")


@exported("fold")
def fold(call: Call) -> None:
    """Patches added up where they lie: Col2Im."""
    x, image, pads = read(call), call.attr("output_sizes"), call.attr("paddings")
    pads = [*pads, *pads] if len(pads) == 2 else list(pads)
    attrs = {"dilations": call.attr("dilations"), "pads": pads, "strides": call.attr("strides")}
    out = x.op("Col2Im", x.ints(image), x.ints(call.attr("kernel_sizes")), **attrs)
    write(call, out, "Y")


@exported("affine_grid")
def affine_grid(call: Call) -> None:
    theta, align = read(call, "Theta"), int(bool(call.attr("align_corners")))
    if call.has("OutputShape"):
        size = read(call, "OutputShape").ints(read(call, "OutputShape"))
    else:
        size = constant(call.graph, call.attr("output_shape"))
    write(call, theta.op("AffineGrid", size, align_corners=align), "Output")


__all__ = ["UnimplementedError", "patches"]
