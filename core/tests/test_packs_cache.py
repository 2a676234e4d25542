"""The cache of discovery: hits, what makes it stale, damage; and proofs of what is imported when."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import textwrap

import pack_site
import pytest

PROBE = textwrap.dedent(
    """
    import json, sys, warnings
    warnings.simplefilter("ignore")
    import oprack
    manager = oprack.default_manager()
    packs = [[p.name, p.status, p.version, list(p.op_types), list(p.hooks)] for p in manager.packs()]
    print(json.dumps({"packs": packs, "state": manager.cache_state, "modules": sorted(sys.modules)}))
    """
)


class World:
    """A site directory with packs, an interpreter that sees only it, and a cache directory."""

    def __init__(self, path):
        self.site, self.cache, self.cwd = path / "site", path / "cache", path / "cwd"
        self.site.mkdir()
        self.cwd.mkdir()
        self.libraries = pack_site.libraries(path / "libraries")

    def env(self, **variables):
        settings = {"OPRACK_CACHE": "1", "OPRACK_CACHE_DIR": str(self.cache)} | variables
        return pack_site.environment([self.site, self.libraries], **settings)

    def run(self, code, **variables):
        done = pack_site.run_python("-c", code, env=self.env(**variables), cwd=self.cwd)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def probe(self, **variables):
        return json.loads(self.run(PROBE, **variables))

    @property
    def file(self):
        (file,) = self.cache.iterdir()
        return file


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path)
    pack_site.install(world.site, "good", "missing_module")
    return world


GOOD_OPS = ["fixture_thrice", "fixture_twice"]


def ops_of(seen):
    return {name: ops for name, _, _, ops, _ in seen["packs"]}


def test_second_process_neither_scans_nor_imports(world):
    first, second = world.probe(), world.probe()
    assert (first["state"], second["state"]) == ("miss", "hit")
    assert second["packs"] == first["packs"]
    assert ops_of(second) == {
        "core": ["feed", "fetch"],
        "good": GOOD_OPS,
        "missing_module": ["fixture_needs_library"],
    }
    assert "fixture_good.pack" in first["modules"] and "importlib_metadata" in first["modules"]
    # the broken pack is tried again, the good one is not imported
    assert "fixture_good" not in second["modules"] and "importlib_metadata" not in second["modules"]


def test_a_healed_pack_is_noticed(world):
    assert [p[1] for p in world.probe()["packs"]] == ["ok", "ok", "broken"]
    (world.cwd / "no_such_library_anywhere.py").touch()
    assert [p[1] for p in world.probe(PYTHONPATH=world.env()["PYTHONPATH"] + f":{world.cwd}")["packs"]] == ["ok"] * 3
    (world.site / "no_such_library_anywhere.py").touch()
    assert [p[1] for p in world.probe()["packs"]] == ["ok"] * 3


def test_changed_manifest_is_noticed(world):
    world.probe()
    path = world.site / "fixture_good" / "ops.toml"
    path.write_text(path.read_text().replace("fixture_thrice]", "fixture_three_times]"))
    seen = world.probe()
    assert seen["state"] == "partial"
    assert ops_of(seen)["good"] == ["fixture_three_times", "fixture_twice"]
    assert world.probe()["state"] == "hit"


def test_changed_manifest_of_an_editable_install_is_noticed(tmp_path):
    world = World(tmp_path)
    source = tmp_path / "checkout"
    shutil.copytree(pack_site.FIXTURES / "good" / "src", source)
    pack_site.write_metadata(world.site, "oprack-fixture-good", "1.2.3", {"good": "fixture_good.pack"})
    # as setuptools does it: a finder that maps the package to where it is written
    finder = f"""
        import sys, importlib.util, pathlib
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                if name == "fixture_good":
                    home = pathlib.Path({str(source)!r}, name, "__init__.py")
                    return importlib.util.spec_from_file_location(name, home)
        sys.meta_path.append(Finder)
        """
    code = textwrap.dedent(finder) + PROBE
    assert json.loads(world.run(code))["state"] == "miss"
    assert json.loads(world.run(code))["state"] == "hit"
    path = source / "fixture_good" / "ops.toml"
    path.write_text(path.read_text().replace("fixture_thrice]", "fixture_three_times]"))
    assert ops_of(json.loads(world.run(code)))["good"] == ["fixture_three_times", "fixture_twice"]


def test_changed_pack_module_is_noticed(world):
    world.probe()
    path = world.site / "fixture_good" / "pack.py"
    path.write_text(path.read_text().replace("register.manifest(__package__)", "raise RuntimeError('changed')"))
    assert [p[1] for p in world.probe()["packs"]] == ["ok", "broken", "broken"]


def test_installed_removed_and_upgraded_packs_are_noticed(world):
    world.probe()
    pack_site.install(world.site, "bad_signature")
    seen = world.probe()
    assert (seen["state"], len(seen["packs"])) == ("miss", 4)
    assert "fixture_good" not in seen["modules"]  # only what changed is imported
    old = next(world.site.glob("oprack_fixture_good-*"))
    old.rename(world.site / "oprack_fixture_good-2.0.dist-info")
    assert {p[0]: p[2] for p in world.probe()["packs"]}["good"] == "2.0"
    shutil.rmtree(world.site / "oprack_fixture_good-2.0.dist-info")
    assert [p[0] for p in world.probe()["packs"]] == ["core", "bad_signature", "missing_module"]


def test_entry_points_edited_in_place_are_noticed(world):
    world.probe()
    path = next(world.site.glob("oprack_fixture_good-*")) / "entry_points.txt"
    path.write_text("[oprack.packs]\nrenamed = fixture_good.pack\n")
    assert [p[0] for p in world.probe()["packs"]] == ["core", "renamed", "missing_module"]


def test_other_files_in_a_directory_of_the_path_do_not_matter(world):
    world.probe()
    (world.site / "results.txt").touch()
    (world.cwd / "results.txt").touch()
    assert world.probe()["state"] == "hit"


def damage_values(data):
    data["packs"][1]["manifests"][0]["ops"]["fixture_twice"]["define"] = 3


def damage_row(data):
    data["found"][1] = ["good"]


def damage_core(data):
    del data["found"][0], data["packs"][0]


def damage_record(data):
    data["packs"][1] = {"hooks": 3, "files": [], "manifests": [], "targets": []}


@pytest.mark.parametrize(
    ("damage", "forged"),
    [
        (damage_values, False),
        *((d, forged) for d in (damage_row, damage_core, damage_record) for forged in (True, False)),
    ],
)
def test_damaged_values_are_ignored_and_written_anew(world, damage, forged):
    expected = world.probe()["packs"]
    digest, _, text = world.file.read_text().partition("\n")
    data = json.loads(text)
    damage(data)
    text = json.dumps(data)
    if forged:  # with the digest of what it holds it gets further
        digest = hashlib.sha256(text.encode()).hexdigest()
    world.file.write_text(f"{digest}\n{text}")
    seen = world.probe()
    assert seen["packs"] == expected and seen["state"] != "hit"
    assert (world.probe()["state"], world.probe()["packs"]) == ("hit", expected)


def test_a_forged_entry_is_refused_when_it_is_asked_for(world):
    world.probe()
    data = json.loads(world.file.read_text().partition("\n")[2])
    damage_values(data)
    text = json.dumps(data)
    world.file.write_text(f"{hashlib.sha256(text.encode()).hexdigest()}\n{text}")
    code = """
        import oprack
        manager = oprack.PackManager()
        manager.op_info("fixture_thrice")
        try:
            manager.op_info("fixture_twice")
        except oprack.errors.ManifestError as error:
            print(error)
        """
    said = world.run("import oprack.errors" + textwrap.dedent(code), OPRACK_BLOCK="missing_module")
    assert "fixture_good.pack: ops.fixture_twice.define = 3; expected a string" in said


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[]", b"{}", b'{"key": 1, "dirs": 2}', b"[" * 200_000])
def test_damaged_file_is_ignored_and_written_anew(world, content):
    expected = world.probe()["packs"]
    world.file.write_bytes(content)
    seen = world.probe()
    assert seen["packs"] == expected and seen["state"] != "hit"
    assert world.probe()["state"] == "hit"


def test_switched_off_or_unwritable(world):
    assert world.probe(OPRACK_CACHE="0")["state"] == "off"
    assert not world.cache.exists()
    world.cache.write_text("a file where a directory should be")
    assert ops_of(world.probe())["good"] == GOOD_OPS
    assert world.cache.read_text().startswith("a file")


def test_xdg_directory_is_used_and_private(world):
    world.probe(OPRACK_CACHE_DIR="", XDG_CACHE_HOME=str(world.cache))
    (file,) = (world.cache / "oprack").iterdir()
    assert file.stat().st_mode & 0o077 == 0 and file.parent.stat().st_mode & 0o077 == 0


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="needs to give a file away")
def test_file_of_another_user_is_ignored(world):
    world.probe()
    os.chown(world.file, 12345, 12345)
    assert world.probe()["state"].startswith("ignored")


def test_a_file_that_others_may_write_to_and_a_link_are_ignored(world):
    world.probe()
    world.file.chmod(0o666)
    assert "others may write to it" in world.probe()["state"]
    file, elsewhere = world.file, world.cache.with_name("elsewhere.json")
    file.rename(elsewhere)
    file.symlink_to(elsewhere)
    assert world.probe()["state"].startswith("ignored: OSError")


def test_blocked_packs_stay_cached_and_environment_counts(world):
    world.probe()
    seen = world.probe(OPRACK_PACKS="")
    assert [p[1] for p in seen["packs"]] == ["ok", "blocked", "blocked"]
    assert world.probe()["state"] == "hit"


# What is imported when ------------------------------------------------------------------------------------------------
def test_import_oprack_is_bare(world):
    modules = set(json.loads(world.run("import oprack, sys, json; print(json.dumps(list(sys.modules)))")))
    assert not modules & {"numpy", "pluggy", "rich", "cupy", "importlib_metadata", "argparse", "google.protobuf"}
    assert {m for m in modules if m.startswith("oprack")} == {"oprack", "oprack.python", "oprack.python.rooms"}


def test_definitions_and_kernels_are_imported_on_first_use_of_that_op(world):
    world.probe()
    steps = """
        import sys, json, warnings
        warnings.simplefilter("ignore")
        import oprack
        def seen():
            return sorted(m for m in sys.modules if m.startswith("fixture_good.") or m in ("numpy", "pluggy"))
        found = []
        manager = oprack.PackManager()
        for step in (manager.op_types, lambda: manager.op_version("fixture_twice"),
                     lambda: manager.require_ops(["fixture_twice"]), lambda: manager.op_info("fixture_twice"),
                     lambda: manager.place_kinds("fixture_twice"), lambda: manager.kernel_map("fixture_twice", "cuda"),
                     lambda: manager.kernel_map("fixture_twice", "cpu")):
            step()
            found.append(seen())
        print(json.dumps(found))
        """
    # the broken pack's module would import pluggy
    found = json.loads(world.run(textwrap.dedent(steps), OPRACK_BLOCK="missing_module"))
    definition = ["fixture_good.ops", "fixture_good.ops.twice"]
    kernels = ["fixture_good.kernels", "fixture_good.kernels.twice", *definition, "numpy"]
    assert found == [[], [], [], definition, definition, definition, kernels]


def test_interpreter_of_these_tests_sees_only_its_site(world):
    assert [p[0] for p in world.probe()["packs"]] == ["core", "good", "missing_module"]
    assert sys.executable
