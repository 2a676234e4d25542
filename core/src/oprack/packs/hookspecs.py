"""Every hook that a pack may implement. Names start with `oprack_`; implementations carry `@oprack.hookimpl`.

The PackManager calls the hooks of one pack at a time, when packs are first asked for, in the order of this file. Each
gets a `register` object that is bound to that pack, so an error points at the pack's own line and names its
distribution. Hooks return nothing. A hook that raises makes its pack broken: nothing of it is used, the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from oprack.packs.register import Register

PROJECT = "oprack"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def oprack_ops(register: Register) -> None:
    """Bring ops: `register.manifest(__package__)`, `register.op(OpDefClass)`, `register.operator(type, *facets)`.

    A manifest is preferred: its definitions, and the OpFacets that modules declare, are imported on first use, and it
    is cached across processes.
    """


@hookspec
def oprack_kernels(register: Register) -> None:
    """Bring kernels by place, also for ops of other packs: `register.kernel(function)`, `register.module("a.b")`.

    Both import the kernels at once; kernels named in a manifest are imported on the first use of their op.
    """


@hookspec
def oprack_vocabulary(register: Register) -> None:
    """Say which ops play the roles that the core asks for: `register.role("zeros_like", "fill_zeros_like")` lets a
    backward pass append fill_zeros_like. `oprack.op.vocabulary` lists the roles with their signatures; what else a
    distribution needs of packs it adds: `register.new_role("split_dim", "X; axis num sections -> Out", "Equal parts
    along a dim", wanted_by="parallel.distribute")`.
    """


@hookspec
def oprack_layers(register: Register) -> None:
    """Bring functions by which programs are written: `register.layer("fc", "my_pack.layers.fc:fc")`, found as
    `oprack.layers.fc` and imported on first use; namespace= puts them below `oprack.optimizer` and others instead.
    Namespace "functional" has functions of tensors, which are methods as well, and "operators" Python's: see
    oprack.layers.operators.
    `register.layers("my_pack.layers.loss", "huber_loss", "cross_entropy")` brings several of one module.
    """


@hookspec
def oprack_passes(register: Register) -> None:
    """Bring rewrites of graphs: `register.pass_("fold_bn", "my_pack.passes.conv:fold_bn", stage="fuse")`, imported when
    a program is optimised for the place and library that it serves. `register.preparation("coalesce_tensor",
    "my_pack.unfuse:unfuse")` is one without which a program with such ops can't run: it happens before every run, and
    no option leaves it out.
    """


@hookspec
def oprack_places(register: Register) -> None:
    """Bring kinds of places: `register.place("cuda", "my_pack.context:open_context")`, imported at first use.
    With `place="my_pack.context:ToyPlace"`, the class of such places, users may write `x.to("toy:1")`.
    """


@hookspec
def oprack_libraries(register: Register) -> None:
    """Bring the library that kernels with `library="onednn"` call: `register.library("onednn", "my_pack.lib:LIBRARY",
    attr="use_mkldnn")`, imported when it is asked for. The object has `status()`, one line for `oprack doctor`, and
    `limit_threads(n)`, a context manager that lets kernels of the calling thread use n threads. It may have
    `without_size_limits()`, a context manager in which its kernels leave no size to others, so that tests reach them
    with small arrays. attr: the attribute of ops that asks for the library or declines it.
    """


@hookspec
def oprack_op_versions(register: Register) -> None:
    """Bring the history of ops whose definition says none: `register.op_version(OpVersion("op").checkpoint(...))`."""


@hookspec
def oprack_observers(register: Register) -> None:
    """Bring observers of a run: `register.observer("my_pack.trace:observer")`, imported when the first run starts."""


@hookspec
def oprack_formats(register: Register) -> None:
    """Bring files of programs that are not Fluid's: `register.format(".json", "my_pack.reader:read", starts="{")`. The
    function gets the bytes of a file and returns a Program with feed and fetch ops, or raises a ModelError; it is
    imported when such a file is loaded. Its parameters lie beside it in a `.pdiparams` file, unless the format
    `holds_parameters`.
    """


@hookspec
def oprack_communicators(register: Register) -> None:
    """Bring an engine for several ranks: `register.communicator("mpi", "my_pack.engine:open_world")`. The function
    returns the `oprack.parallel.Communicator` of all ranks; it is imported in programs that a launcher started.
    """


@hookspec
def oprack_commands(register: Register) -> None:
    """Bring subcommands of `oprack`: `register.command("serve", "my_pack.command:configure", "one line of help")`; the
    function is imported when the command is called, gets its argparse parser, and sets the default `run` in it, a
    function of the parsed arguments that returns the exit code.
    """


@hookspec
def oprack_variables(register: Register) -> None:
    """Say which environment variables the pack reads: `register.variable("OPRACK_MY_SWITCH", default="1", meaning="0:
    the switch is off.")`. `oprack doctor` and the documents list them.
    """


HOOKS = (
    "oprack_ops",
    "oprack_kernels",
    "oprack_vocabulary",
    "oprack_layers",
    "oprack_passes",
    "oprack_places",
    "oprack_libraries",
    "oprack_op_versions",
    "oprack_observers",
    "oprack_formats",
    "oprack_commands",
    "oprack_variables",
    "oprack_communicators",
)
