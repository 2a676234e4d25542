"""PackManager: hooks, choosing and blocking packs, facets and kernels across packs, registration in this process."""

from __future__ import annotations

import re
import sys
import threading
from types import ModuleType, SimpleNamespace

import oprack
import pack_site
import pytest
from oprack.cli.main import build_parser, main, pack_commands
from oprack.errors import (
    AlreadyExistsError,
    DefinitionError,
    DuplicateKernelError,
    DuplicateOpError,
    InvalidArgumentError,
    ManifestError,
    NotFoundError,
    OprackError,
    PackImportError,
    UnknownOpError,
)
from oprack.kernel import kernel
from oprack.op import Attr, CreatorFacet, GradOp, GradOpMaker, InferShapeFacet, Input, OpDef, OpMaker, OpVersion, Output
from oprack.packs import PackManager, PackWarning, default_manager, use_manager


def infer(ctx):
    ctx.set_dim("Out", ctx.dim("X"))


class Plain(OpDef, type="plain"):
    """Out = X."""

    X = Input("Any tensor.")
    Out = Output("As X.")
    offset = Attr(0.0, "Added.")
    infer_shape = infer


class PlainMaker(OpMaker):
    """Out = X."""

    X = Input("Any tensor.")
    Out = Output("As X.")


class PlainShape(InferShapeFacet):
    def __call__(self, ctx):
        infer(ctx)


class PlainGrad(GradOpMaker):
    def __call__(self, fwd):
        return GradOp("plain_grad", Out_grad=fwd.output_grad("Out"), X_grad=fwd.input_grad("X"))


@kernel("plain")
def plain(X, *, offset):
    return X + offset


@kernel("plain", place="cuda")
def plain_cuda(X):
    return X.copy()


@pytest.fixture
def pack(monkeypatch):
    """Makes an entry point: pack("a", oprack_ops=lambda register: ...)."""

    def make(name, **hooks):
        module = ModuleType(f"fixture_memory_{name}")
        for hook, function in hooks.items():
            namespace = {"function": function}
            exec(f"def {hook}(register): function(register)", namespace)
            setattr(module, hook, oprack.hookimpl(namespace[hook]))
        monkeypatch.setitem(sys.modules, module.__name__, module)
        dist = SimpleNamespace(name=f"oprack-{name}", version="1.0")
        return SimpleNamespace(name=name, value=module.__name__, dist=dist)

    return make


def manager_of(*packs, **environ):
    return PackManager(packs, environ=environ)


@pytest.fixture
def good(tmp_path, monkeypatch):
    pack_site.install(tmp_path, "good")
    monkeypatch.syspath_prepend(tmp_path)
    yield pack_site.entry_points(tmp_path)
    for name in [n for n in sys.modules if n.startswith("fixture_good")]:
        del sys.modules[name]


# Hooks ----------------------------------------------------------------------------------------------------------------
def test_hook_oprack_ops_takes_a_definition_class(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.op(Plain)))
    assert manager.op_types() == ["feed", "fetch", "plain"]
    assert (manager.owner("plain"), manager.op_info("plain").pack) == ("oprack-a", "oprack-a")


def test_hook_oprack_ops_takes_facets_in_any_order_also_from_another_pack(pack):
    a = pack("a", oprack_ops=lambda register: register.operator("plain", PlainShape, PlainMaker))
    b = pack("b", oprack_ops=lambda register: register.operator("plain", PlainGrad))
    info = manager_of(b, a).op_info("plain")
    assert info.owners == {
        "infer_shape": "oprack-a",
        "proto": "oprack-a",
        "checker": "oprack-a",
        "grad_op_maker": "oprack-b",
    }
    assert isinstance(info.grad_op_maker, PlainGrad)


def test_facet_set_by_two_packs_names_both(pack):
    a = pack("a", oprack_ops=lambda register: register.op(Plain))
    b = pack("b", oprack_ops=lambda register: register.operator("plain", PlainShape))
    with pytest.raises(AlreadyExistsError, match="'infer_shape' is set by oprack-b, but oprack-a already set it"):
        manager_of(a, b).op_info("plain")


def test_facets_alone_define_no_op(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.operator("plain", PlainGrad)))
    assert not manager.has_op("plain")
    with pytest.raises(UnknownOpError):
        manager.op_info("plain")


