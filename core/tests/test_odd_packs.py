"""Packs that fail in ways of their own: each is listed as broken with its reason, and ends nothing."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path

import pack_site
import pytest
from oprack.packs import BrokenPackWarning, PackManager

PACK = "from oprack import hookimpl\n\n{head}\n@hookimpl\ndef oprack_ops({parameter}):\n    {body}\n"


def write_pack(site: Path, name: str, head: str = "", parameter: str = "register", body: str = "pass") -> None:
    pack_site.write_metadata(site, f"oprack-{name}", "1.0", {name: f"odd_{name}"})
    (site / f"odd_{name}.py").write_text(PACK.format(head=head, parameter=parameter, body=body))


ODD = {
    "cancelled": ({"head": "import asyncio\nraise asyncio.CancelledError('no')"}, "CancelledError: no"),
    "skipped": ({"head": "import pytest\npytest.skip('no GPU', allow_module_level=True)"}, "Skipped: no GPU"),
    "hook_cancelled": ({"body": "import asyncio; raise asyncio.CancelledError('later')"}, "CancelledError: later"),
    "generator": ({"head": "raise GeneratorExit"}, "GeneratorExit"),
    "parameter": ({"parameter": "registr"}, "a hook has other parameters.*oprack_ops.*registr.*expected `def oprack_"),
    "two_parameters": ({"parameter": "register, config"}, "a hook has other parameters.*config"),
}


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    pack_site.install(tmp_path, "good")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith(("fixture_", "odd_"))]:
        del sys.modules[name]


def test_what_a_pack_raises_ends_nothing(site: Path) -> None:
    for name, (parts, _) in ODD.items():
        write_pack(site, name, **parts)
    manager = PackManager(pack_site.entry_points(site), environ={})
    with pytest.warns(BrokenPackWarning):
        packs = {p.name: p for p in manager.packs()}
    for name, (_, words) in ODD.items():
        assert packs[name].status == "broken"
        assert re.search(words, packs[name].error), packs[name].error
    assert packs["good"].status == "ok" and manager.op_info("fixture_twice").pack == "oprack-fixture-good"


def test_an_interrupt_is_no_defect_of_a_pack(site: Path) -> None:
    write_pack(site, "interrupted", head="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        PackManager(pack_site.entry_points(site), environ={}).packs()


def test_a_module_of_ops_that_is_cancelled(site: Path) -> None:
    from oprack.errors import PackImportError

    (site / "fixture_good" / "ops" / "twice.py").write_text("import asyncio\nraise asyncio.CancelledError('no')\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager = PackManager(pack_site.entry_points(site), environ={})
    with pytest.raises(PackImportError, match="CancelledError: no"):
        manager.op_info("fixture_twice")


@pytest.mark.parametrize(
    "text",
    [
        "[oprack.packs\ngone = odd_gone\n",
        "oprack.packs]\ngone = odd_gone\n",
        "[oprack.packs]\n",
        "[ oprack.packs ]\ngone = x\n",
    ],
)
@pytest.mark.parametrize("cache", ["0", "1"])
def test_broken_entry_points_are_listed(tmp_path: Path, text: str, cache: str) -> None:
    site = tmp_path / "site"
    (pack_site.write_metadata(site, "oprack-gone", "1.0", {}) / "entry_points.txt").write_text(text)
    others = pack_site.write_metadata(site, "unrelated", "1.0", {})
    (others / "entry_points.txt").write_text("[unrelated.plugins]\nx = oprack.packs.manager:PackManager\n")
    env = pack_site.environment(
        [site, pack_site.libraries(tmp_path / "lib")], OPRACK_CACHE=cache, OPRACK_CACHE_DIR=str(tmp_path / "cache")
    )
    for _ in range(2):  # found, and then from the cache
        done = pack_site.run_python("-m", "oprack", "packs", "--json", env=env)
        assert done.returncode == 0, done.stderr
        (pack,) = [p for p in json.loads(done.stdout) if p["distribution"] != "oprack"]
        assert (pack["distribution"], pack["version"], pack["status"]) == ("oprack-gone", "1.0", "broken")
        assert "no entry point can be read" in pack["error"] and "reinstall it" in pack["error"]
