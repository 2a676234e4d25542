"""OPRACK_CACHE=none: nothing is kept, in memory or on disk, and everything computes what it did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import oprack
import pytest
from oprack.cache import Cache
from oprack.io import save_inference_model
from oprack.packs.installed.cache import cache_directory

RUN = """if True:
    import json, sys
    from pathlib import Path
    import numpy as np
    import oprack
    from oprack.functional.op_function import op_function
    from oprack.inference import Config, create_predictor

    folder, rows, captured = Path(sys.argv[1]), [], []
    x = np.float32([[1, -2, 3]])

    def f(t):
        captured.append(1)
        return oprack.relu(t) * 2.0

    fast = oprack.jit(f)
    config = Config(str(folder / "m.pdmodel"), str(folder / "m.pdiparams"))
    config.set_optim_cache_dir(str(folder / "optim"))
    model = oprack.io.load_inference_model(folder / "m", oprack.Scope())
    executor = oprack.Executor()
    weight = oprack.to_tensor(np.ones((1, 3), "float32"), requires_grad=True)
    sgd = oprack.optimizer.SGD(0.5, parameters=[weight])
    for _ in range(4):
        t = oprack.to_tensor(x, requires_grad=True)
        y = oprack.relu(t)
        y.sum().backward()
        (weight * 1.0).sum().backward()
        sgd.step()
        sgd.clear_grad()
        served = create_predictor(config).run([x])[0]
        ran = executor.run(model.program, {"x": x}, model.fetch_names, oprack.Scope())[0]
        rows.append([r.tolist() for r in (y.numpy(), t.grad.numpy(), fast(t).numpy(), served, ran)])
    files = sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())
    entries = sum(kind["entries"] for kind in oprack.cache_info()["kinds"].values())
    kept = {"calls": len(op_function("relu").table), "entries": entries, "captured": len(captured), "files": files}
    print(json.dumps({"rows": rows, "weight": weight.numpy().tolist()} | kept))
"""


def ran(folder: Path, cache: str) -> dict[str, Any]:
    environ = os.environ | {"OPRACK_CACHE": cache, "OPRACK_CACHE_DIR": str(folder / "packs")}
    code = [sys.executable, "-W", "ignore", "-c", RUN, str(folder)]
    done = subprocess.run(code, env=environ, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("cache", ["1", "none"])
def test_a_process_keeps_something_or_nothing(cache: str, tmp_path: Path) -> None:
    traced = oprack.to_program(lambda x: oprack.relu(x) * 2.0, [oprack.InputSpec([None, 3], "float32", "x")])
    save_inference_model(tmp_path / "m", traced.program, traced.feed_names, traced.fetch_names, traced.scope)
    found = ran(tmp_path, cache)
    doubled = [[2.0, 0.0, 6.0]]
    assert found["rows"] == [[[[1.0, 0.0, 3.0]], [[1.0, 0.0, 1.0]], doubled, doubled, doubled]] * 4
    assert found["weight"] == [[-1.0, -1.0, -1.0]]  # four steps of 0.5
    others = [file for file in found["files"] if file.partition("/")[0] in ("optim", "packs")]
    if cache == "none":
        assert (found["captured"], found["calls"], found["entries"], others) == (4, 0, 0, [])
    else:
        assert found["captured"] == 1 and found["calls"] and found["entries"]
        assert {file.partition("/")[0] for file in others} == {"optim", "packs"}


def test_a_cache_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oprack.cache, "KEEPS_NOTHING", True)
    cache = Cache(8, "test")
    assert cache.keep("a", value := np.ones(3), nbytes=24) is value
    cache["b"] = 1
    assert cache["a"] is cache["b"] is None and len(cache) == 0
    monkeypatch.undo()
    cache["b"] = 1
    assert cache["b"] == 1


@pytest.mark.parametrize(("value", "is_there"), [("none", False), ("NONE ", False), ("0", False), ("1", True)])
def test_discovery_keeps_nothing_either(value: str, is_there: bool) -> None:
    assert (cache_directory({"OPRACK_CACHE": value, "OPRACK_CACHE_DIR": "/somewhere"}) is not None) is is_there