def test_hook_oprack_kernels_brings_kernels_for_ops_of_another_pack(pack):
    a = pack("a", oprack_ops=lambda register: register.op(Plain))
    b = pack("b", oprack_kernels=lambda register: [register.kernel(plain), register.kernel(plain_cuda)])
    manager = manager_of(a, b)
    assert manager.place_kinds("plain") == ["cpu", "cuda"]
    assert [(s.place, s.owner, s.function) for s in manager.kernels_listing("plain")] == [
        ("cpu", "oprack-b", plain),
        ("cuda", "oprack-b", plain_cuda),
    ]
    assert manager.kernel_map("plain", "cpu") is manager.kernel_map("plain", "cpu")
    assert len(manager.kernel_map("plain", "npu")) == 0


def test_hook_oprack_kernels_takes_a_module(pack, good):
    b = pack("b", oprack_kernels=lambda register: register.module("fixture_good.kernels.twice"))
    manager = manager_of(*good, b)
    # the manifest of the good pack names the same function: it counts once
    assert [s.owner for s in manager.kernel_map("fixture_twice", "cpu")] == ["oprack-fixture-good"]


def test_hook_oprack_places(pack):
    a = pack("a", oprack_places=lambda register: register.place("fpga", "collections:OrderedDict"))
    manager = manager_of(a)
    from collections import OrderedDict

    assert manager.place_factory("fpga") is OrderedDict
    assert manager.place_factory("npu") is None
    b = pack("b", oprack_places=lambda register: register.place("fpga", "collections:Counter"))
    with pytest.raises(AlreadyExistsError, match="oprack-a and oprack-b"):
        manager_of(a, b).place_factory("fpga")
    c = pack("c", oprack_places=lambda register: register.place("fpga", "collections:Nothing"))
    with pytest.raises(PackImportError, match=r"place fpga of oprack-c.*'collections:Nothing' names nothing"):
        manager_of(c).place_factory("fpga")


def test_hook_oprack_passes(pack):
    from oprack.ir import find_pass, registered_passes

    a = pack("a", oprack_passes=lambda register: register.pass_("shrink", "collections:Counter", stage="lower"))
    b = pack(
        "b",
        oprack_passes=lambda register: register.pass_(
            "grow", "os:getcwd", stage="fuse", place="cpu", reorders_sums=True
        ),
    )
    manager = manager_of(a, b)
    assert [p.name for p in registered_passes(manager)][-2:] == ["grow", "shrink"]
    grow = find_pass("grow", manager)
    assert (grow.owner, grow.place, grow.library) == ("oprack-b", "cpu", None)
    assert grow.reorders_sums and grow.inference_only
    from collections import Counter

    assert find_pass("shrink", manager).load() is Counter


def test_hook_oprack_commands(pack, monkeypatch, capsys):
    def configure(parser):
        parser.add_argument("--times", type=int)
        parser.set_defaults(run=lambda args: print("ran", args.times) or 7)

    monkeypatch.setitem(sys.modules, "fixture_command", SimpleNamespace(configure=configure))

    def brings(name, target="fixture_command:configure"):
        return lambda register: register.command(name, target, "do a thing")

    with use_manager(manager_of(pack("a", oprack_commands=brings("thing")))):
        assert main(["thing", "--times", "3"]) == 7
        assert capsys.readouterr().out == "ran 3\n"
        assert "do a thing" in build_parser().format_help()
    both = manager_of(pack("a", oprack_commands=brings("thing")), pack("b", oprack_commands=brings("thing")))
    with use_manager(both), pytest.warns(PackWarning, match="'thing' of oprack-b is left out, since oprack-a brings"):
        assert pack_commands()["thing"].owner == "oprack-a"
    with (
        use_manager(manager_of(pack("c", oprack_commands=brings("run")))),
        pytest.warns(PackWarning, match="'run' of oprack-c is left out, since oprack itself brings"),
    ):
        assert not pack_commands()
    with use_manager(manager_of(pack("d", oprack_commands=brings("thing", "fixture_command:nothing")))):
        assert main(["thing"]) == 4
        assert "command thing of oprack-d" in capsys.readouterr().err
    for name in ("", "a b", "--x", "../x"):
        manager = manager_of(pack("e", oprack_commands=brings(name)))
        with pytest.warns(PackWarning, match="is no name of a command"):
            manager.packs()


