"""merge_lod_tensor: its definition; the operator is in the file of this name below operators."""

from __future__ import annotations

from oprack.op import ForwardOp, GradOp

from oprack_control_flow.ops.mask._merge import MergeOp


class MergeLoDTensor(MergeOp, type="merge_lod_tensor"):
    r"""$$Out_i = InTrue_{k(i)}$$ where $$Mask_i$$, else $$InFalse_{i - k(i)}$$, with $$k(i) = \sum_{j<i} Mask_j$$,
    sequence by sequence.

    Undoes split_lod_tensor.
    """

    def make_grad(fwd: ForwardOp) -> GradOp:
        return GradOp(
            "split_lod_tensor",
            X=fwd.output_grad("Out"),
            Mask=fwd.input("Mask"),
            OutTrue=fwd.input_grad("InTrue"),
            OutFalse=fwd.input_grad("InFalse"),
            attrs=fwd.attrs,
        )
