"""Fourier transforms, and complex numbers, which are pairs along a last axis of their own."""

from __future__ import annotations

from collections.abc import Sequence

from oprack.errors import UnimplementedError
from oprack.types import VarType

from oprack_onnx.export.expressions import LAST, Expr, arange, constant, read, write
from oprack_onnx.export.graph import Call, exported

_FLOATS = {VarType.COMPLEX64: VarType.FP32, VarType.COMPLEX128: VarType.FP64}
_PAIRS = {"abs", "fft_c2c", "fft_c2r", "real", "imag", "as_real", "conj", "assign"}
"""Ops whose forms take complex numbers."""


def is_complex(call: Call, name: str) -> bool:
    """Whether the program declares a variable of complex numbers."""
    var = call.graph.block.find_var_recursive(name)
    return name in call.graph.pairs or (var is not None and var.dtype in _FLOATS)


def refuse_complex(call: Call) -> None:
    """Raise UnimplementedError where a form would take pairs for numbers."""
    if call.type not in _PAIRS and any(is_complex(call, n) for n in call.op.input_arg_names()):
        raise UnimplementedError("it takes complex numbers, which ONNX has as pairs, and few of its ops do")


def _scale(x: Expr, axes: Sequence[int], normalization: str, forward: bool) -> Expr:
    """What `DFT` leaves to be multiplied with: it scales by 1/n on its way back."""
    power = {"backward": 0.0 if forward else 1.0, "forward": 1.0 if forward else 0.0, "ortho": 0.5}[normalization]
    power -= 0.0 if forward else 1.0
    if not power:
        return x
    count = x.size(axes[0])
    for axis in axes[1:]:
        count = count * x.size(axis)
    return x * (count.scalar().cast(x.dtype) ** -power)


def _transformed(x: Expr, axis: int, forward: bool, onesided: bool = False) -> Expr:
    return x.op("DFT", "", constant(x.graph, axis), inverse=int(not forward), onesided=int(onesided))


@exported("fft_c2c")
def fft_c2c(call: Call) -> None:
    x, forward, rank = read(call), bool(call.attr("forward")), call.rank()
    axes = [a % rank for a in call.attr("axes")]
    for axis in axes:
        x = _transformed(x, axis, forward)
    _write_pairs(call, _scale(x, axes, call.attr("normalization"), forward))


def _write_pairs(call: Call, value: Expr) -> None:
    call.graph.pairs.update(call.op.output("Out"))
    write(call, value)


@exported("fft_r2c")
def fft_r2c(call: Call) -> None:
    """The last axis first, of which a half is enough, then the others."""
    x, forward, rank, half = read(call), bool(call.attr("forward")), call.rank(), bool(call.attr("onesided"))
    axes = [a % rank for a in call.attr("axes")]
    full = _scale(x.unsqueeze(rank), axes, call.attr("normalization"), forward)
    if half and not forward:
        raise UnimplementedError("it goes backwards to a half")
    out = _transformed(full, axes[-1], forward, half)
    for axis in axes[:-1]:
        out = _transformed(out, axis, forward)
    _write_pairs(call, out)


@exported("fft_c2r")
def fft_c2r(call: Call) -> None:
    """The other axes first; the last one is made whole by the conjugates of its half."""
    x, rank, size = read(call), call.rank(), call.attr("last_dim_size")
    axes, forward = [a % rank for a in call.attr("axes")], bool(call.attr("forward"))
    if forward:
        raise UnimplementedError("it goes forwards to real numbers")
    for axis in axes[:-1]:
        x = _transformed(x, axis, False)
    last = axes[-1]
    half = x.size(last)
    total = constant(call.graph, [size]) if size else (half - 1) * 2
    x = x.slice(0, total / 2 + 1, last)
    behind = x.slice(1, total - total / 2, last).slice(-1, -LAST, last, -1)
    whole = x.join(behind * behind.like([1.0, -1.0]), axis=last)
    out = _transformed(whole, last, False)
    out = out.at(0, rank)
    write(call, _scale(out, axes, call.attr("normalization"), False))


@exported("real", "imag")
def real(call: Call) -> None:
    write(call, read(call).at(0 if call.type == "real" else 1, -1))


@exported("as_real", "as_complex")
def as_real(call: Call) -> None:
    (_write_pairs if call.type == "as_complex" else write)(call, read(call).op("Identity"))


@exported("complex")
def complex_(call: Call) -> None:
    x, y = read(call), read(call, "Y")
    shape = (x + y).shape()
    _write_pairs(call, x.op("Expand", shape).unsqueeze(-1).join(y.op("Expand", shape).unsqueeze(-1), axis=-1))


@exported("conj")
def conj(call: Call) -> None:
    x = read(call)
    if is_complex(call, call.name("X")):
        _write_pairs(call, x * x.like([1.0, -1.0]))
    else:
        write(call, x.op("Identity"))


@exported("frame")
def frame(call: Call) -> None:
    """Parts of a signal that overlap, as a new axis."""
    x, rank = read(call), call.rank()
    last = call.attr("axis") != 0
    places = _frames(x.size(rank - 1 if last else 0), call.attr("frame_length"), call.attr("hop_length"))
    if last:
        write(call, x.gather(places.transpose(1, 0), rank - 1))
    else:
        write(call, x.gather(places, 0))


def _frames(size: Expr, length: int, hop: int) -> Expr:
    """The places [frames, length] of the parts of a signal."""
    count = (size - length) / hop + 1
    return (arange(count) * hop).unsqueeze(1) + arange(constant(size.graph, length)).unsqueeze(0)


@exported("stft")
def stft(call: Call) -> None:
    x, rank, size = read(call), call.rank(), call.attr("n_fft")
    parts = x.gather(_frames(x.size(rank - 1), size, call.attr("hop_length")), rank - 1) * read(call, "Window")
    normal = "ortho" if call.attr("normalized") else "backward"
    out = _transformed(_scale(parts.unsqueeze(rank + 1), [rank], normal, True), rank, True, bool(call.attr("onesided")))
    order = [*range(rank - 1), rank, rank - 1, rank + 1]
    _write_pairs(call, out.transpose(*order))
