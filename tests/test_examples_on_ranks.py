"""examples/train_on_ranks.py on two ranks, started by `oprack launch`: the losses of one rank with the whole batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mpi4py", reason="the plugin mpi starts ranks")

pytest.importorskip("oprack_onednn")

import _fetch
import datasets
import oprack_onednn
import train_on_ranks


def on_two_ranks(path: Path, *options: str) -> list[float]:
    script, out = train_on_ranks.__file__, path / "losses.json"
    command = [sys.executable, "-m", "oprack", "launch", "-n", "2", "--timeout", "60"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, script, *options, "--out", str(out)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert " on 2 ranks, 2 parts: " in done.stdout
    found: list[float] = json.loads(out.read_text())
    return found


@pytest.fixture(autouse=True)
def one_thread():
    """As each of two ranks on two cores has; with other numbers of threads sums are taken in another order."""
    oprack_onednn.set_num_threads(1)
    yield
    oprack_onednn.set_num_threads(0)


def alone(path: Path, *options: str) -> list[float]:
    out = path / "alone.json"
    assert train_on_ranks.main([*options, "--out", str(out)]) == 0
    found: list[float] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize(
    ("model", "parts", "more"),
    [
        ("tagger", "1", ()),
        ("sentiment", "1", ("--zero",)),
        ("lenet", "2", ("--zero",)),  # batch norm goes by the part of the batch that a rank has
        ("resnet18", "2", ()),
    ],
)
def test_two_ranks_train_as_one(model, parts, more, tmp_path):
    try:
        if model in ("tagger", "sentiment"):
            datasets.people_daily(1)
        elif model == "lenet":
            datasets.digits()
    except _fetch.DownloadError as error:
        pytest.skip(f"the data of {model} is not in .downloads and cannot be fetched: {error}")
    options = (model, "--quick", "--steps", "4")
    want = alone(tmp_path, *options, "--parts", parts)
    np.testing.assert_allclose(on_two_ranks(tmp_path, *options, *more), want, atol=1e-5)
    assert len(set(want)) == 4