def test_hook_oprack_op_versions(pack):
    version = OpVersion("plain").checkpoint("add offset", ("new_attr", "offset", 0.0))
    a = pack("a", oprack_ops=lambda register: register.op(Plain))
    b = pack("b", oprack_op_versions=lambda register: register.op_version(version))
    assert manager_of(a).op_version("plain") == 0
    manager = manager_of(a, b)
    assert manager.op_version("plain") == manager.op_info("plain").version == 1


def test_hook_oprack_observers(pack):
    seen = object()
    a = pack("a", oprack_observers=lambda register: [register.observer(seen), register.observer("os:path")])
    b = pack("b", oprack_observers=lambda register: register.observer("no_such_module:x"))
    manager = manager_of(a, b)
    import os

    with pytest.warns(PackWarning, match="observer of oprack-b.*no_such_module"):
        assert manager.observers() == [seen, os.path]
    assert manager.observers() == [seen, os.path]


def fuse(register, name, target, **options):
    register.pass_(name, target, stage="fuse", **options)


BAD_CALLS = [
    (
        lambda r: fuse(r, "a", len),
        "DefinitionError",
        r"pass_('a', <built-in function len>); expected a string",
    ),
    (
        lambda r: fuse(r, "a", "m:f", after="b"),
        "DefinitionError",
        "after='b', before=()); expected a name, and lists",
    ),
    (lambda r: fuse(r, "a", "nothing"), "DefinitionError", "pass 'nothing'; expected a string such as"),
    (
        lambda r: [fuse(r, "a", "m:f"), fuse(r, "a", "m:g")],
        "DefinitionError",
        "pass 'a' is registered twice",
    ),
    (lambda r: r.op(PlainMaker), "DefinitionError", "is no op; expected class Name"),
    (lambda r: [r.op(Plain), r.op(Plain)], "DefinitionError", "registered twice by this pack"),
    (lambda r: r.operator("plain", 3), "DefinitionError", "got 3; expected classes derived from OpMaker"),
    (lambda r: r.operator("plain"), "DefinitionError", "has no facet"),
    (lambda r: r.kernel(len), "DefinitionError", "is no kernel; expected a function decorated with @kernel"),
    (lambda r: r.module("json"), "DefinitionError", "'json' has no function decorated with @kernel"),
    (lambda r: r.module("no_such_module"), "PackImportError", "no_such_module"),
    (lambda r: r.op_version("plain"), "DefinitionError", "expected OpVersion"),
    (lambda r: r.place("fpga", "collections"), "DefinitionError", "expected a string such as 'my_pack.module:name'"),
    (lambda r: r.manifest(""), "ManifestError", "write register.manifest(__package__)"),
    (lambda r: r.manifest("json"), "ManifestError", "can't be read"),
    (lambda r: r.manifest("no_such_package"), "ManifestError", "has no directory"),
    (lambda r: 1 / 0, "PackError", "a hook failed: ZeroDivisionError: division by zero"),
]


@pytest.mark.parametrize(("call", "cls", "text"), BAD_CALLS)
def test_bad_registration_breaks_the_pack_and_points_at_its_line(pack, call, cls, text):
    manager = manager_of(pack("a", oprack_ops=call))
    with pytest.warns(PackWarning, match=re.escape(text)):
        info = manager.packs()[1]
    assert info.status == "broken" and info.error.startswith(cls)
    import traceback

    assert __file__ in "".join(traceback.format_exception(info.exception))


def test_unknown_hook_and_no_hook_are_reported(pack, monkeypatch):
    with pytest.warns(PackWarning, match="unknown hook 'oprack_opps'"):
        assert manager_of(pack("a", oprack_opps=print)).packs()[1].status == "broken"
    with pytest.warns(PackWarning, match="implements no hook; expected functions decorated with @oprack.hookimpl"):
        assert manager_of(pack("a")).packs()[1].status == "broken"


def test_asking_for_ops_during_discovery_is_refused(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: manager.op_types()))
    with pytest.warns(PackWarning, match="a pack asks for ops while packs are being discovered"):
        assert manager.op_types() == ["feed", "fetch"]


