"""uniform_random_batch_size_like: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, Input, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_random.ops._batch_size import infer_batch_size_like
from oprack_random.ops._shape import infer_dtype_attr


class UniformRandomBatchSizeLike(OpDef, type="uniform_random_batch_size_like"):
    r"""$$Out \sim U[min, max)$$; one dim of Out is a dim of Input."""

    Input_ = Input("Gives the batch size; its values are not read.")
    Out = Output("Tensor of `shape` but for dim `output_dim_idx`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    input_dim_idx = Attr(0, "Dim of Input to take.")
    output_dim_idx = Attr(0, "Dim of Out to replace.")
    min = Attr(-1.0, "Lower bound.")
    max = Attr(1.0, "Upper bound.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    diag_num = Attr(0, "How many elements to set to `diag_val`.").at_least(0)
    diag_step = Attr(0, "From one of them to the next: row i, column i of the matrix moves on by this.").at_least(0)
    diag_val = Attr(1.0, "Value of those elements.")
    dtype = Attr(5, "dtype of Out.")
    no_need_buffer_vars = ("Input",)
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_batch_size_like
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad
