"""Definitions: all of an op but its kernels."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output
from oprack.op.sbp import all_but, leading
from oprack.types import AttrType, complex_dtype, real_dtype

# Shapes of signals and of their frames.
HOP_LENGTH = Attr(REQUIRED, "Steps from the start of one frame to that of the next.", type=AttrType.INT).greater_than(0)

AXIS = Attr(-1, "-1: time is the last axis; 0: it is the first one.").in_set({0, -1})


def frame_count(ctx: InferShapeContext, steps: int, length: int, hop: int) -> int:
    """Number of whole frames in a signal; -1 where its length is not known. Raises InvalidArgumentError for none."""
    ctx.require(
        steps < 0 or length <= steps,
        f"X has shape {list(ctx.dim('X'))}, {steps} steps, and a frame has {length}; expected no longer frames than X",
    )
    return -1 if steps < 0 else 1 + (steps - length) // hop


# What the definitions of Fourier transforms share.
AXES = Attr(REQUIRED, "Axes to transform, each once.", type=AttrType.LONGS)

NORMALIZATION = Attr(
    REQUIRED,
    "Which way divides by the number n of points: backward (the inverse one), forward, or ortho (both, by its root).",
    type=AttrType.STRING,
).in_set({"backward", "forward", "ortho"})

FORWARD = Attr(REQUIRED, "The sign of the exponent: minus when true.", type=AttrType.BOOLEAN)


def points(ctx: InferShapeContext, *, real: bool) -> tuple[list[int], list[int]]:
    """Shape of X and the axes, from the front.

    Args:
        ctx: The context of the rule.
        real: Whether the last axis is halved or doubled, so that there has to be one.

    Raises:
        InvalidArgumentError: An axis is not there, is listed twice, or has no points.
    """
    dims, axes = list(ctx.dim("X")), ctx.axes("X", "axes")
    ctx.require(bool(axes) or not real, "axes is empty; expected one axis at least, the last of which is halved")
    for axis in axes:
        ctx.require(
            not dims or dims[axis] != 0,
            f"X has shape {dims} and is transformed along axis {axis}; expected at least one point there",
        )
    return dims, axes


# fft_c2c and its gradient.
class FftC2c(OpDef, type="fft_c2c"):
    r"""$$Out_k = s \sum_j X_j e^{\mp 2 \pi i\, jk / n}$$ along each axis, with the factor $s$ of `normalization`."""

    X = Input("Complex tensor of rank 1 or more.")
    Out = Output("Shape of X; no LoD.")
    axes = AXES
    normalization = NORMALIZATION
    forward = FORWARD

    sbp = all_but("axes")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", points(ctx, real=False)[0])


class FftC2cGrad(GradOpDef, of=FftC2c, reads="Out@GRAD", like="Out@GRAD", lod=False, linear=True):
    r"""$$X@GRAD_j = s \sum_k Out@GRAD_k\, e^{\pm 2 \pi i\, jk / n}$$ the adjoint: the other way, by the same factor."""


# fft_c2r and its gradient.
class FftC2r(OpDef, type="fft_c2r"):
    r"""$$Out_j = s \sum_k X_k e^{\mp 2 \pi i\, jk / n}$$ along each axis, with the factor $s$ of `normalization`.

    X holds $k \le n / 2$ of the last axis, and the others are taken for what makes Out real:
    $X_{n-k} = \overline{X_k}$ in one dimension.
    """

    X = Input("Complex tensor of rank 1 or more. Points beyond n / 2 are not read.")
    Out = Output("Real, shape of X with n points along the last one of `axes`; no LoD.")
    axes = AXES
    normalization = NORMALIZATION
    forward = FORWARD
    last_dim_size = Attr(0, "n; 0 stands for 2 (m - 1) with the m points of X there.", type=AttrType.LONG).check(
        lambda v: v >= 0, "a number of points, or 0"
    )

    sbp = all_but("axes")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = points(ctx, real=True)
        size = ctx.attr("last_dim_size")
        if dims:
            held = dims[axes[-1]]
            ctx.require(
                held < 0 or ((size or held > 1) and size // 2 + 1 <= held),
                f"X has shape {dims}, {held} points along axis {axes[-1]}, and last_dim_size is {size}; expected "
                f"{size // 2 + 1 if size else 2} points or more there",
            )
            dims[axes[-1]] = size or (-1 if held < 0 else 2 * (held - 1))
        ctx.set_dim("Out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", real_dtype(ctx.dtype("X")))


class FftC2rGrad(GradOpDef, of=FftC2r, reads="Out@GRAD", linear=True):
    r"""$$X@GRAD_k = w_k s \sum_j Out@GRAD_j\, e^{\pm 2 \pi i\, jk / n}$$

    with $w_k = 1$ where $k = 0$ or $k = n / 2$ along the last axis, and $w_k = 2$ for the others, which count twice.
    X@GRAD has the n // 2 + 1 points that are read: an X with more of them can't be differentiated.
    """

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = list(ctx.dim("Out@GRAD"))
        axis = ctx.axes("Out@GRAD", "axes")[-1]
        if dims and dims[axis] >= 0:
            dims[axis] = dims[axis] // 2 + 1
        ctx.set_dim("X@GRAD", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", complex_dtype(ctx.dtype("Out@GRAD")))


# fft_r2c and its gradient.
class FftR2c(OpDef, type="fft_r2c"):
    r"""$$Out_k = s \sum_j X_j e^{\mp 2 \pi i\, jk / n}$$ along each axis, with the factor $s$ of `normalization`.

    With `onesided` the last axis keeps $k \le n / 2$, since the others follow: $Out_{n-k} = \overline{Out_k}$ in one
    dimension.
    """

    X = Input("Real tensor of rank 1 or more.")
    Out = Output("Complex, shape of X; the last one of `axes` has n // 2 + 1 points with `onesided`; no LoD.")
    axes = AXES
    normalization = NORMALIZATION
    forward = FORWARD
    onesided = Attr(REQUIRED, "Leave out what follows from the rest.", type=AttrType.BOOLEAN)

    sbp = all_but("axes")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, axes = points(ctx, real=True)
        if ctx.attr("onesided") and dims and dims[axes[-1]] >= 0:
            dims[axes[-1]] = dims[axes[-1]] // 2 + 1
        ctx.set_dim("Out", dims)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", complex_dtype(ctx.dtype("X")))


class FftR2cGrad(GradOpDef, of=FftR2c, reads="X Out@GRAD", shape_of="X", linear=True):
    r"""$$X@GRAD_j = \operatorname{Re}\, s \sum_k Out@GRAD_k\, e^{\pm 2 \pi i\, jk / n}$$ over the $k$ of Out."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", real_dtype(ctx.dtype("Out@GRAD")))


