"""The fixture that packs get from the pytest plugin."""

from __future__ import annotations

import numpy as np
from oprack.kernel import kernel
from oprack.op import Input, OpDef, Output
from oprack.packs.manager import PackManager, default_manager
from oprack.testing import OpCase


class Negated(OpDef, type="negated"):
    """Out = -X."""

    X = Input("Any tensor.")
    Out = Output("As X.")

    def infer_shape(ctx) -> None:
        ctx.set_dim("Out", ctx.dim("X"))


@kernel("negated")
def negated(X):
    return -X


def test_pack_manager_finds_no_installed_pack_and_takes_what_is_registered(pack_manager: PackManager) -> None:
    assert default_manager() is pack_manager and pack_manager.op_types() == ["feed", "fetch"]
    pack_manager.register_op(Negated)
    pack_manager.register_kernel(negated)
    x = np.array([1.0, -2.0])
    assert OpCase("negated", {"X": x}, outputs={"Out": -x}).check() == []
    (reason,) = {r.split(": ", 1)[1] for r in OpCase("negated", {"X": x}, outputs={"Out": x}).check()}
    assert reason == "Out_0 differs by up to 4"


def test_it_is_gone_afterwards() -> None:
    assert not default_manager().has_op("negated")
