"""lookup_table, lookup_table_v2 and their gradients: all of the ops but their kernels."""

from __future__ import annotations

from oprack import op
from oprack.op import Attr, GradOpDef, OpDef, OpVersion, dtype_of
from oprack.types import AttrType, VarType


def _rows_dims(ctx):
    dims = ctx.dim("W")
    ctx.require(len(dims) == 2, f"W has shape {list(dims)}; expected [rows, width]")
    return dims


def _infer_var_type(ctx):
    ctx.set_kind("Out", VarType.LOD_TENSOR)
    ctx.set_dtype("Out", ctx.dtype("W"))


def _infer_grad_var_type(ctx):
    sparse = ctx.attrs.get("is_sparse", False)
    ctx.set_kind("W@GRAD", VarType.SELECTED_ROWS if sparse else VarType.LOD_TENSOR)
    ctx.set_dtype("W@GRAD", ctx.dtype("Out@GRAD"))


_SPARSE = "The gradient of W is SelectedRows: the rows that were read, duplicates and padding_idx included."
_PADDING = "Rows of Out for this id are zero; -1 for none."


class LookupTable(OpDef, type="lookup_table"):
    r"""$$Out_i = W_{Ids_i}$$, zero where Ids is padding_idx."""

    W = op.Input("[rows, width], or SelectedRows that hold some of the rows.")
    Ids = op.Input("[..., 1], int64.")
    Out = op.Output("[..., width], LoD of Ids.")
    is_sparse = Attr(False, _SPARSE)
    is_distributed = Attr(False, "Paddle: the table lives on parameter servers.")
    padding_idx = Attr(-1, _PADDING, type=AttrType.LONG)
    remote_prefetch = Attr(False, "Paddle: fetch rows from parameter servers.")
    entry_config = Attr("", "Paddle: admission of sparse features.")
    is_test = Attr(False, "Ids that a SelectedRows table lacks give zero rows instead of an error.")
    entry = Attr("none", "Paddle: admission of sparse features.")
    table_class = Attr("none", "Paddle: kind of the table on parameter servers.")
    table_names = Attr([], "Paddle: tables on parameter servers.", type=AttrType.STRINGS)
    trainer_id = Attr(0, "Paddle: number of this trainer.")
    slot = Attr(0, "Paddle: slot of the feature.", extra=True)
    grad_inplace = Attr(False, "Paddle: write the gradient into its variable.")
    epmap = Attr([], "Paddle: parameter servers.", type=AttrType.STRINGS)
    height_sections = Attr([], "Paddle: rows per parameter server.", type=AttrType.LONGS)
    expected_kernel_type = dtype_of("W")
    infer_var_type = _infer_var_type
    versions = OpVersion("lookup_table").checkpoint("New attribute entry_config.", ("new_attr", "entry_config", ""))

    def infer_shape(ctx):
        ids, table = ctx.dim("Ids"), _rows_dims(ctx)
        ctx.require(
            len(ids) > 0 and ids[-1] in (1, -1),
            f"Ids has shape {list(ids)}; expected a last dim of 1 (lookup_table_v2 takes Ids without it)",
        )
        ctx.set_dim("Out", (*ids[:-1], table[1]))
        ctx.share_lod("Ids", "Out")


class LookupTableV2(OpDef, type="lookup_table_v2"):
    r"""$$Out_i = W_{Ids_i}$$, zero where Ids is padding_idx."""

    Ids = op.Input("Any shape, int32 or int64.")
    W = op.Input("[rows, width], or SelectedRows that hold some of the rows.")
    Out = op.Output("Shape of Ids and then width; LoD of Ids.")
    padding_idx = Attr(-1, _PADDING, type=AttrType.LONG)
    is_sparse = Attr(False, _SPARSE, extra=True)
    is_distributed = Attr(False, "Paddle: the table lives on parameter servers.", extra=True)
    remote_prefetch = Attr(False, "Paddle: fetch rows from parameter servers.", extra=True)
    slot = Attr(0, "Paddle: slot of the feature.", extra=True)
    table_names = Attr([], "Paddle: tables on parameter servers.", type=AttrType.STRINGS, extra=True)
    trainer_id = Attr(0, "Paddle: number of this trainer.", extra=True)
    epmap = Attr([], "Paddle: parameter servers.", type=AttrType.STRINGS, extra=True)
    height_sections = Attr([], "Paddle: rows per parameter server.", type=AttrType.LONGS, extra=True)
    expected_kernel_type = dtype_of("W")
    infer_var_type = _infer_var_type
    versions = OpVersion("lookup_table_v2").checkpoint(
        "Ids may be int32.", ("bugfix", "Ids may be int32 as well as int64", None)
    )

    def infer_shape(ctx):
        ctx.set_dim("Out", (*ctx.dim("Ids"), _rows_dims(ctx)[1]))
        ctx.share_lod("Ids", "Out")


class LookupTableGrad(GradOpDef, of=LookupTable, reads="Ids", shape_of="W", grads_of="W", lod=False):
    """W@GRAD sums Out@GRAD by id; dense without the row padding_idx, or SelectedRows with is_sparse."""

    infer_var_type = _infer_grad_var_type


class LookupTableV2Grad(GradOpDef, of=LookupTableV2, reads="W Ids Out@GRAD", shape_of="W", grads_of="W", lod=False):
    """W@GRAD sums Out@GRAD by id; dense without the row padding_idx, or SelectedRows with is_sparse."""

    infer_var_type = _infer_grad_var_type
