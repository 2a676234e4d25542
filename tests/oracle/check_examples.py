"""The models that the training examples save give the same answers in Paddle: LoD, sparse tables, While, beam search.

    PADDLE_ENV/bin/python tests/oracle/check_examples.py .venv/bin/python

The Python given runs each example on a little of its data; Paddle 2.6.2 then loads the saved model and is fed what the
example fed to oprack.inference.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("train_digits", "train_sentiment", "train_seq2seq", "train_tagger")
TOLERANCE = 1e-4
TRAIN = r"""
import importlib, json, sys
from pathlib import Path
import common
import numpy as np

folder, predict = Path(sys.argv[2]), common.predict
saved, lods = {}, {}

def recorded(predictor, feed):
    answers = predict(predictor, feed)
    values = {f"in_{name}": value for name, value in feed.items()}
    values |= {f"out_{i}": value for i, value in enumerate(answers)}
    for name, value in values.items():
        saved[name], lods[name] = np.asarray(value), getattr(value, "lod", [])
    return answers

common.predict = recorded
importlib.import_module(sys.argv[1]).main(["--quick", "--epochs", "2", "--out", str(folder)])
np.savez(folder / "values.npz", **saved)
(folder / "lods.json").write_text(json.dumps(lods))
"""


def difference(folder: Path) -> float:
    """Largest difference of Paddle's answers; infinite where shape or LoD differ."""
    from paddle import inference

    config = inference.Config(str(folder / "model.pdmodel"), str(folder / "model.pdiparams"))
    config.switch_ir_optim(False)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    lods, worst = json.loads((folder / "lods.json").read_text()), 0.0
    with np.load(folder / "values.npz") as values:
        for name in predictor.get_input_names():
            handle = predictor.get_input_handle(name)
            handle.copy_from_cpu(values[f"in_{name}"])
            handle.set_lod(lods[f"in_{name}"])
        predictor.run()
        for i, name in enumerate(predictor.get_output_names()):
            handle, want = predictor.get_output_handle(name), values[f"out_{i}"]
            got = handle.copy_to_cpu()
            if got.shape != want.shape or handle.lod() != lods[f"out_{i}"]:
                return np.inf
            worst = max(worst, float(np.abs(got.astype(np.float64) - want).max()))
    return worst


def main() -> int:
    """Print the largest difference of each example's answers; 1 when one is above TOLERANCE."""
    worst = 0.0
    for name in NAMES:
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.argv[1], "-c", TRAIN, name, scratch]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={"PYTHONPATH": str(EXAMPLES)})
            gap = difference(Path(scratch))
        print(f"{name}: largest difference {gap:.2g}")
        worst = max(worst, gap)
    return int(worst > TOLERANCE)


if __name__ == "__main__":
    sys.exit(main())
