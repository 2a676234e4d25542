"""depend: all of the op but its kernel."""

from __future__ import annotations

from oprack.op import Input

from oprack_collective.ops._like import Like


class Depend(Like, type="depend"):
    r"""$$Out = X$$, once every Dep was computed."""

    Dep = Input("Tensors that have to be there before.", duplicable=True)
    no_need_buffer_vars = ("Dep",)
