"""The same elements again: in memory of their own, as another dtype, under another LoD, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
    IdentityContext,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    KernelTypeContext,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    dtype_of_attr,
    empty_grad,
)
from oprack.op.families import out_like_x
from oprack.op.sbp import linear_unary, unary
from oprack.types import AttrType, VarType, dtype_name

from oprack_tensor.dims import cut_shapes

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


# What cast and transfer_dtype share.
class Convert(OpDef):
    """Out holds X's elements converted to `out_dtype`."""

    X = Input("Tensor of any dtype.")
    Out = Output("Shape and LoD of X.")
    out_dtype = Attr(REQUIRED, "dtype of Out.", type=AttrType.INT)
    in_dtype = Attr(REQUIRED, "dtype of X when the program was built.", type=AttrType.INT)
    use_mkldnn = Attr(False, "Prefer a oneDNN kernel.")
    sbp = unary
    infer_shape = out_like_x

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", ctx.kind("X"))
        ctx.set_dtype("Out", ctx.attr("out_dtype"))

    def identity(ctx: IdentityContext) -> bool:
        return ctx.dtype("X") == dtype_name(ctx.attr("out_dtype"))

    def make_grad(fwd: ForwardOp) -> GradOp:
        back = {"in_dtype": fwd.attrs["out_dtype"], "out_dtype": fwd.attrs["in_dtype"]}
        return GradOp("cast", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs=fwd.attrs | back)


# Ops whose result has the values of their input.
class CopyOf(OpDef):
    """Out has the values of X."""

    X = Input("Tensor or SelectedRows.")
    Out = Output("Shape, type, LoD and kind of X.")
    make_grad = empty_grad
    sbp = linear_unary
    infer_shape = out_like_x

    def identity(ctx: IdentityContext) -> bool:
        return True


DST_PLACE_TYPE = Attr(
    REQUIRED,
    "Where Paddle puts Out; here a run has one place, and what is fetched comes to the host.",
    type=AttrType.INT,
)


def _kernel_type(ctx: KernelTypeContext) -> OpKernelType:
    # an array without elements has no dtype of its own, and any kernel copies it
    dtype = ctx.dtype("X") if ctx.is_initialized("X") else ctx.output_dtype("Out") or "float32"
    return ctx.kernel_type(dtype=dtype)


