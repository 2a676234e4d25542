"""What may be loaded: version ranges of installed packs, and the allow-list with the hashes of their files."""

from __future__ import annotations

import base64
import hashlib
import importlib
import importlib.resources
import json
import py_compile
import sys
import tomllib

import pack_site
import pytest
from oprack import __version__
from oprack.errors import InvalidArgumentError, PackVersionError
from oprack.packs import BrokenPackWarning, PackManager, PackWarning
from oprack.packs.installed import hashed_files
from oprack.packs.installed.entry_points import unmet

DIST = "oprack_fixture_good-1.2.3.dist-info"


@pytest.fixture
def site(tmp_path, monkeypatch):
    """The good fixture pack as pip installs it from a wheel, RECORD included."""
    pack_site.install(tmp_path, "good")
    (tmp_path / DIST / "INSTALLER").write_text("pip\n")
    write_record(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(hashed_files._FINDER, "holding", {})
    yield tmp_path
    for name in [n for n in sys.modules if n.startswith("fixture_")]:
        del sys.modules[name]


def write_record(site):
    rows = []
    for path in sorted(p for p in site.rglob("*/*") if p.is_file() and p.name != "RECORD"):
        digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
        rows.append(f"{path.relative_to(site).as_posix()},sha256={digest},{path.stat().st_size}")
    rows += [f"{DIST}/RECORD,,", "../../bin/good,sha256=abc,3", "fixture_good/__pycache__/pack.cpython-311.pyc,,"]
    (site / DIST / "RECORD").write_text("\n".join(rows) + "\n")


def command(site, *arguments, libraries=(), **variables):
    return pack_site.run_python("-m", "oprack", *arguments, env=pack_site.environment([site, *libraries], **variables))


@pytest.fixture
def libraries(tmp_path_factory):
    return [pack_site.libraries(tmp_path_factory.mktemp("libraries") / "all")]


def manager_of(site, **settings):
    return PackManager(pack_site.entry_points(site), environ={}, **settings)


def status(manager):
    (info,) = [p for p in manager.packs() if p.name == "good"]
    return info.status, info.error


def test_a_pack_whose_files_are_those_of_the_list_is_loaded(site, libraries):
    listed = site / "allow.toml"
    done = command(site, "packs", "--lock", str(listed), libraries=libraries)
    assert done.returncode == 0 and "1 distributions" in done.stdout, done.stderr
    (row,) = tomllib.loads(listed.read_text()).values()
    assert row["version"] == "1.2.3" and len(row["sha256"]) == 64
    assert status(manager_of(site, allow=listed)) == ("ok", "")
    # what the installer writes, and in its own way on each machine, does not count
    (site / DIST / "INSTALLER").write_text("uv\n")
    write_record(site)
    assert status(manager_of(site, allow=str(listed))) == ("ok", "")
    rows = {r["name"]: r["status"] for r in json.loads(command(
        site, "packs", "--json", libraries=libraries, OPRACK_ALLOW=str(listed)).stdout)}  # fmt: skip
    assert rows == {"core": "ok", "good": "ok"}


def lock(site, path):
    from oprack.packs.installed.allow_list import render

    path.write_text(render([p.found for p in manager_of(site).discovered() if p.status == "ok"]))
    return path


def test_a_changed_file_a_new_version_and_an_unknown_pack_are_left_out(site):
    listed = lock(site, site / "allow.toml")
    kernel = next(site.glob("fixture_good/kernels*"))
    kernel = kernel if kernel.is_file() else next(kernel.glob("*.py"))
    kernel.write_text(kernel.read_text() + "# changed\n")
    with pytest.warns(PackWarning, match=r"pack good .* is left out: .*was changed after it was installed"):
        assert status(manager_of(site, allow=listed))[0] == "blocked"
    write_record(site)  # another wheel of the same version
    with pytest.warns(PackWarning, match=r"its files have SHA-256 [0-9a-f]{64}, the allow-list .* has "):
        assert status(manager_of(site, allow=listed))[0] == "blocked"
    listed.write_text(listed.read_text().replace("1.2.3", "1.2.2"))
    with pytest.warns(PackWarning, match=r"has version 1\.2\.2, installed is 1\.2\.3"):
        assert not manager_of(site, allow=listed).has_op("fixture_twice")
    listed.write_text("")
    assert status(manager_of(site, allow=listed)) == ("blocked", f"not on the allow-list {listed}")


def test_a_list_that_cannot_be_read_allows_nothing(site):
    for text in ("[good]\nversion = '1'\n", "good = 1\n", "[[[", "[good]\nversion = 1\nsha256 = 'a'\n"):
        (site / "allow.toml").write_text(text)
        with pytest.raises(InvalidArgumentError, match=r"allow-list .* can't be read .*oprack packs --lock"):
            manager_of(site, allow=site / "allow.toml").packs()
    with pytest.raises(InvalidArgumentError, match="FileNotFoundError"):
        manager_of(site, allow=site / "nowhere").packs()


def test_files_that_no_hash_covers_cannot_be_listed(site):
    record = site / DIST / "RECORD"
    rows = record.read_text().splitlines(keepends=True)
    record.write_text("".join(r for r in rows if not r.startswith("fixture_good/")))
    with pytest.raises(InvalidArgumentError, match=r"does not list the module fixture_good\.pack .*from a wheel"):
        lock(site, site / "allow.toml")
    record.unlink()
    with pytest.raises(InvalidArgumentError, match=r"oprack-fixture-good 1\.2\.3: its files can't be hashed"):
        lock(site, site / "allow.toml")


FOREIGN = "raise SystemExit('foreign code ran')\n"


def _package_beside_a_module(site, folder):
    (site / "fixture_good" / "pack").mkdir()
    (site / "fixture_good" / "pack" / "__init__.py").write_text(FOREIGN)


def _bytecode_that_python_does_not_compare(site, folder):
    (folder / "pack.py").write_text(FOREIGN)
    cache = site / "fixture_good" / "__pycache__" / f"pack.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(folder / "pack.py"), str(cache), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )


def _a_folder_earlier_on_the_path(site, folder):
    (folder / "fixture_good").mkdir()
    for name in ("__init__.py", "pack.py"):
        (folder / "fixture_good" / name).write_text(FOREIGN)
    sys.path.insert(0, str(folder))


@pytest.mark.parametrize(
    "attack", [_package_beside_a_module, _bytecode_that_python_does_not_compare, _a_folder_earlier_on_the_path]
)
def test_what_python_would_import_in_place_of_a_hashed_file_does_not_run(site, tmp_path_factory, monkeypatch, attack):
    listed = lock(site, site / "allow.toml")
    for name in [n for n in sys.modules if n.startswith("fixture_")]:
        del sys.modules[name]
    monkeypatch.setattr(sys, "path", list(sys.path))
    attack(site, tmp_path_factory.mktemp("foreign"))
    importlib.invalidate_caches()
    assert status(manager_of(site, allow=listed)) == ("ok", "")
    assert sys.modules["fixture_good.pack"].__file__ == str(site / "fixture_good" / "pack.py")


def test_a_module_that_was_imported_from_elsewhere_blocks_its_pack(site):
    listed = lock(site, site / "allow.toml")
    module = type(sys)("fixture_good")
    module.__file__ = "/elsewhere/fixture_good/__init__.py"
    sys.modules["fixture_good"] = module  # taken out again with the pack's own
    with pytest.warns(PackWarning, match="fixture_good was imported from /elsewhere/fixture_good/__init__.py before"):
        assert status(manager_of(site, allow=listed))[0] == "blocked"


def test_files_are_compared_as_they_are_imported_and_no_others_are(site):
    """Kernels are imported when an op is first used, which may be hours after the start."""
    (site / "fixture_good" / "late.py").write_text("X = 1\n")
    (site / "fixture_good" / "words.txt").write_text("one")
    write_record(site)
    listed = lock(site, site / "allow.toml")
    assert status(manager_of(site, allow=listed)) == ("ok", "")
    assert importlib.resources.files("fixture_good").joinpath("words.txt").read_text() == "one"
    (site / "fixture_good" / "late.py").write_text("X = 2\n")
    with pytest.raises(InvalidArgumentError, match=r"late\.py was changed after it was installed"):
        importlib.import_module("fixture_good.late")
    (site / "fixture_good" / "unlisted.py").write_text("")
    with pytest.raises(ModuleNotFoundError, match=r"'fixture_good\.unlisted' among the files of oprack-fixture-good"):
        importlib.import_module("fixture_good.unlisted")


@pytest.mark.parametrize("found, message", [
    ("", r"its RECORD has no hash for fixture_good/pack\.py"),
    ("md5=ndTkYSaMgDT1yFZOFVxnpg", r"pack\.py by 'md5'; expected one by sha256"),
    ("shake_128=x", r"pack\.py by 'shake_128'; expected one by sha256"),
])  # fmt: skip
def test_a_hash_that_says_little_cannot_be_listed(site, found, message):
    record = site / DIST / "RECORD"
    rows = [row.split(",") for row in record.read_text().splitlines()]
    record.write_text("".join(f"{p},{found if p == 'fixture_good/pack.py' else h},{n}\n" for p, h, n in rows))
    with pytest.raises(InvalidArgumentError, match=message):
        lock(site, site / "allow.toml")


@pytest.mark.parametrize(
    ("requirement", "problem"),
    [
        ("oprack", ""),
        ("oprack>=0.1,<99", ""),
        ("Oprack >=99", f"needs oprack >=99, but oprack {__version__} is installed"),
        ("oprack (<0.0.1)", f"needs oprack <0.0.1, but oprack {__version__} is installed"),
        ('oprack>=99; extra == "test"', ""),
        ('oprack>=99; python_version < "3"', ""),
        ("oprack_nn~=0.3", "needs oprack-nn ~=0.3, but oprack-nn 0.2.dev1 is installed"),
        ("oprack-nn>=0.2.dev0", ""),
        ("numpy>=99", ""),
        ("oprack >=>1", ""),
        ("", ""),
    ],
)
def test_ranges_on_oprack_and_its_packs_are_compared(requirement, problem):
    assert unmet([requirement], {"oprack": __version__, "oprack-nn": "0.2.dev1"}) == problem


PROBE = "import oprack, json; print(json.dumps([[p.name, p.status, p.error] for p in oprack.packs()]))"


def test_a_pack_that_needs_another_core_is_broken_and_the_others_run(site, libraries, tmp_path_factory):
    """From the cache as well, and mended when another version of what it needs is installed."""
    directory = pack_site.write_metadata(site, "oprack-later", "1.0", {"later": "json"})
    metadata = directory / "METADATA"
    metadata.write_text(metadata.read_text() + "Requires-Dist: oprack-fixture-good>=2\n\nRequires-Dist: oprack>=99\n")
    cache = {"OPRACK_CACHE": "1", "OPRACK_CACHE_DIR": str(tmp_path_factory.mktemp("cache"))}
    for _ in range(2):
        done = pack_site.run_python("-c", PROBE, env=pack_site.environment([site, *libraries], **cache))
        rows = {name: (state, error) for name, state, error in json.loads(done.stdout)}
        assert rows["good"] == ("ok", "") and rows["later"][0] == "broken"
        assert "PackVersionError: oprack-later 1.0 needs oprack-fixture-good >=2, but" in rows["later"][1]
    (site / DIST).rename(site / DIST.replace("1.2.3", "2.0"))
    done = pack_site.run_python("-c", PROBE, env=pack_site.environment([site, *libraries], **cache))
    assert "implements no hook" in done.stdout  # its versions fit now, and it is looked at: json is no pack


def test_what_it_needs_is_said_at_the_first_question(site):
    directory = pack_site.write_metadata(site, "oprack-later", "1.0", {"later": "json"})
    (directory / "METADATA").write_text("Name: oprack-later\nVersion: 1.0\nRequires-Dist: oprack>=99\n")
    with pytest.warns(BrokenPackWarning, match=r"later .*is broken.*needs oprack >=99.*pip install --upgrade oprack"):
        (info,) = [p for p in PackManager(environ={}, cache=False).packs() if p.name == "later"]
    assert isinstance(info.exception, PackVersionError)
