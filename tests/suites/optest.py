"""Run test files of Paddle, which are not part of this repository, and count the methods that pass.

    python tests/suites/optest.py FOLDER [FOLDER ...] [--write] [--only TEXT] [--seconds 90] [--rows ROWS.jsonl]
    python tests/suites/optest.py --read ROWS.jsonl --write

FOLDER has files test_*.py that import paddle and op_test, such as backends/npu/tests/unittests of PaddleCustomDevice
(https://github.com/PaddlePaddle/PaddleCustomDevice, Apache-2.0). `import paddle` is served by the plugin paddle, and
`op_test` by stand_in.py. Each file runs in a process of its own. --write puts the counts, and what is left by the
reasons of reasons.toml, into plugins/paddle/tests/optest.toml, from which docs/paddle.md is made.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import tomllib
import unittest
from collections import Counter
from collections.abc import Iterator
from importlib import util
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REASONS = HERE / "reasons.toml"
SCORES = HERE.parents[1] / "plugins" / "paddle" / "tests" / "optest.toml"
Row = tuple[str, str, str, str, str]
"""File; op, api or file; method; outcome; message."""


def methods(folder: Path, only: str = "") -> Iterator[Path]:
    """The files of a folder."""
    yield from (f for f in sorted(folder.glob("**/test_*.py")) if only in f.name)


class Outcomes(unittest.TestResult):
    """Says what became of each method, a line each."""

    def _say(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        from stand_in import OpTest

        kind = "op" if isinstance(test, OpTest) and getattr(test, "op_type", "") else "api"
        print("\n@@" + json.dumps([kind, test.id(), outcome, why[:300]]), flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._say(test, "passes")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._say(test, "differs", _short(err[1]))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        if isinstance(test, unittest.TestCase):
            self._say(test, "error", _short(err[1]))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._say(test, "skipped", reason)


def _short(error: BaseException) -> str:
    lines = [line for line in str(error).strip().splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else ''}"


def run_file(path: Path) -> None:
    """Run one file in this process, and say what became of its methods."""
    from oprack_paddle.serving import as_paddle

    as_paddle()
    sys.path[:0] = [str(HERE), str(path.parent)]
    from stand_in import install

    install()
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except unittest.SkipTest:
        return
    except BaseException as error:
        print("\n@@" + json.dumps(["file", path.stem, "error", _short(error)[:300]]), flush=True)
        return
    loader = unittest.TestLoader()
    for _, value in sorted(vars(module).items()):
        ours = isinstance(value, type) and issubclass(value, unittest.TestCase) and value.__module__ == path.stem
        if ours:
            for test in loader.loadTestsFromTestCase(value):
                if not getattr(value, "op_type", None) or value.op_type != "skip":
                    unittest.TestSuite([test]).run(Outcomes())


def outcomes(path: Path, seconds: int) -> list[tuple[str, str, str, str]]:
    """What became of the methods of a file: (op, api or file; method; outcome; why)."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, __file__, "--file", str(path)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env, start_new_session=True)
    try:
        text, _ = job.communicate(timeout=seconds)
        late = False
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        text, _ = job.communicate()
        late = True
    found = [tuple(json.loads(line[2:])) for line in text.decode(errors="replace").splitlines() if line[:2] == "@@"]
    if late:
        found.append(("file", path.stem, "late", f"more than {seconds} seconds"))
    elif job.returncode:
        found.append(("file", path.stem, "died", f"ended by {job.returncode}"))
    return found  # type: ignore[return-value]


def reason(why: str) -> str:
    """The reason of reasons.toml under which a message falls; "others" for none."""
    for row in tomllib.loads(REASONS.read_text(encoding="utf-8"))["reason"]:
        if any(re.search(pattern, why) for pattern in row["messages"]):
            return str(row["why"])
    return "others"


def written(rows: list[Row]) -> str:
    """The text of optest.toml: how many methods pass, and what is left by reason and file."""
    text = "# generated by tests/suites/optest.py; do not edit\n"
    for kind, name in (("op", "classes of one op"), ("api", "classes that call the interface")):
        told = [r for r in rows if r[1] == kind and r[3] != "skipped"]
        left = [r for r in told if r[3] != "passes"]
        files = len({r[0] for r in told})
        text += f'\n[[suite]]\nname = "{name}"\nmethods = {len(told)}\nfiles = {files}\n'
        text += f"passes = {len(told) - len(left)}\n"
        by_reason = Counter(reason(r[4]) for r in left)
        for why, count in by_reason.most_common():
            where = Counter(Path(r[0]).stem for r in left if reason(r[4]) == why)
            listed = " ".join(f"{file}:{n}" for file, n in sorted(where.items()))
            wrapped = textwrap.fill(listed, 118, break_long_words=False, break_on_hyphens=False)
            text += f'\n[[suite.left]]\nwhy = {json.dumps(why)}\nmethods = {count}\nfiles = """\n{wrapped}\n"""\n'
    broken = Counter(reason(r[4]) for r in rows if r[1] == "file")
    text += "\n[files_that_do_not_load]\n" + "".join(f"{json.dumps(why)} = {n}\n" for why, n in broken.most_common())
    return text


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="part of the names of files")
    parser.add_argument("--seconds", type=int, default=90, help="for a file")
    parser.add_argument("--rows", type=Path, help="where a line of JSON for each method goes")
    parser.add_argument("--read", type=Path, help="lines of a run before, in place of a run")
    parser.add_argument("--write", action="store_true", help="write plugins/paddle/tests/optest.toml")
    options = parser.parse_args()
    if options.file:
        run_file(options.file)
        return 0
    rows: list[Row] = []
    if options.read:
        rows = [tuple(json.loads(line)) for line in options.read.read_text(encoding="utf-8").splitlines()]
    for folder in options.folders:
        for path in methods(folder, options.only):
            found: list[Row] = [(f"{folder}/{path.name}", *row) for row in outcomes(path, options.seconds)]
            rows += found
            counts = Counter(f"{r[1]} {r[3]}" for r in found)
            print(f"{path.name}: {', '.join(f'{n} {k}' for k, n in sorted(counts.items())) or 'nothing'}", flush=True)
    if options.rows:
        options.rows.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    if options.write:
        SCORES.write_text(written(rows), encoding="utf-8")
    for kind in ("op", "api", "file"):
        counts = Counter(r[3] for r in rows if r[1] == kind)
        print(f"{kind}: {dict(counts)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
