"""Kernels for place cuda run all cases over strict arrays: they use nothing but `xp`, and of that what CuPy has."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import oprack_cuda
import pytest
from oprack.kernel import bind_signature
from oprack.packs.manager import default_manager
from oprack.testing.cases import FileCase, Stage, load_cases
from oprack.testing.conformance import STAGES
from oprack.testing.runner import missing_ops
from oprack_cuda.testing import check_case

CASES = Path(__file__).parents[3] / "tests/data/cases"
FILES = sorted(CASES.rglob("*.npz"))
MANIFEST = tomllib.loads((Path(oprack_cuda.__file__).parent / "ops.toml").read_text("utf-8"))["kernels"]
# ops whose kernel here is a source in CUDA C++; gradients run with their ops
OWN = [op.removesuffix("_grad") for op, modules in MANIFEST.items() if not all(".host_" in m for m in modules["cuda"])]
OWN = sorted(set(OWN))
# decisions one after the other over few numbers, draws in the order of NumPy's generators, results whose size follows
# from the values, running extrema and factorizations that CuPy's namespace lacks: the core copies their inputs to the
# host and the outputs back
ON_HOST = {
    *("beam_search", "beam_search_decode", "ctc_align", "edit_distance", "segment_pool", "segment_pool_grad"),
    *("box_clip", "collect_fpn_proposals", "distribute_fpn_proposals", "generate_proposals", "generate_proposals_v2"),
    *("matrix_nms", "multiclass_nms", "multiclass_nms2", "multiclass_nms3", "yolov3_loss", "yolov3_loss_grad"),
    *("lu", "lu_grad", "lu_unpack", "lu_unpack_grad", "attention_lstm", "lookup_table_dequant"),
    *("chunk_eval", "mean_iou", "precision_recall", "multinomial", "unique"),
    *("unique_with_counts", "repeat_interleave", "repeat_interleave_grad", "similarity_focus", "hash", "mode"),
    *("bipartite_match", "generate_proposal_labels", "mine_hard_examples", "retinanet_detection_output"),
    *("retinanet_target_assign", "rpn_target_assign", "locality_aware_nms", "nms", "graph_reindex", "tdm_child"),
    *("target_assign", "hierarchical_sigmoid", "hierarchical_sigmoid_grad", "generate_mask_labels"),
    *("graph_khop_sampler", "pyramid_hash", "pyramid_hash_grad"),
    *("prroi_pool", "prroi_pool_grad", "psroi_pool", "psroi_pool_grad", "detection_map", "positive_negative_pair"),
    *("deformable_psroi_pooling", "deformable_psroi_pooling_grad", "nce", "nce_grad", "tdm_sampler"),
    *("roi_perspective_transform", "roi_perspective_transform_grad", "tree_conv", "tree_conv_grad"),
    *("match_matrix_tensor", "match_matrix_tensor_grad", "var_conv_2d", "var_conv_2d_grad", "warprnnt"),
    *("warprnnt_grad", "sequence_topk_avg_pooling", "sequence_topk_avg_pooling_grad", "filter_by_instag"),
    *("filter_by_instag_grad", "graph_sample_neighbors", "weighted_sample_neighbors"),
    # the engine of several ranks takes arrays of the host
    *(f"c_{way}_{kind}" for way in ("allreduce", "reduce") for kind in ("sum", "max", "min", "prod")),
    *(
        "mp_allreduce_sum",
        "c_identity",
        "c_broadcast",
        "c_allgather",
        "c_reducescatter",
        "c_concat",
        "c_split",
        "alltoall",
    ),
    *(
        "partial_allgather",
        "barrier",
        "depend",
        "c_sync_calc_stream",
        "c_sync_comm_stream",
        "c_wait_comm",
        "c_wait_compute",
    ),
    *("all_gather", "all_reduce", "all_to_all", "broadcast", "dist_concat", "reduce", "reduce_scatter", "c_scatter"),
    *("c_softmax_with_cross_entropy", "c_softmax_with_cross_entropy_grad", "global_gather", "global_scatter"),
    *("send_v2", "recv_v2", "p_send", "p_recv", "partial_send", "partial_recv"),
    *("sync_batch_norm", "sync_batch_norm_grad"),
    *("cummax", "cummax_grad", "cummin", "cummin_grad", "logcumsumexp", "logcumsumexp_grad", "dirichlet", "poisson"),
}
# SciPy's products, and patterns by sorting and searching
ON_HOST |= {op for op in default_manager().op_types() if default_manager().owner(op) == "oprack-sparse"}
# what readers of ONNX need besides, in NumPy
ON_HOST |= {op for op in default_manager().op_types() if default_manager().owner(op) == "oprack-onnx-ops"}
ON_HOST |= {"onnxruntime_engine"}
# of each file so many cases run through plans as well
PREPARED = 2


def _stages(case: FileCase) -> Iterator[Stage]:
    return (s for s in STAGES if case.has(s) and not missing_ops(case, s, default_manager()))


@pytest.mark.parametrize("file", FILES, ids=[f"{f.parent.name}-{f.stem}" for f in FILES])
def test_cases_at_place_cuda(file: Path) -> None:
    """A case passes at place cuda, or fails at place cpu, too (a limitation that its pack's own tests name)."""
    found = []
    for i, case in enumerate(load_cases(file)):
        for stage in _stages(case):
            reasons = check_case(case, stage, prepared=i < PREPARED)
            if reasons:
                found.append(f"{case.id} {stage}: " + "; ".join(reasons))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("op", OWN)
def test_cases_with_kernels_of_library_cuda(op: str, emulated: None) -> None:
    """Ops with a CUDA source: the same cases, with the source compiled as C++."""
    files = [f for f in FILES if f.stem == op]
    found = []
    for case in (c for f in files for c in load_cases(f)):
        for stage in _stages(case):
            reasons = check_case(case, stage, prepared=False)
            if reasons:
                found.append(f"{case.id} {stage}: " + "; ".join(reasons))
    assert files and not found, "\n".join(found)


def test_ops_have_a_kernel_at_place_cuda_or_are_known_to_run_on_the_host() -> None:
    """All ops of the packs; those of the plugin oprack-onednn are made by its passes, for the CPU."""
    manager = default_manager()
    missing = {
        op
        for op in manager.op_types()
        if manager.operator_class(op) is None and not len(manager.kernel_map(op, "cuda"))
    }
    assert {op for op in missing if not op.startswith("onednn_")} == ON_HOST
    assert all(len(manager.kernel_map(op, "cpu")) for op in ON_HOST)


def test_every_kind_of_input_is_served_at_place_cuda() -> None:
    """For tensors, SelectedRows and arrays of tensors alike, and for all dtypes that the CPU's kernels take.

    Sparse tensors are computed on the host.
    """
    manager, missing = default_manager(), []
    for op in (t for t in manager.op_types() if not t.startswith("onednn_")):
        if manager.operator_class(op) is not None or op in ON_HOST:
            continue
        proto, served = manager.op_info(op).proto, defaultdict(set)
        kinds = {
            spec: tuple((slot, kind) for slot, _, kind in bind_signature(spec.function, proto).inputs if kind)
            for place in ("cpu", "cuda")
            for spec in manager.kernel_map(op, place)
        }
        for spec, key in kinds.items():
            if spec.place == "cuda":
                served[key] |= spec.dtypes
        missing += [
            f"{op} {key}: {sorted(spec.dtypes - served[key])}"
            for spec, key in kinds.items()
            if spec.place == "cpu"
            and spec.library == "plain"
            and not spec.dtypes <= served[key]
            and not any(kind.startswith("Sparse") for _, kind in key)
        ]
    assert missing == []
