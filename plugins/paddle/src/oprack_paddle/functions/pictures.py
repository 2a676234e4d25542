"""paddle.vision.ops: boxes, regions, and deformable convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import oprack
from oprack import functional as F

Tensor = Any


def _pair(value: Any) -> list[int]:
    return [value] * 2 if isinstance(value, int) else list(value)


def _one(found: Any) -> Tensor:
    return found[0] if isinstance(found, tuple) else found


def deform_conv2d(
    x: Tensor, offset: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    deformable_groups: int = 1, groups: int = 1, mask: Any = None, name: Any = None,
) -> Tensor:  # fmt: skip
    """A convolution at places that are moved by offsets."""
    given = {
        "strides": _pair(stride), "paddings": _pair(padding), "dilations": _pair(dilation), "groups": groups,
        "deformable_groups": deformable_groups, "im2col_step": 1,
    }  # fmt: skip
    found = (
        F.deformable_conv_v1(x, offset, weight, **given)
        if mask is None
        else F.deformable_conv(x, offset, weight, mask, **given)
    )
    return found if bias is None else found + bias.reshape([1, -1, 1, 1])


def roi_align(
    x: Tensor, boxes: Tensor, boxes_num: Tensor, output_size: Any, spatial_scale: float = 1.0, sampling_ratio: int = -1,
    aligned: bool = True, name: Any = None,
) -> Tensor:  # fmt: skip
    """Regions of interest, sampled at points."""
    h, w = _pair(output_size)
    return F.roi_align(
        x,
        boxes,
        boxes_num,
        pooled_height=h,
        pooled_width=w,
        spatial_scale=spatial_scale,
        sampling_ratio=sampling_ratio,
        aligned=aligned,
    )


def roi_pool(
    x: Tensor, boxes: Tensor, boxes_num: Tensor, output_size: Any, spatial_scale: float = 1.0, name: Any = None
) -> Tensor:
    """The largest elements of parts of regions of interest."""
    h, w = _pair(output_size)
    return _one(F.roi_pool(x, boxes, boxes_num, pooled_height=h, pooled_width=w, spatial_scale=spatial_scale))


def psroi_pool(
    x: Tensor, boxes: Tensor, boxes_num: Tensor, output_size: Any, spatial_scale: float = 1.0, name: Any = None
) -> Tensor:
    """The means of parts of regions, each part from channels of its own."""
    h, w = _pair(output_size)
    channels = x.shape[1] // (h * w)
    return F.psroi_pool(
        x, boxes, boxes_num, output_channels=channels, pooled_height=h, pooled_width=w, spatial_scale=spatial_scale
    )


def nms(
    boxes: Tensor,
    iou_threshold: float = 0.3,
    scores: Any = None,
    category_idxs: Any = None,
    categories: Any = None,
    top_k: Any = None,
) -> Tensor:
    """Which boxes are left when those are gone that overlap better ones."""
    if scores is None:
        return F.nms(boxes, iou_threshold=iou_threshold)
    host = np.asarray(scores)
    kept = []
    groups = (
        [np.arange(len(host))]
        if category_idxs is None
        else [np.flatnonzero(np.asarray(category_idxs) == c) for c in categories]
    )
    for group in groups:
        order = group[np.argsort(-host[group], kind="stable")]
        if len(order):
            left = np.asarray(F.nms(F.gather(boxes, oprack.to_tensor(order)), iou_threshold=iou_threshold))
            kept += order[left].tolist()
    found = np.asarray(kept, np.int64)
    found = found[np.argsort(-host[found], kind="stable")]
    return oprack.to_tensor(found if top_k is None else found[:top_k])


def box_coder(
    prior_box: Tensor, prior_box_var: Any, target_box: Tensor, code_type: str = "encode_center_size",
    box_normalized: bool = True,
    axis: int = 0, name: Any = None,
) -> Tensor:  # fmt: skip
    """Boxes by their difference from others, or back."""
    tensor = prior_box_var if hasattr(prior_box_var, "dtype") else None
    given = {} if tensor is not None or prior_box_var is None else {"variance": list(prior_box_var)}
    return F.box_coder(prior_box, target_box=target_box, prior_box_var=tensor, code_type=code_type,
                       box_normalized=box_normalized, axis=axis, **given)  # fmt: skip


def prior_box(
    input: Tensor, image: Tensor, min_sizes: Any, max_sizes: Any = None, aspect_ratios: Any = (1.0,),
    variance: Any = (0.1, 0.1, 0.2, 0.2),
    flip: bool = False, clip: bool = False, steps: Any = (0.0, 0.0), offset: float = 0.5,
    min_max_aspect_ratios_order: bool = False,
    name: Any = None,
) -> Any:  # fmt: skip
    """Boxes of several sizes at each place of a feature map."""
    many = [[v] if isinstance(v, int | float) else list(v) for v in (min_sizes, aspect_ratios)]
    more = (
        {}
        if max_sizes is None
        else {"max_sizes": [max_sizes] if isinstance(max_sizes, int | float) else list(max_sizes)}
    )
    return F.prior_box(
        input, image, min_sizes=many[0], aspect_ratios=many[1], variances=list(variance), flip=flip, clip=clip,
        step_w=float(steps[0]),
        step_h=float(steps[1]), offset=offset, min_max_aspect_ratios_order=min_max_aspect_ratios_order, **more,
    )  # fmt: skip


def yolo_box(
    x: Tensor, img_size: Tensor, anchors: Any, class_num: int, conf_thresh: float, downsample_ratio: int,
    clip_bbox: bool = True,
    name: Any = None, scale_x_y: float = 1.0, iou_aware: bool = False, iou_aware_factor: float = 0.5,
) -> Any:  # fmt: skip
    """Boxes and scores of YOLOv3."""
    return F.yolo_box(
        x, img_size, anchors=list(anchors), class_num=class_num, conf_thresh=conf_thresh,
        downsample_ratio=downsample_ratio,
        clip_bbox=clip_bbox, scale_x_y=scale_x_y, iou_aware=iou_aware, iou_aware_factor=iou_aware_factor,
    )  # fmt: skip


def yolo_loss(
    x: Tensor, gt_box: Tensor, gt_label: Tensor, anchors: Any, anchor_mask: Any, class_num: int, ignore_thresh: float,
    downsample_ratio: int, gt_score: Any = None, use_label_smooth: bool = True, name: Any = None,
    scale_x_y: float = 1.0,
) -> Tensor:  # fmt: skip
    """The loss of YOLOv3."""
    return _one(F.yolov3_loss(
        x, gt_box, gt_label, gt_score, anchors=list(anchors), anchor_mask=list(anchor_mask), class_num=class_num,
        ignore_thresh=ignore_thresh, downsample_ratio=downsample_ratio, use_label_smooth=use_label_smooth,
        scale_x_y=scale_x_y,
    ))  # fmt: skip


def matrix_nms(
    bboxes: Tensor, scores: Tensor, score_threshold: float, post_threshold: float, nms_top_k: int, keep_top_k: int,
    use_gaussian: bool = False, gaussian_sigma: float = 2.0, background_label: int = 0, normalized: bool = True,
    return_index: bool = False, return_rois_num: bool = True, name: Any = None,
) -> Any:  # fmt: skip
    """Boxes whose scores are smaller the more they overlap better ones."""
    out, index, number = F.matrix_nms(
        bboxes, scores, score_threshold=score_threshold, post_threshold=post_threshold, nms_top_k=nms_top_k,
        keep_top_k=keep_top_k,
        use_gaussian=use_gaussian, gaussian_sigma=gaussian_sigma, background_label=background_label,
        normalized=normalized,
    )  # fmt: skip
    return out, number if return_rois_num else None, index if return_index else None


def generate_proposals(
    scores: Tensor, bbox_deltas: Tensor, img_size: Tensor, anchors: Tensor, variances: Tensor,
    pre_nms_top_n: int = 6000,
    post_nms_top_n: int = 1000, nms_thresh: float = 0.5, min_size: float = 0.1, eta: float = 1.0,
    pixel_offset: bool = False,
    return_rois_num: bool = False, name: Any = None,
) -> Any:  # fmt: skip
    """The regions that a detector looks at."""
    rois, probs, number = F.generate_proposals_v2(
        scores, bbox_deltas, img_size, anchors, variances, pre_nms_topN=pre_nms_top_n, post_nms_topN=post_nms_top_n,
        nms_thresh=nms_thresh, min_size=min_size, eta=eta, pixel_offset=pixel_offset,
    )  # fmt: skip
    return (rois, probs, number) if return_rois_num else (rois, probs)


def distribute_fpn_proposals(
    fpn_rois: Tensor, min_level: int, max_level: int, refer_level: int, refer_scale: int, pixel_offset: bool = False,
    rois_num: Any = None, name: Any = None,
) -> Any:  # fmt: skip
    """Regions, sorted by the level of a pyramid that has their size."""
    levels = max_level - min_level + 1
    found = F.distribute_fpn_proposals(
        fpn_rois, rois_num, min_level=min_level, max_level=max_level, refer_level=refer_level, refer_scale=refer_scale,
        pixel_offset=pixel_offset, num_outputs={"MultiFpnRois": levels, "MultiLevelRoIsNum": levels},
    )  # fmt: skip
    by_name = (
        found._asdict() if hasattr(found, "_asdict") else dict(zip(("rois", "restore", "numbers"), found, strict=False))
    )
    values = list(by_name.values())
    rois, rest = values[0], values[1:]
    restore = next(v for v in rest if not isinstance(v, list | tuple))
    numbers = next((list(v) for v in rest if isinstance(v, list | tuple)), None)
    return list(rois), restore, numbers if rois_num is not None else None


def read_file(filename: str, name: Any = None) -> Tensor:
    """The bytes of a file."""
    with open(filename, "rb") as file:
        return oprack.to_tensor(np.frombuffer(file.read(), np.uint8).copy())


def decode_jpeg(x: Tensor, mode: str = "unchanged", name: Any = None) -> Tensor:
    """The picture in the bytes of a JPEG file, channels first."""
    import io

    from PIL import Image

    image: Any = Image.open(io.BytesIO(np.asarray(x).tobytes()))
    if mode in ("gray", "rgb"):
        image = image.convert("L" if mode == "gray" else "RGB")
    array = np.asarray(image)
    return oprack.to_tensor((array[None] if array.ndim == 2 else array.transpose(2, 0, 1)).copy())
