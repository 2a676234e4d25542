"""class_center_sample: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType


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
