"""Rows by their place in a sequence: its number, turned by it, sums so far, shifts, and windows."""

from __future__ import annotations

from oprack.op import (
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.op.sbp import SbpContext, Signature, factors, letters, sequences
from oprack.types import AttrType

from oprack_sequence.ops._infer import same_as


class SequencePositions(OpDef, type="sequence_positions"):
    r"""0, 1, 2 ... in each sequence: $$Out_r = r - o_i + b_i$$ for the rows r of sequence i, of which $o_i$ is the
    first, behind the $b_i$ rows of Before.
    """

    X = Input("[N, ...] with LoD, whose values are not read.")
    Before = Input("[M, ...] with LoD of as many sequences: what comes before, such as cached keys.", dispensable=True)
    Out = Output("int64 [N] with the LoD of X.")
    make_grad = empty_grad
    no_need_buffer_vars = ("X", "Before")
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Before"), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        if ctx.has_input("Before"):
            ctx.require_lod("Before")
        ctx.set_dim("Out", (ctx.dim("X")[0],))
        ctx.share_lod("X", "Out")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")


class RotaryEmbedding(OpDef, type="rotary_embedding"):
    r"""$$Out_{2k} = X_{2k} \cos \theta - X_{2k+1} \sin \theta, \quad Out_{2k+1} = X_{2k} \sin \theta + X_{2k+1} \cos
    \theta, \quad \theta = Positions \cdot base^{-2k / d}$$ for the first d elements of each head.

    Products of queries and keys that are turned so depend on the distance of their positions alone (RoFormer, Su et
    al., 2021). Without `interleaved` the element k + d / 2 stands in the place of 2 k + 1, and k in that of 2 k.
    """

    X = Input("[..., heads, dim], queries or keys.")
    Positions = Input("Integers [...], as many dims as X has before its heads.")
    Out = Output("Shape and LoD of X.")
    base = Attr(10000.0, "The greatest wavelength, in positions, divided by 2 pi.").greater_than(0.0)
    turned = Attr(0, "How many elements d of each head are turned, an even number; 0: all.").at_least(0)
    interleaved = Attr(False, "Pairs are neighbours.")
    inverse = Attr(False, "Turn back.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 3, f"X has shape {list(dims)}; expected [..., heads, dim]")
        ctx.require_dims("Positions", dims[:-2], why="the dims of X before its heads")
        turned = ctx.attr("turned") or dims[-1]
        ctx.require(
            turned < 0 or (turned % 2 == 0 and (dims[-1] < 0 or turned <= dims[-1])),
            f"X has heads of {dims[-1]} elements, of which {turned} are to be turned; expected an even number of them",
        )
        same_as(ctx, "X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = fwd.attrs | {"inverse": not fwd.attrs["inverse"]}
        given, places = fwd.output_grad("Out"), fwd.input("Positions")
        return GradOp("rotary_embedding", X=given, Positions=places, Out=fwd.input_grad("X"), attrs=attrs)

    def sbp(ctx: SbpContext) -> list[Signature]:
        places = letters(len(ctx.dim("Positions")))
        names = [*places, "heads", None]
        return factors({"X": names, "Positions": places}, {"Out": names})


class SequenceCumsum(OpDef, type="sequence_cumsum"):
    r"""Sums so far: $$Out_r = \sum_{o_i \le r' \le r} X_{r'}$$ for rows r of sequence i, whose first row is $o_i$."""

    X = Input("[N, ...] with LoD.")
    Out = Output("Shape and LoD of X.")
    exclusive = Attr(False, "Leave the row itself out.")
    reverse = Attr(False, "Sum from the row to the last of its sequence.")
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        same_as(ctx, "X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = fwd.attrs | {"reverse": not fwd.attrs["reverse"]}
        return GradOp("sequence_cumsum", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


class SequenceShift(OpDef, type="sequence_shift"):
    r"""$$Out_r = X_{r - offset}$$ while row r - offset is of the same sequence as row r, else fill."""

    X = Input("[N, ...] with LoD.")
    Out = Output("Shape and LoD of X.")
    offset = Attr(1, "How far rows move towards the end of their sequence; negative: towards its start.")
    fill = Attr(0.0, "Stands where no row comes.")
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        same_as(ctx, "X", "Out")

    def make_grad(fwd: ForwardOp) -> GradOp:
        attrs = {"offset": -fwd.attrs["offset"], "fill": 0.0}
        return GradOp("sequence_shift", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=attrs)


class SequenceUnfold(OpDef, type="sequence_unfold"):
    r"""The windows that a convolution along each sequence sees: $$Out^{(i)}_{t, j} = X^{(i)}_{stride \cdot t +
    dilation \cdot j - padding_0}$$, 0 outside of sequence i.

    With $m = n + padding_0 + padding_1 - dilation (size - 1) - 1$ there are $\lfloor m / stride \rfloor + 1$ windows in
    n rows, and none where m is negative or there are no rows.
    """

    X = Input("[N, ...] with LoD.")
    Out = Output("[windows, size, ...] with LoD.")
    size = Attr(1, "Rows of a window.").at_least(1)
    stride = Attr(1, "Rows from window to window.").at_least(1)
    dilation = Attr(1, "Rows from one to the next of a window.").at_least(1)
    padding = Attr([0, 0], "Rows of zeros before and behind each sequence.", type=AttrType.INTS)
    sbp = sequences(("X",), ("Out",))

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        padding = ctx.attr("padding")
        ctx.require(
            len(padding) == 2 and min(padding) >= 0,
            f"padding is {list(padding)}; expected two numbers of rows, before and behind",
        )
        rows, *dims = ctx.dim("X")
        same = ctx.attr("stride") == 1 and sum(padding) == ctx.attr("dilation") * (ctx.attr("size") - 1)
        ctx.set_dim("Out", (rows if same else -1, ctx.attr("size"), *dims))
        ctx.set_lod_level("Out", max(ctx.lod_level("X"), 1))


class SequenceUnfoldGrad(GradOpDef, of=SequenceUnfold, shape_of="X", linear=True):
    """Each row takes the sum of the gradients of its places in windows."""
