"""Models that oprack saves load in Paddle and give the same outputs. Run with Paddle's Python:

    PADDLE_ENV/bin/python tests/oracle/check_saved.py .venv/bin/python

The programs of tests/data/programs are loaded and saved again by oprack (the Python given), then run by Paddle 2.6.2.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

PROGRAMS = Path(__file__).parents[1] / "data" / "programs"
SAVE = """
import sys
from oprack import Scope
from oprack.io import load_inference_model, save_inference_model
scope = Scope()
model = load_inference_model(sys.argv[1], scope)
save_inference_model(sys.argv[2], model.program, model.feed_names, model.fetch_names, scope)
"""


def outputs(prefix: Path, feeds: list[tuple[np.ndarray, list[list[int]]]]) -> list[np.ndarray]:
    """What Paddle computes."""
    import paddle.inference as inference

    params = prefix.with_suffix(".pdiparams")
    config = inference.Config(str(prefix.with_suffix(".pdmodel")), str(params) if params.exists() else "")
    config.disable_gpu()
    config.disable_mkldnn()
    config.switch_ir_optim(False)
    predictor = inference.create_predictor(config)
    for name, (value, lod) in zip(predictor.get_input_names(), feeds, strict=True):
        handle = predictor.get_input_handle(name)
        handle.copy_from_cpu(value)
        if lod:
            handle.set_lod(lod)
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


def main() -> int:
    """Print the largest difference for each model; 1 when one differs by more than 1e-4."""
    worst = 0.0
    for folder in sorted(p for p in PROGRAMS.iterdir() if (p / "model.pdmodel").exists()):
        meta = json.loads((folder / "meta.json").read_text())
        feeds = [(np.load(folder / f["file"]), f.get("lod") or []) for f in meta["feed"]]
        with tempfile.TemporaryDirectory() as scratch:
            prefix = Path(scratch, "saved")
            subprocess.run([sys.argv[1], "-c", SAVE, str(folder / "model"), str(prefix)], check=True)
            got = outputs(prefix, feeds)
        differences = []
        for info, value in zip(meta["fetch"], got, strict=True):
            want = np.load(folder / info["file"]).astype(np.float64)
            differences.append(float(np.abs(value.astype(np.float64) - want).max(initial=0.0)))
        print(f"{folder.name}: {len(got)} outputs, largest difference {max(differences):.3g}")
        worst = max(worst, *differences)
    return int(worst > 1e-4)


if __name__ == "__main__":
    sys.exit(main())
