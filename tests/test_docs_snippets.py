"""The code of every page of docs/ runs as it stands there, and prints what the page says."""

from __future__ import annotations

import contextlib
import re
import shutil
import sys
from pathlib import Path

import oprack
import pytest
from doc_snippets import Reader, blocks
from oprack import unique_name
from oprack.cli.main import COMMANDS, pack_commands
from oprack.packs.manager import PackManager, use_manager

DOCS = Path(__file__).parents[1] / "docs"
DATA = Path(__file__).parent / "data"
# Whose code is run elsewhere, or can't be run alone
ELSEWHERE = {
    "design.md": "excerpts of contracts, with `...`",
    "serving.md": "a client of a server that runs: plugins/serve/tests do what it says",
    "differences.md": "no code",
    "names.md": "one line for each name: tests/test_names.py runs them",
    "fuzzing.md": "commands that run for minutes: plugins/testing/tests/test_fuzz.py and tests/test_fuzz.py",
}
PAGES = [*sorted(str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")), "../CONTRIBUTING.md"]
# Commands without which a page can't be run
NEEDED = {"how_to/native_code.md": "cc"}
# Files that a page takes for granted
FILES = {
    "index.md": {"resnet": "small_models/resnet.*"},
    "concepts/predictor_load.md": {"resnet": "small_models/resnet.*"},
    "paddle3.md": {"": "../../plugins/pir/tests/data/conv/inference.*"},
    "how_to/run_a_model.md": {"resnet": "small_models/resnet.*"},
    "how_to/quantize_a_model.md": {"resnet": "small_models/resnet.*"},
    "how_to/look_into_a_model.md": {"resnet": "small_models/resnet.*"},
    "how_to/dtype_threads.md": {"resnet": "small_models/resnet.*"},
    "how_to/from_paddle.md": {"resnet": "small_models/resnet.*"},
}


def _prepare(page: str, folder: Path) -> None:
    for target, pattern in FILES.get(page, {}).items():
        for file in DATA.glob(pattern):
            (folder / target).mkdir(exist_ok=True)
            shutil.copy(file, folder / target / file.name)


REGISTERS = {"index.md", "writing_ops.md", "how_to/lod_kernel.md"}
"""Pages that register ops in their own process."""


@pytest.mark.parametrize("page", [p for p in PAGES if p not in ELSEWHERE])
def test_the_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == "onnxruntime"]:
        monkeypatch.delitem(sys.modules, name)  # which tests import, and a page puts oprack in the place of
    text = (DOCS / page).read_text("utf-8")
    if not {b.kind for b in blocks(text)} & {"python", "console"}:
        pytest.skip("the page has no code")
    if page in NEEDED and shutil.which(NEEDED[page]) is None:
        pytest.skip(f"the page needs the command {NEEDED[page]}")
    _prepare(page, tmp_path)
    oprack.seed(0)
    reader = Reader(page, tmp_path)
    # What it registers must not be seen by the tests after it, for which nothing would be kept on disk any more.
    own = use_manager(PackManager()) if page in REGISTERS else contextlib.nullcontext()
    with unique_name.guard(), own:
        reader.run(text)
    assert reader.ran


def test_pages_that_are_not_run_are_there() -> None:
    assert set(ELSEWHERE) | set(FILES) | set(NEEDED) | REGISTERS <= set(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_a_page_names_exist(page: str) -> None:
    text = (DOCS / page).read_text("utf-8")
    used = set(re.findall(r"(?:^\$ |`)oprack ([a-z][a-z-]+)", text, re.MULTILINE))
    assert used <= {*COMMANDS, *pack_commands()}