# Which packs ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "a b c"),
        ({"OPRACK_PACKS": ""}, ""),
        ({"OPRACK_PACKS": "a, oprack-c"}, "a c"),
        ({"OPRACK_BLOCK": "b"}, "a c"),
        ({"OPRACK_BLOCK": ""}, "a b c"),
        ({"OPRACK_PACKS": "a,b", "OPRACK_BLOCK": "oprack-b"}, "a"),
    ],
)
def test_environment_chooses_packs(pack, environ, expected):
    loaded = []
    packs = [pack(name, oprack_ops=lambda register: loaded.append(register.pack)) for name in "abc"]
    infos = manager_of(*packs, **environ).packs()
    assert " ".join(loaded) == " ".join(p.name for p in infos[1:] if p.status == "ok") == expected
    assert infos[0].name == "core" and infos[0].status == "ok"
    assert all(p.error for p in infos if p.status == "blocked")


@pytest.mark.parametrize("variable", ["OPRACK_PACKS", "OPRACK_BLOCK"])
def test_unknown_name_in_the_environment_is_reported(pack, variable):
    manager = manager_of(pack("alpha", oprack_ops=lambda register: None), **{variable: "alpa"})
    with pytest.warns(PackWarning, match=rf"{variable}: no installed pack is named 'alpa' \(did you mean alpha\?\)"):
        manager.packs()


def test_blocking_later_takes_ops_away_and_says_so(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.op(Plain)))
    manager.op_info("plain")
    revision = manager.revision
    manager.block("a")
    assert manager.revision > revision and not manager.has_op("plain")
    with pytest.raises(UnknownOpError, match=r"pack a .*brings it but is blocked: blocked by PackManager.block"):
        manager.op_info("plain")
    with pytest.raises(NotFoundError, match="no installed pack is named 'b'"):
        manager.block("b")


def test_op_of_a_blocked_pack_is_known_from_its_manifest(good):
    manager = PackManager(good, environ={}, blocked=["good"])
    assert "fixture_good.pack" not in sys.modules
    with pytest.raises(UnknownOpError, match=r"pack good .*is blocked: blocked by the caller"):
        manager.op_info("fixture_twice")
    assert "fixture_good.pack" not in sys.modules


@pytest.mark.parametrize("name", ["core", "oprack"])
def test_core_cannot_be_blocked(name):
    for attempt in (
        lambda: PackManager([], environ={}).block(name),
        lambda: PackManager([], environ={}, blocked=[name]).packs(),
        lambda: PackManager([], environ={"OPRACK_BLOCK": name}).packs(),
    ):
        with pytest.raises(InvalidArgumentError, match="core's own pack 'core' can't be blocked"):
            attempt()


# Resolution -----------------------------------------------------------------------------------------------------------
def test_unknown_op_names_close_matches(good):
    with pytest.raises(UnknownOpError, match=r"'fixture_twise' is unknown.*did you mean fixture_twice"):
        manager_of(*good).op_info("fixture_twise")


def test_definition_string_that_names_nothing(good, tmp_path):
    path = tmp_path / "fixture_good" / "ops.toml"
    text = path.read_text()
    path.write_text(text.replace("twice:Twice", "twice:Twize"))
    with pytest.raises(PackImportError, match=r"op fixture_twice of pack good .*'fixture_good.ops.twice:Twize' names"):
        manager_of(*good).op_info("fixture_twice")
    path.write_text(text.replace("ops.twice:Twice", "ops.thrice:Thrice"))
    with pytest.raises(ManifestError, match=r"expected a definition class with type='fixture_twice'.*oprack manifest"):
        manager_of(*good).op_info("fixture_twice")


def test_kernel_module_that_the_manifest_names_in_vain(good, tmp_path):
    path = tmp_path / "fixture_good" / "ops.toml"
    path.write_text(path.read_text().replace("kernels.twice", "kernels.thrice"))
    with (
        pytest.warns(PackWarning, match="op fixture_twice at cpu"),
        pytest.raises(ManifestError, match="has no @kernel of this op and place"),
    ):
        manager_of(*good).kernel_map("fixture_twice", "cpu")


def test_op_without_infer_shape_is_refused(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.operator("plain", PlainMaker)))
    with pytest.raises(DefinitionError, match="op plain of oprack-a has no infer_shape"):
        manager.op_info("plain")


