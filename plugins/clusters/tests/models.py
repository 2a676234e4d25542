"""Small models that tests of clusters run, and what a loop over a predictor makes of the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import oprack
from oprack import inference, layers
from oprack.io import save_inference_model


def pictures(folder: Path) -> str:
    """A net of convolutions: pictures [3, 16, 16] in bytes to scores of three classes and the mean of each colour."""
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        x = layers.data("image", [-1, 3, 16, 16])
        net = layers.conv2d(layers.scale(x, scale=1 / 255), 8, 3, padding=1, act="relu")
        net = layers.pool2d(net, 2, "max", 2)
        scores = layers.softmax(layers.fc(net, 3))
        means = layers.reduce_mean(x, dim=[2, 3])
    return _saved(folder, main, startup, ["image"], [scores, means])


def words(folder: Path) -> str:
    """Sequences of numbers of words to a score for each word, and one for the sequence."""
    main, startup = oprack.Program(), oprack.Program()
    with oprack.program_guard(main, startup):
        ids = layers.data("ids", [-1, 1], dtype="int64", lod_level=1)
        embedded = layers.embedding(ids, [50, 4])
        each = layers.fc(embedded, 2)
        whole = layers.sequence_pool(embedded, "sum")
    return _saved(folder, main, startup, ["ids"], [each, whole])


def _saved(folder: Path, main: oprack.Program, startup: oprack.Program, feeds: list[str], fetches: list) -> str:
    scope = oprack.Scope()
    oprack.Executor().run(startup, scope=scope)
    folder.mkdir(exist_ok=True)
    save_inference_model(folder / "inference", main, feeds, [v.name for v in fetches], scope)
    return str(folder / "inference.pdmodel")


def drawn(count: int) -> np.ndarray:
    """Pictures, each of which is mostly of one colour."""
    rng = np.random.default_rng(3)
    found = rng.integers(0, 120, (count, 3, 16, 16), dtype=np.uint8)
    found[np.arange(count), np.arange(count) % 3] += 100
    return found


def looped(model: str, arrays) -> list[list[np.ndarray]]:
    """For each output all rows, of a loop over one predictor, a row a run."""
    predictor = inference.create_predictor(inference.Config(model))
    rows = [predictor.run([x]) for x in arrays]
    return [[row[k] for row in rows] for k in range(len(rows[0]))]
