"""The hook oprack_layers: functions of packs as oprack.layers.<name>, conflicts, errors, the cache."""

from __future__ import annotations

import json
import sys
import textwrap
from types import ModuleType, SimpleNamespace

import oprack
import pack_site
import pytest
from oprack import PackManager, use_manager
from oprack.errors import DefinitionError, PackImportError, UnknownLayerError
from oprack.packs import BrokenPackWarning, PackWarning
from oprack.packs.checks import import_problems
from oprack.packs.register import Register


@pytest.fixture
def pack(monkeypatch):
    """Makes an entry point whose pack brings what a function registers: pack("a", lambda register: ...)."""

    def make(name, function):
        module = ModuleType(f"fixture_layers_{name}")
        namespace = {"function": function}
        exec("def oprack_layers(register): function(register)", namespace)
        module.oprack_layers = oprack.hookimpl(namespace["oprack_layers"])
        monkeypatch.setitem(sys.modules, module.__name__, module)
        dist = SimpleNamespace(name=f"oprack-{name}", version="1.0")
        return SimpleNamespace(name=name, value=module.__name__, dist=dist)

    return make


def manager_of(*packs, **environ):
    return PackManager(packs, environ=environ)


# The hook -------------------------------------------------------------------------------------------------------------
def test_hook_oprack_layers_brings_functions_by_string(pack):
    def bring(register):
        register.layer("dumps", "json:dumps")
        register.layer("Adam", "fixture_no_such_module:Adam", namespace="optimizer")
        register.layers("os.path", "basename", "dirname", namespace="nets")

    manager = manager_of(pack("a", bring))
    (_, info) = manager.packs()
    assert info.hooks == ("oprack_layers",)
    assert info.layers == ("layers.dumps", "nets.basename", "nets.dirname", "optimizer.Adam")
    with use_manager(manager):
        assert oprack.layers.dumps is json.dumps
        assert dir(oprack.nets) == ["basename", "dirname"] and "dumps" in dir(oprack.layers)
        from oprack.nets import basename

        assert basename("a/b") == "b"
        with pytest.raises(
            PackImportError, match=r"optimizer\.Adam of pack a \(oprack-a 1\.0\).*fixture_no_such_module"
        ):
            oprack.optimizer.Adam  # noqa: B018


def test_functions_are_imported_on_first_use(pack, tmp_path, monkeypatch):
    (tmp_path / "fixture_lazy_layers.py").write_text("def relu(x):\n    return x\n")
    monkeypatch.syspath_prepend(tmp_path)
    manager = manager_of(pack("a", lambda register: register.layer("relu", "fixture_lazy_layers:relu")))
    assert manager.layer_names("layers") == ["relu"] and "fixture_lazy_layers" not in sys.modules
    assert manager.layer("layers", "relu")(3) == 3
    del sys.modules["fixture_lazy_layers"]


def test_name_that_two_packs_bring_names_both_and_can_be_blocked(pack):
    packs = [pack(name, lambda register: register.layer("fc", "json:dumps")) for name in ("a", "b")]
    manager = manager_of(*packs)
    with pytest.warns(PackWarning, match=r"function 'layers\.fc' is brought by a \(oprack-a 1\.0\) and by b"):
        assert manager.layer("layers", "fc") is json.dumps
    assert [p.layer_conflicts for p in manager.packs()[1:]] == [("layers.fc",)] * 2
    assert manager.packs()[1].to_dict()["layer_conflicts"] == ["layers.fc"]
    manager.block("b")
    assert manager.layer("layers", "fc") is json.dumps
    assert [p.layer_conflicts for p in manager.packs()[1:]] == [(), ()]


def test_one_name_in_two_namespaces_is_no_conflict(pack):
    a = pack("a", lambda register: register.layer("Adam", "json:dumps", namespace="optimizer"))
    b = pack("b", lambda register: register.layer("Adam", "json:loads"))
    manager = manager_of(a, b)
    assert manager.layer("optimizer", "Adam") is json.dumps and manager.layer("layers", "Adam") is json.loads


def test_unknown_layer_says_what_is_alike_and_where_to_get_it(pack):
    manager = manager_of(pack("a", lambda register: register.layer("embedding", "json:dumps")))
    with use_manager(manager), pytest.raises(UnknownLayerError) as caught:
        oprack.layers.embeding  # noqa: B018
    text = str(caught.value)
    assert "oprack.layers has no 'embeding' (did you mean embedding?)" in text
    assert "oprack-nn" in text.partition("`pip install ")[2]
    assert isinstance(caught.value, AttributeError)


def test_unknown_layer_names_packs_that_are_left_out(pack):
    def broken(register):
        raise ValueError("no luck")

    manager = manager_of(pack("a", broken))
    with pytest.warns(BrokenPackWarning), pytest.raises(UnknownLayerError, match=r"a \(oprack-a 1\.0\) is broken"):
        manager.layer("layers", "fc")


def test_unknown_layer_of_a_known_op_says_how_to_append_it():
    manager = PackManager(environ={}, cache=False)
    with pytest.raises(UnknownLayerError, match=r"oprack has an op feed, so LayerHelper\('feed'\)\.append_op"):
        manager.layer("layers", "feed")


