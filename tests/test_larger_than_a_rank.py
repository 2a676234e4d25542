"""examples/train_larger_than_a_rank.py: two ranks train what one may not hold, one is killed, others go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mpi4py", reason="the plugin mpi starts ranks")
pytest.importorskip("safetensors", reason="checkpoints in parts are files of it")
if not sys.platform.startswith("linux"):
    pytest.skip("limits of memory are those of Linux", allow_module_level=True)

import train_larger_than_a_rank

SIZE = ["--width", "256", "--blocks", "4", "--steps", "6", "--save-every", "2"]  # 32 MiB
LIMIT = ["--memory", "45"]  # two ranks take some 30 MiB each, one 57


def run(path: Path, *options: str, ranks: int = 0) -> subprocess.CompletedProcess[str]:
    launch = ["-m", "oprack", "launch", "-n", str(ranks), "--timeout", "60"] if ranks else []
    command = [sys.executable, *launch, train_larger_than_a_rank.__file__, *SIZE, "--out", str(path), *options]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=os.environ | threads)


def losses(path: Path) -> list[float]:
    assert train_larger_than_a_rank.main([*SIZE, "--out", str(path)]) == 0
    found: list[float] = json.loads((path / "losses.json").read_text())
    return found


def test_ranks_train_what_one_may_not_hold_and_others_go_on(tmp_path):
    alone = run(tmp_path / "alone", *LIMIT)
    assert alone.returncode != 0 and "MemoryError" in alone.stderr
    parts = tmp_path / "parts"
    killed = run(parts, *LIMIT, "--kill-at", "5", ranks=2)
    assert killed.returncode != 0
    assert "rank 1 of 2" in killed.stderr and "signal 9 (SIGKILL)" in killed.stderr, killed.stderr[-2000:]
    checkpoints = parts / "checkpoints"
    assert (checkpoints / "latest").read_text() == "ckpt-2\n"
    assert not (parts / "losses.json").exists()
    wanted = losses(tmp_path / "whole")
    assert len(set(wanted)) == 6
    np.testing.assert_allclose(losses(parts), wanted, rtol=1e-5)
