"""Registration in this process, many threads at once, and the public names."""

from __future__ import annotations

import threading

import oprack
import pack_site
import pytest
from oprack.errors import (
    AlreadyExistsError,
    DefinitionError,
    DuplicateKernelError,
    DuplicateOpError,
    OprackError,
)
from oprack.kernel import kernel
from oprack.packs import default_manager, use_manager
from plain_packs import Plain, PlainGrad, PlainMaker, PlainShape, manager_of, plain


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
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        oprack.no_such_name  # noqa: B018
    assert issubclass(OprackError, Exception)


def test_version_is_the_distributions():
    import tomllib

    project = tomllib.loads((pack_site.ROOT / "core" / "pyproject.toml").read_text())["project"]
    assert oprack.__version__ == project["version"]
    assert project["entry-points"]["oprack.packs"] == {"core": "oprack.packs.builtin"}


def test_a_cell_of_a_notebook_can_be_run_again():
    """The class and the kernel of the same name take the place of those before, and calls use the new ones."""
    cell = (
        "from oprack.kernel import kernel\n"
        "from oprack.op import Input, OpDef, Output\n"
        "class Grown(OpDef):\n"
        "    '''$$Out = factor X$$'''\n"
        "    X = Input('x')\n"
        "    Out = Output('o')\n"
        "    def infer_shape(ctx):\n"
        "        ctx.set_dim('Out', ctx.dim('X'))\n"
        "assert manager.register_operator('grown', Grown) is None\n"
        "@kernel('grown')\n"
        "def grown(X):\n"
        "    return X * type(X.flat[0])(FACTOR)\n"
        "manager.register_kernel(grown)\n"
    )
    manager = manager_of()
    with use_manager(manager):
        for factor in (2, 3):
            exec(cell.replace("FACTOR", str(factor)), {"manager": manager, "__name__": "__main__"})
            assert oprack.functional.grown(oprack.to_tensor([1.0, 4.0])).numpy().tolist() == [factor, 4 * factor]
        info = oprack.op_info("grown")
        assert info.proto.type == "grown" and "factor X" in info.proto.doc


def test_a_definition_beside_another_op_type_is_refused():
    with pytest.raises(DefinitionError, match=r"register_operator\('other', Plain\): the class defines op 'plain'"):
        manager_of().register_operator("other", Plain)