class Assign(OpDef, type="assign"):
    r"""$$Out = X$$, a copy."""

    X = Input("Tensor, SelectedRows or tensor array.", dispensable=True)
    Out = Output("Shape, type, LoD and kind of X.")
    inplace = {"X": "Out"}
    expected_kernel_type = _kernel_type
    sbp = linear_unary

    def infer_shape(ctx: InferShapeContext) -> None:
        given = ctx.has_input("X") or not ctx.is_runtime
        ctx.require(given, "input X is absent, so there is nothing to copy; give it a variable")
        if ctx.has_input("X") and not (ctx.is_runtime and ctx.kind("X") == VarType.LOD_TENSOR_ARRAY):
            ctx.set_dim("Out", ctx.dim("X"))
            ctx.share_lod("X", "Out")

    def identity(ctx: IdentityContext) -> bool:
        return ctx.has_input("X")

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("assign", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"))


class Cast(Convert, type="cast"):
    r"""$$Out_i = \operatorname{out\_dtype}(X_i)$$: floats are cut to integers towards zero; of complex numbers the real
    part stays.
    """


class CoalesceTensor(OpDef, type="coalesce_tensor"):
    r"""$$Output_{i,j} = FusedOutput_{o_i + j}, \quad o_{i+1} = o_i + \lceil n_i b / a \rceil a / b$$

    Gives tensors of n_i elements one common buffer, in which each begins at a multiple of a bytes; b is the size of an
    element.
    """

    Input_ = Input("Tensors of one dtype.", duplicable=True)
    Output_ = Output("Tensors of the shapes of Input, parts of FusedOutput.", duplicable=True)
    FusedOutput = Output("1-D buffer.")
    dtype = Attr(REQUIRED, "dtype of all of them.", type=AttrType.INT)
    copy_data = Attr(False, "Fill the buffer with the values of Input.")
    set_constant = Attr(False, "Fill the buffer with `constant`.")
    persist_output = Attr(False, "Keep Output after the run.")
    constant = Attr(0.0, "The value for set_constant.")
    use_align = Attr(True, "Align each part.")
    align_size = Attr(-1, "Bytes of an alignment; -1 for that of the place.").check(
        lambda v: v <= 1 << 20, "a value of at most 1 MiB"
    )
    user_defined_size_of_dtype = Attr(-1, "Bytes of an element; -1 for those of `dtype`.")
    concated_shapes = Attr([], "Shapes of inputs that hold nothing yet, one after the other.", type=AttrType.LONGS)
    concated_ranks = Attr([], "Ranks that cut concated_shapes.", type=AttrType.LONGS)
    inplace = {"Input": "Output"}
    expected_kernel_type = dtype_of_attr("dtype")
    make_grad = empty_grad
    versions = (
        OpVersion("coalesce_tensor")
        .checkpoint("Alignment may be switched off.", ("new_attr", "use_align", True))
        .checkpoint("The alignment may be chosen.", ("new_attr", "align_size", -1))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        given = cut_shapes(ctx.attr("concated_shapes"), ctx.attr("concated_ranks"))
        ctx.set_dims("Output", given or ctx.dims("Input"))
        ctx.set_dim("FusedOutput", (-1,))
        if given:
            return
        for i in range(ctx.input_count("Input")):
            ctx.share_lod("Input", "Output", i, i)


class LodReset(OpDef, type="lod_reset"):
    r"""$$Out = X$$ with another LoD: that of Y, or offsets given as the data of a Y without LoD, or target_lod."""

    X = Input("Tensor of any shape.")
    Y = Input("Gives its LoD, or offsets as its data; overrides target_lod.", dispensable=True)
    Out = Output("Shape and data of X.")
    target_lod = Attr([], "Offsets of the new level.", type=AttrType.INTS)
    append = Attr(False, "Add the new level below the LoD of X instead of replacing it.")
    inplace = {"X": "Out"}
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", ctx.dim("X"))
        level = max(ctx.lod_level("Y"), 1) if ctx.has_input("Y") else 1
        ctx.set_lod_level("Out", level + (ctx.lod_level("X") if ctx.attr("append") else 0))


class LodResetGrad(GradOpDef, of=LodReset, shape_of="X", grads_of="X"):
    """The gradient with the LoD of X."""


class Memcpy(CopyOf, type="memcpy"):
    r"""$$Out = X$$"""

    dst_place_type = DST_PLACE_TYPE


class MemcpyD2h(CopyOf, type="memcpy_d2h"):
    r"""$$Out = X$$ from a device to the host."""

    dst_place_type = DST_PLACE_TYPE


class MemcpyH2d(CopyOf, type="memcpy_h2d"):
    r"""$$Out = X$$ from the host to a device."""

    dst_place_type = DST_PLACE_TYPE


class NpuIdentity(OpDef, type="npu_identity"):
    r"""$$out = x$$ Paddle changes the layout of memory on an NPU here, which has no meaning elsewhere."""

    x = Input("Tensor of any shape.")
    out = Output("Shape and LoD of x.")
    format = Attr(-1, "Layout on an NPU; it has no effect.")
    make_grad = empty_grad
    sbp = linear_unary

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("out", ctx.dim("x"))
        ctx.share_lod("x", "out")


class ShareBuffer(OpDef, type="share_buffer"):
    r"""$$Out[i] = X[i],\quad XOut[i] = X[i]$$ Paddle lets them share memory, which nothing that a program computes
    tells apart."""

    X = Input("Tensors.", duplicable=True)
    Out = Output("As many tensors, of the shapes and LoD of X.", duplicable=True)
    XOut = Output("X itself again, for the order of ops.", duplicable=True)
    share_dims_and_dtype = Attr([], "For each X whether Out takes its shape; it always does.", type=AttrType.BOOLEANS)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        for slot in ("Out", "XOut"):
            for i in range(ctx.output_count(slot)):
                ctx.set_dim(slot, ctx.dim("X", i), i)
                ctx.share_lod("X", slot, i, i)


class ShareData(CopyOf, type="share_data"):
    r"""$$Out = X$$ Paddle lets both share memory, which nothing that a program computes tells apart."""


class TransferDtype(Convert, type="transfer_dtype"):
    r"""$$Out_i = \operatorname{out\_dtype}(X_i)$$ as cast does it.

    Paddle's executor writes it between two kernels.
    """