BAD_CALLS = [
    (("my layer", "a:b"), "can't be an attribute of oprack.layers"),
    (("_fc", "a:b"), "without a leading underscore"),
    (("fc", len), "expected a string such as"),
    (("fc", "a.b"), "expected a string such as 'my_pack.module:name'"),
    (("fc", "a:b", "layer"), "expected one of layers, functional, optimizer, initializer, metrics, nets"),
    (("twice", "a:b"), "layers.twice is registered twice by this pack"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD_CALLS, ids=lambda v: v if isinstance(v, str) else "")
def test_bad_registration_names_the_pack(arguments, text):
    register = Register("mine", "oprack-mine")
    register.layer("twice", "a:b")
    with pytest.raises(DefinitionError, match=r"register of pack mine \(oprack-mine\)") as caught:
        register.layer(*arguments)
    assert text in str(caught.value)


# Across processes -----------------------------------------------------------------------------------------------------
PACK = """
from oprack import hookimpl

@hookimpl
def oprack_layers(register):
    register.layer("{name}", "json:dumps")
"""
PROBE = textwrap.dedent(
    """
    import json, sys, oprack
    layers = [n for n in dir(oprack.layers) if n.startswith("fixture")]
    loaded = [m for m in sys.modules if m.startswith("layered")]
    state = oprack.default_manager().cache_state
    print(json.dumps([state, layers, loaded, oprack.layers.fixture_a([1])]))
    """
)


@pytest.fixture
def site(tmp_path):
    """Two packs in a directory of their own, and the environment of an interpreter that sees only them."""
    site = tmp_path / "site"
    site.mkdir()
    for name in ("a", "b"):
        pack_site.write_metadata(site, f"oprack-layered-{name}", "1.0", {name: f"layered_{name}"})
        (site / f"layered_{name}.py").write_text(PACK.format(name=f"fixture_{name}"))
    libraries = pack_site.libraries(tmp_path / "libraries")
    (tmp_path / "cwd").mkdir()
    settings = {"OPRACK_CACHE": "1", "OPRACK_CACHE_DIR": str(tmp_path / "cache")}
    return SimpleNamespace(path=site, env=pack_site.environment([site, libraries], **settings), cwd=tmp_path / "cwd")


def run(site, *arguments):
    done = pack_site.run_python(*arguments, env=site.env, cwd=site.cwd)
    return done, json.loads(done.stdout) if done.stdout.startswith(("[", "{")) else done.stdout


def test_layers_come_from_the_cache(site):
    done, first = run(site, "-c", PROBE)
    assert done.returncode == 0, done.stderr
    assert first == ["miss", ["fixture_a", "fixture_b"], ["layered_a", "layered_b"], "[1]"]
    assert run(site, "-c", PROBE)[1] == ["hit", ["fixture_a", "fixture_b"], [], "[1]"]
    (site.path / "layered_b.py").write_text(PACK.format(name="fixture_other"))
    assert run(site, "-c", PROBE)[1] == ["partial", ["fixture_a", "fixture_other"], ["layered_b"], "[1]"]


def test_commands_list_layers_and_their_conflicts(site):
    (site.path / "layered_b.py").write_text(PACK.format(name="fixture_a"))
    rows = {row["name"]: row for row in run(site, "-m", "oprack", "packs", "--json")[1]}
    assert rows["a"]["layers"] == rows["b"]["layer_conflicts"] == ["layers.fixture_a"]
    done, text = run(site, "-m", "oprack", "packs")
    assert done.returncode == 0 and "layer layers.fixture_a: that of a, not that of b is used" in text
    done, facts = run(site, "-m", "oprack", "doctor", "--json")
    assert done.returncode != 0 and len(facts["problems"]) == 1
    assert "function 'layers.fixture_a' is brought by a (oprack-layered-a 1.0) and by b" in facts["problems"][0]


def test_doctor_imports_layers(site):
    (site.path / "layered_b.py").write_text(PACK.format(name="fixture_b").replace("json:dumps", "json:no_such_name"))
    assert run(site, "-m", "oprack", "doctor")[0].returncode == 0
    done, facts = run(site, "-m", "oprack", "doctor", "--imports", "--json")
    assert done.returncode != 0
    (problem,) = facts["problems"]
    assert problem.startswith("layers.fixture_b: PackImportError:") and "no_such_name" in problem


def test_a_name_that_needs_a_room_which_is_not_installed_is_no_problem_of_its_pack(pack, tmp_path, monkeypatch):
    """`oprack doctor` notes it once for all such names, with the command that brings the room."""
    module = tmp_path / "fixture_of_a_room.py"
    module.write_text(
        "from oprack.python.rooms import AbsentRoomError\n"
        "raise AbsentRoomError(\"no module 'oprack.stage': the distribution oprack-stage brings it\")\n"
    )
    monkeypatch.syspath_prepend(tmp_path)

    def bring(register):
        register.layer("curtain", "fixture_of_a_room:curtain")
        register.layer("light", "fixture_of_a_room:light")
        register.layer("sound", "fixture_no_such_module:sound")

    manager, notes = manager_of(pack("a", bring)), []
    problems = [p for p in import_problems(manager, notes=notes) if p.startswith("layers.")]
    assert len(problems) == 1 and "layers.sound" in problems[0]
    (note,) = notes
    assert note.startswith("2 names of packs need what is not installed, such as layers.curtain: no module 'oprack.")
