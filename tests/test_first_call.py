"""What a start costs: what `import oprack` imports, and how much of our code the first call of an op passes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

# Frames below a module's top level are those of an import, which the first call makes, too.
FIRST_CALL = """if True:
    import json, sys
    import numpy as np
    import oprack

    functions, last, switches = set(), "", 0

    def is_ours(file):
        return "/src/oprack" in file or "/site-packages/oprack" in file or file.startswith(("<eager", "<oprack"))

    def is_import(frame):
        while frame is not None and frame.f_code is not here:
            if frame.f_code.co_name == "<module>":
                return True
            frame = frame.f_back
        return False

    def note(frame, event, _):
        global last, switches
        code = frame.f_code
        named = not code.co_name.startswith("<") or code.co_name == "<lambda>"
        if event == "call" and named and is_ours(code.co_filename) and not is_import(frame):
            functions.add((code.co_filename, code.co_qualname))
            switches += code.co_filename != last
            last = code.co_filename

    here, x = sys._getframe().f_code, np.ones((4, 4), np.float32)
    if BEHIND_OTHERS:
        x = oprack.sigmoid(oprack.to_tensor(x)) * 0 + 1
    sys.setprofile(note)
    y = oprack.relu(x if BEHIND_OTHERS else oprack.to_tensor(x))
    sys.setprofile(None)
    assert (y.numpy() == 1).all()
    print(json.dumps([len(functions), sorted({file for file, _ in functions}), switches]))
"""


def printed(code: str, cache: Path | None = None) -> Any:
    """What a process of its own prints, as JSON; with the cache of discovery in a folder."""
    settings = {"OPRACK_CACHE": "0"} if cache is None else {"OPRACK_CACHE": "1", "OPRACK_CACHE_DIR": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("behind_others", "most"), [(False, (378, 61, 472)), (True, (321, 55, 308))], ids=["of a process", "of an op"]
)
def test_a_first_call_passes_few_functions(tmp_path: Path, behind_others: bool, most: tuple[int, int, int]) -> None:
    code = FIRST_CALL.replace("BEHIND_OTHERS", str(behind_others))
    printed(code, tmp_path)  # reads the packs, and writes the cache
    functions, files, switches = printed(code, tmp_path)
    assert functions <= most[0] and len(files) <= most[1] and switches <= most[2], (functions, switches, files)


def test_the_import_imports_nothing_else() -> None:
    code = "import json, sys; known = {*sys.modules}; import oprack; print(json.dumps([*{*sys.modules} - known]))"
    assert set(printed(code)) <= {"__future__", "oprack", "oprack.python", "oprack.python.rooms"}