# frame and its gradient.
class Frame(OpDef, type="frame"):
    r"""$$Out_{j,f} = X_{f \cdot hop\_length + j}$$ for $j < frame\_length$, and for all frames $f$ that fit into X."""

    X = Input("[..., N] with axis -1, or [N, ...] with axis 0.")
    Out = Output("[..., frame_length, F], or [F, frame_length, ...]; no LoD.")
    frame_length = Attr(REQUIRED, "Steps of a frame.", type=AttrType.INT).greater_than(0)
    hop_length = HOP_LENGTH
    axis = AXIS
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, length, axis = tuple(ctx.dim("X")), ctx.attr("frame_length"), ctx.attr("axis")
        ctx.require(len(dims) > 0, "X has no axes; expected one at least, time")
        frames = frame_count(ctx, dims[axis], length, ctx.attr("hop_length"))
        ctx.set_dim("Out", (frames, length, *dims[1:]) if axis == 0 else (*dims[:-1], length, frames))


class FrameGrad(GradOpDef, of=Frame, reads="X", shape_of="X", linear=True):
    r"""$$X@GRAD_t = \sum_{f \cdot hop\_length + j = t} Out@GRAD_{j,f}$$"""


# overlap_add and its gradient.
class OverlapAdd(OpDef, type="overlap_add"):
    r"""$$Out_t = \sum_{f \cdot hop\_length + j = t} X_{j,f}$$ the sum of frames, each at its place."""

    X = Input("[..., L, F], F frames of L steps, with axis -1, or [F, L, ...] with axis 0.")
    Out = Output("[..., N] or [N, ...] with N = (F - 1) hop_length + L; no LoD.")
    hop_length = HOP_LENGTH
    axis = AXIS

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, hop, axis = tuple(ctx.dim("X")), ctx.attr("hop_length"), ctx.attr("axis")
        ctx.require(len(dims) >= 2, f"X has shape {list(dims)}; expected at least two axes, steps and frames")
        frames, length = dims[:2] if axis == 0 else (dims[-1], dims[-2])
        ctx.require(
            length < 0 or hop <= length,
            f"hop_length is {hop} and the frames of X {list(dims)} have {length} steps; expected frames that meet",
        )
        ctx.require(frames != 0, f"X has shape {list(dims)}; expected one frame at least")
        steps = -1 if min(frames, length) < 0 else (frames - 1) * hop + length
        ctx.set_dim("Out", (steps, *dims[2:]) if axis == 0 else (*dims[:-2], steps))


class OverlapAddGrad(GradOpDef, of=OverlapAdd, reads="X", shape_of="X", linear=True):
    r"""$$X@GRAD_{j,f} = Out@GRAD_{f \cdot hop\_length + j}$$"""


# stft and its gradient.
class Stft(OpDef, type="stft"):
    r"""$$Out_{b,k,f} = s \sum_{j=0}^{n\_fft-1} Window_j X_{b,\,f \cdot hop\_length + j}\, e^{-2 \pi i\, jk / n\_fft}$$

    with $s = 1 / \sqrt{n\_fft}$ when `normalized`, and else 1.
    """

    X = Input("Real signals [B, N].")
    Window = Input("[n_fft].")
    Out = Output("Complex [B, K, F] with K = n_fft, or n_fft // 2 + 1 with `onesided`; no LoD.")
    n_fft = Attr(REQUIRED, "Steps of a frame.", type=AttrType.INT).greater_than(0)
    hop_length = HOP_LENGTH
    normalized = Attr(REQUIRED, "Divide by the root of n_fft.", type=AttrType.BOOLEAN)
    onesided = Attr(REQUIRED, "Leave out frequencies above n_fft / 2.", type=AttrType.BOOLEAN)
    sbp = leading(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        batch, steps = ctx.require_rank("X", 2)
        size = ctx.attr("n_fft")
        ctx.require_dims("Window", (size,), why="one weight for each of the n_fft steps of a frame")
        frames = frame_count(ctx, steps, size, ctx.attr("hop_length"))
        ctx.set_dim("Out", (batch, size // 2 + 1 if ctx.attr("onesided") else size, frames))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", complex_dtype(ctx.dtype("X")))


class StftGrad(GradOpDef, of=Stft, reads="X Window Out@GRAD", shape_of="X", grads_of="X", linear=True):
    r"""$$X@GRAD_{b,t} = \operatorname{Re}\, s \sum_{k,\,f \cdot hop\_length + j = t} Window_j Out@GRAD_{b,k,f}
    e^{2 \pi i\, jk / n\_fft}$$ Window has no gradient, as in Paddle.
    """

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", real_dtype(ctx.dtype("Out@GRAD")))
