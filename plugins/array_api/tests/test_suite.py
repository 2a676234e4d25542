"""The standard's own suite (data-apis/array-api-tests), where a copy of it is there.

ARRAY_API_TESTS names its folder. Beside pytest it needs hypothesis, ndindex and pytest-json-report.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = os.environ.get("ARRAY_API_TESTS", "")
SKIPPED = Path(__file__).with_name("skipped.txt")
LIST = [line for line in SKIPPED.read_text("utf-8").splitlines() if line and not line.startswith("#")]
NEEDED = ("hypothesis", "ndindex", "pytest_jsonreport")
NUMPY_PASSES = 1320
"""What NumPy 2.4 itself passes of the suite's 1,380 tests."""


@pytest.mark.skipif(not Path(SUITE, "array_api_tests").is_dir(), reason="ARRAY_API_TESTS names no copy of the suite")
def test_the_suite_of_the_standard(tmp_path: Path) -> None:
    absent = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if absent:
        pytest.skip(f"the suite needs {', '.join(absent)}")
    environment = os.environ | {
        "ARRAY_API_TESTS_MODULE": "oprack.array_api",
        "ARRAY_API_TESTS_VERSION": "2024.12",
        "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([SUITE, os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", str(Path(SUITE, "array_api_tests")), "--rootdir", SUITE, "-q"]
    command += ["--max-examples", "3", "--disable-deadline", "--skips-file", str(SKIPPED), "-p", "no:cacheprovider"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=600)
    said = ran.stdout[-4000:] + ran.stderr[-2000:]
    assert ran.returncode == 0, said
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None and int(passed[1]) >= NUMPY_PASSES, said


def test_skipped_tests_are_few() -> None:
    assert len(LIST) == len(set(LIST)) <= 20
