"""coalesce_tensor: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, OpVersion, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_tensor.dims import cut_shapes


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
