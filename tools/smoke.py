"""Use an installed oprack as README.md says: run by tools/try_release.py, in an environment that knows no checkout.

    python -I smoke.py CHECKOUT EXTRA...

The checkout is read for README.md and for a model that Paddle saved with what it answered; no code of it is imported.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import oprack


@contextlib.contextmanager
def step(title: str) -> Iterator[None]:
    """Print what was done and how long it took."""
    start = time.perf_counter()
    yield
    print(f"{title}: {time.perf_counter() - start:.1f} s")


def command(*arguments: object) -> str:
    """Run the command oprack of this environment, which has to succeed."""
    found = [str(Path(sys.executable).with_name("oprack")), *map(str, arguments)]
    done = subprocess.run(found, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(found)} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def native_pack(folder: Path) -> None:
    """The C of a new pack compiles on this machine, and its tests, some of which compare it with NumPy, pass."""
    subprocess.run([sys.executable, "hatch_build.py"], cwd=folder, check=True)
    code = "from oprack_my_pack import native; print(native.library() is not None, native.scaled_square([[1.5]], 2.0))"
    for words in (["-c", code], ["-m", "pytest", "-q", "-k", "c_agrees", "tests/test_scaled_square.py"]):
        done = subprocess.run(
            [sys.executable, *words], cwd=folder, env=os.environ | {"PYTHONPATH": "src"}, capture_output=True, text=True
        )
        if done.returncode or not ("3 passed" in done.stdout or done.stdout == "True [[4.5]]\n"):
            raise SystemExit(f"{words} ended with {done.returncode}\n{done.stdout}{done.stderr}")


def run_model(folder: Path) -> None:
    """A recurrent model that Paddle saved gives what Paddle gave, by the API and by `oprack run`."""
    from oprack import inference

    config = inference.Config(str(folder / "model.pdmodel"), str(folder / "model.pdiparams"))
    predictor = inference.create_predictor(config)
    meta = json.loads((folder / "meta.json").read_text())
    feeds = {}
    for i, name in enumerate(predictor.get_input_names()):
        handle = predictor.get_input_handle(name)
        feeds[name] = np.load(folder / f"in_{i}.npy")
        handle.copy_from_cpu(feeds[name])
    predictor.run()
    for i, name in enumerate(predictor.get_output_names()):
        answer = predictor.get_output_handle(name).copy_to_cpu()
        np.testing.assert_allclose(answer, np.load(folder / f"out_{i}.npy"), rtol=1e-4, atol=1e-5, err_msg=str(meta))
    words = [f"--feed={name}={folder / f'in_{i}.npy'}" for i, name in enumerate(feeds)]
    command("run", folder / "model.pdmodel", *words)


def train(snippet: str, folder: Path) -> None:
    """A training snippet of README.md trains, and its model is saved and loaded."""
    os.chdir(folder)
    oprack.seed(0)
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(snippet, names)
    loss = names.get("cost", names.get("loss"))
    value = float(np.asarray(loss).reshape(-1)[0])
    if not value < 0.3:
        raise SystemExit(f"the loss is {value}; expected less than 0.3, as the problem is easy\n{snippet}")


def main() -> None:
    """The command."""
    checkout, extras = Path(sys.argv[1]), sys.argv[2:]
    if Path(oprack.__file__).is_relative_to(checkout / "core"):
        raise SystemExit(f"oprack is imported from the checkout, {oprack.__file__}")
    facts = (f"Python {platform.python_version()}", f"NumPy {np.__version__}", platform.system(), platform.machine())
    print(*facts, *platform.libc_ver(), sep=", ")
    with step("doctor --imports"):
        command("doctor", "--imports")
    packs = json.loads(command("packs", "--json"))
    broken = [p["name"] for p in packs if p["status"] != "ok"]
    if broken:
        raise SystemExit(f"packs {broken} are not ok")
    print(f"{len(packs)} packs, {sum(len(p['ops']) for p in packs)} ops")
    text = (checkout / "README.md").read_text(encoding="utf-8")
    snippets = [s for s in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "for step in range" in s]
    with tempfile.TemporaryDirectory() as name:
        for number, snippet in enumerate(snippets):
            with step(f"training snippet {number + 1} of README.md"):
                train(snippet, Path(name))
        command("show", Path(name) / "model.pdmodel")
        with step("a model that Paddle saved"):
            run_model(checkout / "tests" / "data" / "programs" / "gru_cls")
        if {"all", "templates"} & set(extras):
            with step("new-pack"):
                command("new-pack", name, "--no-input", "--native", "C")
            if {"all", "test"} & set(extras) and shutil.which("cc"):
                with step("its C code"):
                    native_pack(Path(name, "oprack-my-pack"))
    if {"all", "cpu", "packs"} & set(extras):
        stub = Path(oprack.__file__).parents[1] / "oprack-stubs" / "nn" / "__init__.pyi"
        if "as Linear" not in stub.read_text(encoding="utf-8"):
            raise SystemExit(f"{stub} knows no nn.Linear")
    print("works")


if __name__ == "__main__":
    main()
