"""Definitions; they import no array library."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from oprack.op import (
    REQUIRED,
    Attr,
    ForwardOp,
    GradOp,
    GradOpDef,
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
from oprack.op.families import like, out_like_x
from oprack.types import AttrType

if TYPE_CHECKING:
    from oprack.kernel import OpKernelType


# The shape rule of draws that take one dim from a batch.
def infer_batch_size_like(ctx: InferShapeContext) -> None:
    """Set Out to `shape`, with dim output_dim_idx from dim input_dim_idx of Input."""
    dims, shape = ctx.dim("Input"), list(ctx.attr("shape"))
    source, target = ctx.attr("input_dim_idx"), ctx.attr("output_dim_idx")
    ctx.require(
        0 <= source < len(dims) and 0 <= target < len(shape),
        f"input_dim_idx is {source} and output_dim_idx {target}; "
        f"expected places in Input {list(dims)} and shape {shape}",
    )
    shape[target] = dims[source]
    ctx.require_sizes("shape", shape)
    ctx.set_dim("Out", shape)


# Ops that replace a tensor by random numbers in its shape, and whose gradient is 0.
SEED = Attr(0, "Seed of this op; 0 takes that of the program.")


class DrawLike(OpDef):
    """Random numbers in the shape of X."""

    X = Input("Gives shape and type; its values are replaced.")
    Out = Output("Shape, type and LoD of X.")
    infer_shape = out_like_x


class ZeroGrad(GradOpDef, like="Out@GRAD"):
    """Gradient of numbers that do not depend on the input."""


# Shapes given as an attribute or as tensors.
SHAPE_TENSOR = Input("int32 or int64 [n], overrides `shape`.", dispensable=True)

SHAPE_TENSOR_LIST = Input("n one-element tensors, override `shape`.", dispensable=True, duplicable=True)


def infer_given_shape(ctx: InferShapeContext) -> None:
    """infer_shape of an op with ShapeTensor, ShapeTensorList and `shape`."""
    if ctx.has_input("ShapeTensor"):
        value, (rank,) = ctx.value("ShapeTensor"), ctx.require_rank("ShapeTensor", 1)
        if value is None and rank < 0:
            return  # not even the number of dims is known
        dims = [-1] * rank if value is None else [int(v) for v in value]
    elif ctx.has_input("ShapeTensorList"):
        values = [ctx.scalar("ShapeTensorList", i) for i in range(ctx.input_count("ShapeTensorList"))]
        dims = [-1 if v is None else int(v) for v in values]
    else:
        dims = ctx.attr("shape")
    ctx.set_dim("Out", dims)


def infer_dtype_attr(ctx: InferVarTypeContext) -> None:
    """infer_var_type of an op whose `dtype` says the dtype of Out."""
    ctx.set_dtype("Out", ctx.attr("dtype"))


class Bernoulli(OpDef, type="bernoulli"):
    r"""$$P(Out_i = 1) = X_i, \quad P(Out_i = 0) = 1 - X_i$$"""

    X = Input("Probabilities, of any shape.")
    Out = Output("Shape, type and LoD of X.")
    make_grad = empty_grad
    infer_shape = out_like_x


class ClassCenterSample(OpDef, type="class_center_sample"):
    r"""$$SampledLocalClassCenter = (\text{classes in Label, sorted}, \text{others at random}), \;
    SampledLocalClassCenter_{RemappedLabel_i} = Label_i$$

    A part of very many classes, with which the last layer of a face recogniser is trained (partial FC, An et al.,
    2021). Where Label has more classes than num_samples, all of them are sampled.
    """

    Label = Input("int32 or int64 [N].")
    RemappedLabel = Output("[N], the place of each label among the sampled classes.")
    SampledLocalClassCenter = Output("[num_samples] or more, the classes.")
    num_classes = Attr(REQUIRED, "Classes.", type=AttrType.INT).greater_than(0)
    num_samples = Attr(REQUIRED, "How many of them to sample.", type=AttrType.INT).greater_than(0)
    ring_id = Attr(0, "Paddle: the group of trainers.")
    rank = Attr(0, "Number of this trainer; here there is one.")
    nranks = Attr(1, "Trainers that share the classes; only 1.").in_set((1,))
    fix_seed = Attr(False, "Draw the same classes in each run.")
    seed = Attr(0, "Seed of this op, with fix_seed.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(
            ctx.attr("num_samples") <= ctx.attr("num_classes"),
            f"num_samples is {ctx.attr('num_samples')}; expected at most num_classes, {ctx.attr('num_classes')}",
        )
        ctx.set_dim("RemappedLabel", ctx.require_rank("Label", 1))
        ctx.set_dim("SampledLocalClassCenter", (-1,))


class Dirichlet(OpDef, type="dirichlet"):
    r"""$$p(Out) \propto \prod_k Out_k^{Alpha_k - 1}$$ shares that add up to 1 along the last dim."""

    Alpha = Input("[..., k], above 0.")
    Out = Output("Shape and type of Alpha.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("Alpha")
        ctx.require(len(dims) >= 1, "Alpha has no dims; expected rank 1 or more")
        ctx.set_dim("Out", dims)


class Exponential(DrawLike, type="exponential"):
    r"""$$Out \sim \lambda e^{-\lambda x},\quad x \ge 0$$"""

    lambda_ = Attr(1.0, "Rate, the reciprocal of the mean.", name="lambda").greater_than(0)
    inplace = {"X": "Out"}

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp("fill_any_like", X=fwd.output_grad("Out"), Out=fwd.input_grad("X"), attrs={"value": 0.0})


# gaussian_inplace and its gradient.
class GaussianInplace(OpDef, type="gaussian_inplace"):
    r"""$$out \sim N(mean, std^2)$$"""

    x = Input("Gives shape and type; its values are replaced.")
    out = Output("Shape, type and LoD of x.")
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Standard deviation.")
    seed = SEED
    inplace = {"x": "out"}

    def infer_shape(ctx: InferShapeContext) -> None:
        like(ctx, [("out", "x")])


class GaussianInplaceGrad(GradOpDef, of=GaussianInplace, like="out@GRAD"):
    r"""$$x@GRAD = 0$$"""


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


# gaussian_random_batch_size_like (Paddle 1.x): all of the op but its kernel.
class GaussianRandomBatchSizeLike(OpDef, type="gaussian_random_batch_size_like"):
    r"""$$Out \sim N(mean, std^2)$$; one dim of Out is a dim of Input."""

    Input_ = Input("Gives the batch size; its values are not read.")
    Out = Output("Tensor of `shape` but for dim `output_dim_idx`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    input_dim_idx = Attr(0, "Dim of Input to take.")
    output_dim_idx = Attr(0, "Dim of Out to replace.")
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Standard deviation.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    dtype = Attr(5, "dtype of Out.")
    no_need_buffer_vars = ("Input",)
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_batch_size_like
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad


# gumbel_softmax and its gradient.
class GumbelSoftmax(OpDef, type="gumbel_softmax"):
    r"""$$Out = \operatorname{softmax}((X + g) / temperature)$$ along dim `axis`, with g from Gumbel's distribution.

    With hard Out is 1 at the greatest element and 0 elsewhere.
    """

    X = Input("Logarithms of weights, of rank 1 or more.")
    Out = Output("Shape and LoD of X.")
    temperature = Attr(1.0, "The smaller, the nearer to 0 and 1.").greater_than(0)
    hard = Attr(False, "Whether to choose one element.")
    axis = Attr(-1, "Dim of the classes; negative counts from the end.")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.axis("X")
        ctx.set_dim("Out", ctx.dim("X"))
        ctx.share_lod("X", "Out")


class GumbelSoftmaxGrad(GradOpDef, of=GumbelSoftmax, reads="Out"):
    r"""$$X@GRAD = Out \left(Out@GRAD - \sum_{axis} Out \cdot Out@GRAD\right) / temperature$$"""

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.same_dims("Out", "Out@GRAD")
        ctx.set_dim("X@GRAD", ctx.dim("Out"))
        ctx.share_lod("Out", "X@GRAD")


class Multinomial(OpDef, type="multinomial"):
    r"""$$P(Out_{i,j} = k) = X_{i,k} / \sum_l X_{i,l}$$

    num_samples draws from each row; without replacement, what was drawn before counts as weight 0.
    """

    X = Input("[m] or [n, m] weights, not negative.")
    Out = Output("int64 [num_samples] or [n, num_samples]")
    num_samples = Attr(1, "How many to draw from each row.", support_tensor=True)
    replacement = Attr(False, "Whether a class may be drawn again.")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, k = ctx.require_rank("X", 1, 2), ctx.attr("num_samples")
        ctx.set_dim("Out", (*dims[:-1], -1 if isinstance(k, str) else k))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")


# poisson and its gradient.
class Poisson(OpDef, type="poisson"):
    r"""$$P(Out = k) = X^k e^{-X} / k!$$"""

    X = Input("Rates of at least 0, of any shape.")
    Out = Output("Shape, type and LoD of X.")
    infer_shape = out_like_x


class PoissonGrad(ZeroGrad, of=Poisson):
    r"""$$X@GRAD = 0$$"""


class Randint(OpDef, type="randint"):
    r"""$$P(Out_i = k) = \frac{1}{high - low}, \quad low \le k < high$$"""

    ShapeTensor = SHAPE_TENSOR
    ShapeTensorList = SHAPE_TENSOR_LIST
    Out = Output("Tensor of the given shape and `dtype`.")
    low = Attr(REQUIRED, "Least value.", type=AttrType.INT)
    high = Attr(REQUIRED, "Value after the greatest.", type=AttrType.INT)
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    dtype = Attr(3, "dtype of Out.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_given_shape
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad


# random_crop (Paddle 1.x): all of the op but its kernel.
class RandomCrop(OpDef, type="random_crop"):
    r"""$$Out_{b, i} = X_{b, i + o_b}, \; o_b \sim U\{0, \dots, d - shape\}$$: from each instance a piece at a random
    place; d are the last dims of X, as many as `shape` has.
    """

    X = Input("Instances; the dims in front of those that are cut count them.")
    Seed = Input("int64 [1], of the places; a value of 0 or less takes startup_seed.")
    Out = Output("Pieces of `shape`, as many as there are instances.")
    SeedOut = Output("int64 [1], a seed for the next call.", intermediate=True)
    shape = Attr(REQUIRED, "Shape of a piece.", type=AttrType.INTS)
    startup_seed = Attr(0, "Seed of the first call; 0 takes that of the program.")
    expected_kernel_type = dtype_of("X")
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        dims, shape = ctx.dim("X"), ctx.attr("shape")
        cut = dims[len(dims) - len(shape) :] if len(dims) >= len(shape) else ()
        ctx.require(
            len(cut) == len(shape) > 0 and all(0 <= s and (d < 0 or s <= d) for s, d in zip(shape, cut, strict=True)),
            f"X has shape {list(dims)} and shape is {list(shape)}; expected sizes within the last dims of X",
        )
        ctx.set_dim("Out", (*dims[: len(dims) - len(shape)], *shape))
        ctx.set_dim("SeedOut", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("SeedOut", "int64")


class Randperm(OpDef, type="randperm"):
    r"""$$P(Out = \pi) = 1 / n!$$ for each order of 0 ... n-1."""

    Out = Output("[n]")
    n = Attr(REQUIRED, "How many.", type=AttrType.INT)
    dtype = Attr(3, "dtype of Out.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.", extra=True)
    expected_kernel_type = dtype_of_attr("dtype")
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require(ctx.attr("n") >= 1, f"attribute n is {ctx.attr('n')}; expected at least 1")
        ctx.set_dim("Out", (ctx.attr("n"),))


class SamplingId(OpDef, type="sampling_id"):
    r"""$$Out_i = \min \{k : r_i < \sum_{j \le k} X_{i,j}\}$$ the last class when there is none, with
    $r_i \sim U[min, max)$."""

    X = Input("[n, k] probabilities, each row adds up to 1.")
    Out = Output("int64 [n]")
    min = Attr(0.0, "Lower bound of what is drawn.")
    max = Attr(1.0, "Upper bound of what is drawn.")
    seed = SEED
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, classes = ctx.require_rank("X", 2)
        ctx.require(classes != 0, f"X has shape {[rows, classes]}; expected one class at least")
        low, high = ctx.attr("min"), ctx.attr("max")
        ctx.require(low <= high, f"min is {low} and max {high}; expected min <= max")
        ctx.set_dim("Out", (rows,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int64")


class Seed(OpDef, type="seed"):
    r"""$$Out = seed$$ or, where that is 0, a random integer above 0."""

    Out = Output("int32 [1]")
    seed = Attr(0, "The number itself; 0 draws one.")
    deterministic = Attr(False, "Paddle: draw from the generator `rng_name`.", extra=True)
    force_cpu = Attr(False, "Paddle: keep Out in host memory.", extra=True)
    rng_name = Attr("", "Paddle: a generator by its name.", extra=True)
    make_grad = empty_grad
    versions = OpVersion("seed").checkpoint("Out may stay in host memory.", ("new_attr", "force_cpu", False))

    def expected_kernel_type(ctx: KernelTypeContext) -> OpKernelType:
        return ctx.kernel_type(dtype="int32")

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.set_dim("Out", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", "int32")


# shuffle_batch and its gradient.
class ShuffleBatch(OpDef, type="shuffle_batch"):
    r"""$$Out_{ShuffleIdx_i} = X_i$$ the rows of X, which are along its last dim, in a random order."""

    X = Input("Tensor of rank 1 or more.")
    Seed = Input("int64 [1], of the order; a value of 0 or less takes startup_seed.")
    Out = Output("Shape and LoD of X.")
    ShuffleIdx = Output("int64 [number of rows], where each row went.")
    SeedOut = Output("int64 [1], a seed for the next call.")
    startup_seed = Attr(0, "Seed of the first call; 0 takes that of the program.")
    expected_kernel_type = dtype_of("X")

    def infer_shape(ctx: InferShapeContext) -> None:
        dims = ctx.dim("X")
        ctx.require(len(dims) >= 1, "X has no dims; expected rank 1 or more")
        ctx.set_dim("Out", dims)
        ctx.share_lod("X", "Out")
        ctx.set_dim("ShuffleIdx", (-1 if min(dims) < 0 else math.prod(dims[:-1]),))
        ctx.set_dim("SeedOut", (1,))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("Out", ctx.dtype("X"))
        ctx.set_dtype("ShuffleIdx", "int64")
        ctx.set_dtype("SeedOut", "int64")


class ShuffleBatchGrad(GradOpDef, of=ShuffleBatch, reads="ShuffleIdx Out@GRAD", grads_of="X", like={"X": "Out@GRAD"}):
    r"""$$X@GRAD_i = Out@GRAD_{ShuffleIdx_i}$$"""

    expected_kernel_type = dtype_of("Out@GRAD")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("X@GRAD", ctx.dtype("Out@GRAD"))


class TruncatedGaussianRandom(OpDef, type="truncated_gaussian_random"):
    r"""$$Out \sim N(mean, std^2)$$, cut off at two standard deviations from the mean."""

    Out = Output("Tensor of `shape` and `dtype`.")
    shape = Attr(REQUIRED, "Shape of Out.", type=AttrType.INTS)
    mean = Attr(0.0, "Mean.")
    std = Attr(1.0, "Standard deviation before the cut.")
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    dtype = Attr(5, "dtype of Out.")
    expected_kernel_type = dtype_of_attr("dtype")
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        ctx.require_sizes("shape", ctx.attr("shape"))
        ctx.set_dim("Out", ctx.attr("shape"))


class UniformRandom(OpDef, type="uniform_random"):
    r"""$$Out \sim U[min, max)$$; the diag attributes then put a constant at regular places of a matrix."""

    ShapeTensor = SHAPE_TENSOR
    ShapeTensorList = SHAPE_TENSOR_LIST
    Out = Output("Tensor of the given shape and `dtype`.")
    shape = Attr([], "Shape of Out.", type=AttrType.LONGS)
    dtype = Attr(5, "dtype of Out.")
    min = Attr(-1.0, "Lower bound.", support_tensor=True)
    max = Attr(1.0, "Upper bound.", support_tensor=True)
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    diag_num = Attr(0, "How many elements to set to `diag_val`.").at_least(0)
    diag_step = Attr(0, "From one of them to the next: row i, column i of the matrix moves on by this.").at_least(0)
    diag_val = Attr(1.0, "Value of those elements.")
    expected_kernel_type = dtype_of_attr("dtype")
    infer_shape = infer_given_shape
    infer_var_type = infer_dtype_attr
    make_grad = empty_grad


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


# uniform_random_inplace and its gradient.
class UniformRandomInplace(DrawLike, type="uniform_random_inplace"):
    r"""$$Out \sim U[min, max)$$; the diag attributes then put a constant at regular places of a matrix."""

    min = Attr(-1.0, "Lower bound.")
    max = Attr(1.0, "Upper bound.")
    seed = SEED
    diag_num = Attr(0, "How many elements to set to `diag_val`.").at_least(0)
    diag_step = Attr(0, "From one of them to the next: row i, column i of the matrix moves on by this.").at_least(0)
    diag_val = Attr(1.0, "Value of those elements.")
    inplace = {"X": "Out"}


class UniformRandomInplaceGrad(ZeroGrad, of=UniformRandomInplace):
    r"""$$X@GRAD = 0$$"""
