"""Sequences as a padded batch, and back."""

from __future__ import annotations

import itertools

from oprack.op import (
    REQUIRED,
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
from oprack.op.sbp import SbpContext, Signature, leading, sequences, split
from oprack.types import AttrType, VarType

START = "The number of the first b: of a part of a batch, how many are in the parts before."
LEAVE_OUT = "If pass unpad made this op, leave that pass out for such a batch"


class SequenceMask(OpDef, type="sequence_mask"):
    """$$Y_{..., j} = j < X_{...}$$ for j from 0 to maxlen - 1."""

    X = Input("Lengths, of any shape.")
    MaxLenTensor = Input("One-element tensor that overrides `maxlen`.", dispensable=True)
    Y = Output("[shape of X, maxlen] of out_dtype; no LoD.")
    maxlen = Attr(-1, "Size of the last dim; -1 is the largest element of X.").check(
        lambda v: v > 0 or v == -1, "-1 or a value of at least 1"
    )
    out_dtype = Attr(REQUIRED, "dtype of Y, as a wire number.", type=AttrType.INT)
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad
    sbp = leading(("X",), ("Y",))

    def infer_shape(ctx: InferShapeContext) -> None:
        maxlen = ctx.attr("maxlen")
        if ctx.has_input("MaxLenTensor"):
            value = ctx.scalar("MaxLenTensor")
            maxlen = -1 if value is None else int(value)
            ctx.require(value is None or maxlen > 0, f"MaxLenTensor holds {maxlen}; expected at least 1")
        elif maxlen < 0:
            lengths = ctx.value("X")
            maxlen = -1 if lengths is None else max(int(lengths.max()), 0) if lengths.size else 0
        ctx.set_dim("Y", (*ctx.dim("X"), maxlen))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Y", ctx.attr("out_dtype"))


class SequencePad(OpDef, type="sequence_pad"):
    r"""$$Out_{i,t} = X_{o_i + t}$$ for t < Length_i, else PadValue, where o_i is the first row of sequence i."""

    X = Input("[N, ...] of rank 2 or more, with LoD.")
    PadValue = Input("One element, or one for each element of a row of X.")
    Out = Output("[number of sequences, padded length, ...]; no LoD.")
    Length = Output("int64 [number of sequences].")
    padded_length = Attr(-1, "Length to pad to; -1 is that of the longest sequence.")

    def sbp(ctx: SbpContext) -> list[Signature]:
        """Whole sequences may be split, all padded to the length of the longest."""
        longest = {"padded_length": ctx.dim("Out")[1]}
        made = dict.fromkeys(("Out", "Length"), split(0))
        return [Signature({"X": split(0)}, made, by_sequence=("Out", "Length"), attrs=longest)]

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_lod("X")
        dim = ctx.dim("X")
        ctx.require(len(dim) >= 2, f"X has shape {list(dim)}; expected rank 2 or more: reshape it to [N, 1]")
        count, length, lod = -1, ctx.attr("padded_length"), ctx.lod("X")
        if lod:
            count = len(lod[-1]) - 1
            longest = max((b - a for a, b in itertools.pairwise(lod[-1])), default=0)
            ctx.require(
                length == -1 or length >= longest,
                f"attribute padded_length is {length}, but the longest sequence has {longest} rows; expected at least "
                "as many, or -1",
            )
            length = longest if length == -1 else length
        ctx.set_dim("Out", (count, length, *dim[1:]))
        ctx.set_dim("Length", (count,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Length", VarType.INT64)


def _puts_back(op_type: str, fwd: ForwardOp) -> GradOp:
    """The gradients of padding and of taking it away are the gradients of each other."""
    flowing = fwd.input("Out@GRAD")
    given = {"X": flowing, "Out@GRAD": fwd.output_grad("X@GRAD")}
    return GradOp(op_type, inputs=given, outputs={"X@GRAD": fwd.input_grad("Out@GRAD")})


class SequencePadGrad(GradOpDef, of=SequencePad, reads="X Out@GRAD", shape_of="X", grads_of="X"):
    """Takes the rows out of the padded gradient."""

    def make_grad(fwd: ForwardOp) -> GradOp:
        return _puts_back("sequence_unpad_grad", fwd)


class SequenceUnpad(OpDef, type="sequence_unpad"):
    r"""$$Out_{o_i + t} = X_{i,t}$$ for t < Length_i, o_i the sum of the lengths before: the inverse of
    sequence_pad.
    """

    X = Input("[B, T, ...].")
    Length = Input("int64 [B] or [B, 1], each from 0 to T.")
    Out = Output("[sum of Length, ...], at least [.., 1], with one LoD level.")
    expected_kernel_type = dtype_of("X")
    sbp = sequences(("X", "Length"), ("Out",), ("X", "Length"))

    def infer_shape(ctx: InferShapeContext) -> None:
        dim = ctx.dim("X")
        ctx.require(len(dim) >= 2, f"X has shape {list(dim)}; expected [B, T, ...]")
        ctx.set_dim("Out", (-1, *(dim[2:] or (1,))))
        ctx.set_lod_level("Out", 1)


class SequenceUnpadGrad(GradOpDef, of=SequenceUnpad, shape_of="X", grads_of="X"):
    """Puts the rows back at their places; the padding gets zero."""

    def make_grad(fwd: ForwardOp) -> GradOp:
        return _puts_back("sequence_pad_grad", fwd)


class UnpadByMask(OpDef, type="unpad_by_mask"):
    r"""$$Out_n = X_{b,t}$$ for the places (b, t) with $Mask_{b,t'} \neq 0$ and $|t - t'| \le reach$, in their order:
    rows without padding.

    The places that are kept may lie anywhere; those of one b are a sequence of Out.
    """

    X = Input("[B, T, ...].")
    Mask = Input("[B, T], bool or numbers; what is not 0 is kept.")
    Out = Output("[number of places kept, ...] with one LoD level of B sequences.")
    Index = Output(
        "int64 [number of places kept], (start_index + b) T + t of each row; LoD of Out.", stop_gradient=True
    )
    strict = Attr(False, "Refuse a Mask that holds anything but 0 and 1.")
    contiguous = Attr(False, "Refuse a Mask with padding between places of one b that are kept.")
    reach = Attr(0, "How many places before and behind one that Mask keeps are kept as well.").at_least(0)
    start_index = Attr(0, START).at_least(0)
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        """Each b may be on another rank, and so each sequence."""
        padded, rows = dict.fromkeys(("X", "Mask"), split(0)), dict.fromkeys(("Out", "Index"), split(0))
        return [Signature(padded, rows, via="unpad_by_mask", by_sequence=("X", "Mask"))]

    def infer_shape(ctx: InferShapeContext) -> None:
        dim, mask = ctx.dim("X"), ctx.require_rank("Mask", 2)
        ctx.require(len(dim) >= 2, f"X has shape {list(dim)}; expected [B, T, ...]")
        ctx.require(
            all(m == d or min(m, d) < 0 for m, d in zip(mask, dim, strict=False)),
            f"Mask has shape {list(mask)} and X {list(dim)}; expected the first two dims of X. {LEAVE_OUT}",
        )
        ctx.set_dim("Out", (-1, *dim[2:]))
        ctx.set_dim("Index", (-1,))
        for slot in ("Out", "Index"):
            ctx.set_lod_level(slot, 1)

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("Index", VarType.INT64)

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "pad_by_index",
            X=fwd.output_grad("Out"),
            Index=fwd.output("Index"),
            Like=fwd.input("Mask"),
            Out=fwd.input_grad("X"),
            attrs={"start_index": fwd.attrs["start_index"]},
        )


class PadByIndex(OpDef, type="pad_by_index"):
    r"""$$Out_{b,t} = X_n$$ where Index_n = (start_index + b) T + t, and 0 elsewhere: undoes unpad_by_mask."""

    X = Input("[N, ...].")
    Index = Input("int64 [N], places without repeats, from 0 to B T - 1 where start_index is 0, as of unpad_by_mask.")
    Like = Input("[B, T, ...]; only its first two dims are read.")
    Out = Output("[B, T, ...] with the inner dims of X; no LoD.")
    start_index = Attr(0, START).at_least(0)
    no_need_buffer_vars = ("Like",)
    expected_kernel_type = dtype_of("X")

    def sbp(ctx: SbpContext) -> list[Signature]:
        """As unpad_by_mask."""
        inputs, made = dict.fromkeys(("Like", "X", "Index"), split(0)), {"Out": split(0)}
        return [Signature(inputs, made, via="pad_by_index", by_sequence=("Like", "Out"), same_lod=("X", "Index"))]

    def infer_shape(ctx: InferShapeContext) -> None:
        dim, like, (places,) = ctx.dim("X"), ctx.dim("Like"), ctx.require_rank("Index", 1)
        ctx.require(len(dim) >= 1, "X is a single number; expected rows [N, ...]")
        ctx.require(len(like) >= 2, f"Like has shape {list(like)}; expected [B, T, ...]")
        ctx.require(
            dim[0] == places or min(dim[0], places) < 0,
            f"X has {dim[0]} rows and Index {places} places; expected a place for each row",
        )
        ctx.set_dim("Out", (*like[:2], *dim[1:]))


class PadByIndexGrad(GradOpDef, of=PadByIndex, reads="Index", shape_of="X Like", grads_of="X", linear=True):
    """Takes the rows out of the padded gradient."""
