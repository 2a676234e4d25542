"""The packs of examples/packs, which use public names alone: beside the official ones, each with its own tests."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pack_site
import pytest
from joined import PARTS, ROOT

PACKS = sorted(p.parent for p in (ROOT / "examples" / "packs").glob("*/pyproject.toml"))
OFFICIAL = sorted(p.parent for p in (ROOT / "op_packages").glob("*/pyproject.toml"))


def _project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An interpreter's, in which all official op packs and those of the examples are installed."""
    site = tmp_path_factory.mktemp("site")
    for folder in [*OFFICIAL, *PACKS]:
        project = _project(folder)
        pack_site.write_metadata(site, project["name"], project["version"], project["entry-points"]["oprack.packs"])
    paths = [site, pack_site.libraries(site.parent / "libraries"), *(part.parent for part in PARTS)]
    paths += [f / "src" for f in [*OFFICIAL, *PACKS]]
    return pack_site.environment(paths)


def test_they_and_the_official_packs_get_along(environment: dict[str, str]) -> None:
    done = pack_site.run_python("-m", "oprack", "doctor", "--imports", "--json", env=environment)
    assert done.stdout, done.stderr
    assert done.stdout, done.stderr
    facts = json.loads(done.stdout)
    assert facts["problems"] == [] and done.returncode == 0
    names = {pack["name"]: pack["status"] for pack in facts["packs"]}
    assert {"audio", "by_jax", "by_torch", "hash_embedding", "special"} < names.keys() and set(names.values()) == {"ok"}
    assert facts["libraries"]["scipy_special"].startswith("SciPy ")


@pytest.mark.skipif(importlib.util.find_spec("scipy") is None, reason="two of the packs stand on SciPy")
def test_their_own_tests_pass(environment: dict[str, str]) -> None:
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "-W",
        "error",
        "--import-mode=importlib",
        "--rootdir",
        str(PACKS[0].parent),
    ]
    folders = [str(folder / "tests") for folder in PACKS]
    done = pack_site.run_python("-m", "pytest", *options, *folders, env=environment, cwd=PACKS[0].parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_they_pass_the_review() -> None:
    """All of it but cases and generated calls, which their own tests have run."""
    parts = "signatures,manifest,strings,docs,shapes,gradients,wheel"
    command = [sys.executable, "-m", "oprack", "check", *map(str, PACKS), "--only", parts, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    reports = json.loads(done.stdout)
    assert len(reports) == len(PACKS) == 5
    for report in reports:
        assert report["ok"] and not [f for f in report["findings"] if not f["note"]], done.stdout
