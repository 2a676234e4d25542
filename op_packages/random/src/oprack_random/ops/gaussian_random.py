"""gaussian_random: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Attr, OpDef, Output, dtype_of_attr, empty_grad
from oprack.types import AttrType

from oprack_random.ops._shape import SHAPE_TENSOR, SHAPE_TENSOR_LIST, infer_dtype_attr, infer_given_shape


class GaussianRandom(OpDef, type="gaussian_random"):
    r"""$$Out \sim N(mean, std^2)$$"""

    ShapeTensor = SHAPE_TENSOR
    ShapeTensorList = SHAPE_TENSOR_LIST
    Out = Output("Tensor of the given shape and `dtype`.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Standard deviation.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    dtype = Attr(5, "dtype of Out.")
    use_mkldnn = Attr(False, "Prefer a oneDNN kernel.", extra=True)
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_given_shape
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad
