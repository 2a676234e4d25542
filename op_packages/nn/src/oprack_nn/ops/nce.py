"""nce and its gradient: all of the ops but their kernels."""

from __future__ import annotations

import math

from oprack.op import REQUIRED, Attr, GradOpDef, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, dtype_of
from oprack.types import AttrType, VarType


def _require_probabilities(ctx: InferShapeContext) -> None:
    """CustomDistProbs is there where noise is drawn by it, with a probability of each class."""
    if ctx.attr("sampler") != 2:
        return
    ctx.require(ctx.has_input("CustomDistProbs"), "CustomDistProbs is absent; sampler 2 needs it")
    dims, classes = ctx.dim("CustomDistProbs"), ctx.attr("num_total_classes")
    ctx.require(
        min(dims, default=1) < 0 or math.prod(dims) == classes,
        f"CustomDistProbs has shape {list(dims)}; expected the probabilities of num_total_classes, {classes}",
    )


def _cost_dims(ctx: InferShapeContext) -> tuple[int, int]:
    _require_probabilities(ctx)
    return ctx.require_rank("Input", 2)[0], 1


class Nce(OpDef, type="nce"):
    r"""$$Cost_i = -w_i \left(\sum_{k \in Label_i} \log \frac{o_k}{o_k + q_k} + \sum_{k \in noise_i} \log
    \frac{q_k}{o_k + q_k}\right)$$ with $$o_k = \sigma(Input_i \cdot Weight_k + Bias_k)$$ and q_k = num_neg_samples
    times the probability by which class k is drawn as noise

    Noise-contrastive estimation (Gutmann and Hyvarinen, 2010): classes against some of the others instead of all.
    """

    Input_ = Input("[N, D].")
    Label = Input("Classes of each row [N, true], int64.")
    Weight = Input("[num_total_classes, D].")
    Bias = Input("[num_total_classes].", dispensable=True)
    SampleWeight = Input("Weight of each row [N, 1].", dispensable=True)
    CustomDistProbs = Input("sampler 2: probability of each class.", dispensable=True)
    CustomDistAlias = Input(
        "sampler 2: alias of each class (Walker); what it gives follows from the probabilities.", dispensable=True
    )
    CustomDistAliasProbs = Input(
        "sampler 2: probability of keeping each class rather than its alias.", dispensable=True
    )
    Cost = Output("[N, 1].")
    SampleLogits = Output("o of labels and noise [N, true + noise].", intermediate=True, extra=True)
    SampleLabels = Output("int64, the classes of SampleLogits.", intermediate=True, extra=True)
    num_total_classes = Attr(REQUIRED, "Classes.", type=AttrType.INT).greater_than(0)
    num_neg_samples = Attr(10, "Noise classes of each row.").at_least(0)
    sampler = Attr(0, "How noise is drawn: 0 uniform, 1 log-uniform, 2 by CustomDistProbs.").in_set((0, 1, 2))
    seed = Attr(0, "Seed of this op; 0 takes that of the program.")
    is_sparse = Attr(False, "The gradient of Weight is SelectedRows.")
    remote_prefetch = Attr(False, "Paddle: fetch rows from parameter servers.")
    is_test = Attr(False, "Leave the samples out.")
    custom_neg_classes = Attr([], "Noise classes that are not drawn.", type=AttrType.INTS, extra=True)
    epmap = Attr([], "Paddle: parameter servers.", type=AttrType.STRINGS, extra=True)
    height_sections = Attr([], "Paddle: rows per parameter server.", type=AttrType.LONGS, extra=True)
    table_names = Attr([], "Paddle: tables on parameter servers.", type=AttrType.STRINGS, extra=True)
    trainer_id = Attr(0, "Paddle: number of this trainer.", extra=True)
    expected_kernel_type = dtype_of("Input")

    def infer_shape(ctx: InferShapeContext) -> None:
        rows, width = ctx.require_rank("Input", 2)
        classes, noise = ctx.attr("num_total_classes"), ctx.attr("custom_neg_classes")
        ctx.require_dims("Label", (rows, -1), why="classes for each row of Input")
        ctx.require_dims("Weight", (classes, width), why="a row for each class, as wide as Input")
        ctx.require(
            not noise or len(noise) == ctx.attr("num_neg_samples"),
            f"custom_neg_classes has {len(noise)} classes; expected num_neg_samples, {ctx.attr('num_neg_samples')}",
        )
        columns = ctx.dim("Label")[1]
        ctx.set_dim("Cost", _cost_dims(ctx))
        for slot in ("SampleLogits", "SampleLabels"):
            ctx.set_dim(slot, (rows, -1 if columns < 0 else columns + ctx.attr("num_neg_samples")))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Cost", "SampleLogits"):
            ctx.set_dtype(slot, ctx.dtype("Input"))
        ctx.set_dtype("SampleLabels", "int64")


class NceGrad(
    GradOpDef,
    of=Nce,
    reads="Input Label Weight Bias SampleLogits SampleLabels SampleWeight CustomDistProbs CustomDistAlias "
    "CustomDistAliasProbs Cost@GRAD",
    shape_of="Bias",
    grads_of="Input Weight Bias",
    dims={"Cost@GRAD": _cost_dims},
):
    r"""With $$g_{ik} = Cost@GRAD_i w_i \frac{(o_k - 1) q_k}{o_k + q_k}$$ for labels and $$Cost@GRAD_i w_i \frac{o_k
    (1 - o_k)}{o_k + q_k}$$ for noise: Bias@GRAD sums g by class, Weight@GRAD g Input, and $$Input@GRAD_i = \sum_k
    g_{ik} Weight_k$$"""

    expected_kernel_type = dtype_of("Input")

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        for slot in ("Input@GRAD", "Weight@GRAD", "Bias@GRAD"):
            ctx.set_dtype(slot, ctx.dtype("Input"))
        sparse = ctx.attrs.get("is_sparse", False)
        ctx.set_kind("Weight@GRAD", VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR)