def test_operator_class_by_string_and_by_facet(pack):
    class Runner(CreatorFacet):
        """Runs itself."""

    a = pack("a", oprack_ops=lambda register: [register.op(Plain), register.operator("plain", Runner)])
    manager = manager_of(a)
    assert manager.operator_class("plain") is Runner
    from oprack.runtime.feed_fetch import FeedOp

    assert manager.operator_class("feed") is FeedOp
    with pytest.raises(UnknownOpError):
        manager.operator_class("nothing")


# Registration in this process -----------------------------------------------------------------------------------------
def test_registering_in_this_process(pack):
    with use_manager(manager_of()) as manager:
        assert default_manager() is manager
        oprack.register_operator("plain", PlainMaker, PlainShape)
        assert oprack.op_info("plain").pack == "this process"
        assert [p.name for p in oprack.packs()] == ["core", "here"]

        @oprack.register_kernel
        @kernel("plain")
        def here(X):
            return X

        assert [s.function for s in manager.kernel_map("plain", "cpu")] == [here]
        oprack.register_operator("plain", PlainGrad)
        assert oprack.op_info("plain").grad_op_maker is not None
    assert default_manager() is not manager


def test_a_definition_class_needs_no_facets():
    with use_manager(manager_of()) as manager:
        made = oprack.register_operator(type("Named", (Plain,), {}, type="named"))
        assert manager.op_info("named").pack == "this process" and made.op_type == "named"
        with pytest.raises(DefinitionError, match=r"register_operator\(Plain, ...\) got 1 facets beside a definition"):
            oprack.register_operator(Plain, PlainShape)
        with pytest.raises(DefinitionError, match=r"is no op; expected class Name\(OpDef, type="):
            oprack.register_operator(int)
        built = oprack.op.op("built").input("X").output("Out").infer_shape(Plain.infer_shape)
        oprack.register_operator(built.definition())
        assert list(manager.op_info("built").proto.inputs) == ["X"] and not manager.has_op("plain")


def test_failed_registration_leaves_nothing_behind(pack):
    manager = manager_of(pack("a", oprack_ops=lambda register: register.op(Plain)))
    before = manager.op_info("plain").owners

    def wrong(Y):
        return Y

    for cls, attempt in [
        (DuplicateOpError, lambda: manager.register_op(Plain)),
        (AlreadyExistsError, lambda: manager.register_operator("plain", PlainShape)),
        (DefinitionError, lambda: manager.register_operator("plain", object())),
        (DefinitionError, lambda: manager.register_kernel(kernel("plain")(wrong))),
        (DefinitionError, lambda: manager.register_kernel(wrong.__init__)),
    ]:
        with pytest.raises(cls):
            attempt()
        assert manager.op_info("plain").owners == before
        assert manager.kernels_listing("plain") == []
        assert [p.name for p in manager.packs()] == ["core", "a"]
    manager.register_kernel(plain)
    with pytest.raises(DuplicateKernelError):
        manager.register_kernel(kernel("plain")(lambda X: X))
    assert [s.function for s in manager.kernels_listing("plain")] == [plain]


def test_many_threads_get_one_op_info(good):
    manager = manager_of(*good)
    barrier, found = threading.Barrier(16), []

    def ask():
        barrier.wait()
        info = manager.op_info("fixture_twice")
        found.append((info, manager.kernel_map("fixture_twice", "cpu")))

    threads = [threading.Thread(target=ask) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(info) for info, _ in found}) == len({id(kernels) for _, kernels in found}) == 1


def test_every_public_name_is_there():
    for name in oprack.__all__:
        assert getattr(oprack, name) is not None
    assert set(oprack.__all__) <= set(dir(oprack))
    with pytest.raises(AttributeError, match="has no attribute 'relu'"):
        oprack.relu  # noqa: B018
    assert issubclass(OprackError, Exception)


def test_version_is_the_distributions():
    import tomllib

    project = tomllib.loads((pack_site.ROOT / "core" / "pyproject.toml").read_text())["project"]
    assert oprack.__version__ == project["version"]
    assert project["entry-points"]["oprack.packs"] == {"core": "oprack.packs.builtin"}
