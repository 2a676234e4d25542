"""Who serves `import paddle`: oprack, unless Paddle itself is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PROGRAM = """
import paddle
import paddle.nn.functional as F
from paddle.nn import Linear
print(F.relu(paddle.to_tensor([-1.0, 2.0])).numpy().tolist(), Linear(2, 3).weight.shape, paddle.__name__)
"""


def ran(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **variables})


def test_a_script_is_served(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    found = ran(sys.executable, "-m", "oprack_paddle", str(tmp_path / "program.py"))
    assert found.stdout.strip() == "[0.0, 2.0] (2, 3) paddle", found.stderr
    assert "import paddle is served by oprack" in found.stderr


def test_a_command_and_the_processes_that_it_starts_are_served(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "starts.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, sys.argv[1]], check=True)\n"
    )
    found = ran(
        sys.executable,
        "-m",
        "oprack",
        "exec",
        sys.executable,
        str(tmp_path / "starts.py"),
        str(tmp_path / "program.py"),
    )
    assert found.stdout.strip() == "[0.0, 2.0] (2, 3) paddle", found.stderr


def test_paddle_itself_is_left_alone(tmp_path):
    (tmp_path / "paddle").mkdir()
    (tmp_path / "paddle" / "__init__.py").write_text("itself = True\n")
    (tmp_path / "program.py").write_text("import paddle\nprint(hasattr(paddle, 'itself'))\n")
    command = (sys.executable, "-m", "oprack_paddle")
    found = ran(*command, str(tmp_path / "program.py"), PYTHONPATH=str(tmp_path))
    assert found.stdout.strip() == "True"
    assert "import paddle is Paddle itself, from" in found.stderr
    forced = ran(*command, "--force", str(tmp_path / "program.py"), PYTHONPATH=str(tmp_path))
    assert forced.stdout.strip() == "False"


def test_a_command_that_is_not_there_is_an_error():
    found = ran(sys.executable, "-m", "oprack", "exec", "no-such-command")
    assert found.returncode == 2
    assert "no command 'no-such-command'" in found.stderr


def test_importing_the_namespace_imports_no_pack():
    code = (
        "import sys, oprack_paddle as paddle; paddle.nn; print([m for m in sys.modules if m.startswith('oprack_nn')])"
    )
    assert ran(sys.executable, "-c", code).stdout.strip() == "[]"


READS = """
import sys
from rapidocr_paddle import RapidOCR
found, _ = RapidOCR()(sys.argv[1])
print(*[line[1] for line in found], sep="\\n")
"""


@pytest.mark.skipif(find_spec("rapidocr_paddle") is None, reason="it is in the group demo")
def test_a_client_of_paddle_inference_reads_a_picture(tmp_path):
    (tmp_path / "reads.py").write_text(READS)
    picture = Path(__file__).parents[3] / "examples" / "ocr_demo.png"
    found = ran(sys.executable, "-m", "oprack_paddle", str(tmp_path / "reads.py"), str(picture))
    assert "Every operator comes from a package." in found.stdout.splitlines(), found.stderr
