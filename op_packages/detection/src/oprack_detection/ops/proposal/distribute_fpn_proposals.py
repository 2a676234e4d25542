"""distribute_fpn_proposals: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import (
    REQUIRED,
    Attr,
    InferShapeContext,
    InferVarTypeContext,
    Input,
    OpDef,
    OpVersion,
    Output,
    dtype_of,
    empty_grad,
)
from oprack.types import AttrType


class DistributeFpnProposals(OpDef, type="distribute_fpn_proposals"):
    r"""Sends each region to a level of a feature pyramid:
    $$level = \lfloor \log_2(\sqrt{area} / refer\_scale) + refer\_level \rfloor$$, held between min and max"""

    FpnRois = Input("Regions [R, 4]; LoD or RoisNum tells the image of each.")
    RoisNum = Input("Regions of each image [N], int32.", dispensable=True)
    MultiFpnRois = Output("Regions of each level, by image.", duplicable=True)
    RestoreIndex = Output("Position of each region in the levels laid one after another [R, 1], int32.")
    MultiLevelRoIsNum = Output("Regions of each level per image [N], int32.", duplicable=True, dispensable=True)
    min_level = Attr(REQUIRED, "Level of the smallest regions.", type=AttrType.INT)
    max_level = Attr(REQUIRED, "Level of the largest regions.", type=AttrType.INT)
    refer_level = Attr(REQUIRED, "Level of a region of side refer_scale.", type=AttrType.INT)
    refer_scale = Attr(REQUIRED, "Side of a region of refer_level.", type=AttrType.INT).greater_than(0)
    pixel_offset = Attr(True, "Corners are pixels, so a region is xmax - xmin + 1 wide.")
    make_grad = empty_grad
    expected_kernel_type = dtype_of("FpnRois")
    versions = (
        OpVersion("distribute_fpn_proposals")
        .checkpoint(
            "regions per image as tensors", ("new_input", "RoisNum", None), ("new_output", "MultiLevelRoIsNum", None)
        )
        .checkpoint("regions may have exact corners", ("new_attr", "pixel_offset", True))
    )

    def infer_shape(ctx: InferShapeContext) -> None:
        rois = ctx.require_rank("FpnRois", 2)
        ctx.require(rois[1] in (4, -1), f"FpnRois has shape {list(rois)}; expected [R, 4]")
        low, high = ctx.attr("min_level"), ctx.attr("max_level")
        levels = high - low + 1
        ctx.require(
            levels > 0 and ctx.output_count("MultiFpnRois") == levels,
            f"MultiFpnRois has {ctx.output_count('MultiFpnRois')} outputs, but min_level is {low} and max_level {high}",
        )
        for i in range(levels):
            ctx.set_dim("MultiFpnRois", (-1, 4), i)
            ctx.set_lod_level("MultiFpnRois", 1, i)
        for i in range(ctx.output_count("MultiLevelRoIsNum")):
            ctx.set_dim("MultiLevelRoIsNum", ctx.dim("RoisNum") if ctx.has_input("RoisNum") else (-1,), i)
        ctx.set_dim("RestoreIndex", (rois[0], 1))

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_dtype("MultiFpnRois", ctx.dtype("FpnRois"))
        ctx.set_dtype("RestoreIndex", "int32")
        if ctx.has_output("MultiLevelRoIsNum"):
            ctx.set_dtype("MultiLevelRoIsNum", "int32")
