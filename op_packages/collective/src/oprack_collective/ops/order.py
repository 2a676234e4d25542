"""Definitions of ops for which op runs before which, and rings of ranks."""

from __future__ import annotations

from oprack.op import REQUIRED, Attr, InferShapeContext, InferVarTypeContext, Input, OpDef, Output, empty_grad
from oprack.types import AttrType, VarType

from oprack_collective.ops._attrs import RING_ID
from oprack_collective.ops._like import Like


# What ops share by which Paddle agrees on a ring before it is opened.
class GenId(OpDef):
    """Out says which ranks form the ring."""

    Out = Output("Which ranks form the ring, for c_comm_init.")
    endpoint = Attr(REQUIRED, "Address of this rank; here a name.", type=AttrType.STRING)
    other_endpoints = Attr([], "Addresses of the other ranks of the ring.", type=AttrType.STRINGS)
    rank = Attr(0, "This rank in the ring.")
    ring_id = RING_ID

    def infer_shape(ctx: InferShapeContext) -> None:
        """It has no shape."""

    def infer_var_type(ctx: InferVarTypeContext) -> None:
        ctx.set_kind("Out", VarType.RAW)


# Ops that hand on several tensors.
class Many(OpDef):
    """Out_i is X_i."""

    X = Input("Tensors of any shape.", duplicable=True)
    Out = Output("As many as X, with their shapes and LoD.", duplicable=True)
    make_grad = empty_grad

    def infer_shape(ctx: InferShapeContext) -> None:
        for i, dims in enumerate(ctx.dims("X")):
            ctx.set_dim("Out", dims, i)
            ctx.share_lod("X", "Out", i, i)


class Barrier(Like, type="barrier"):
    r"""$$Out = X$$ on each rank of the ring, once all of them are here."""

    ring_id = RING_ID


# c_comm_init: its definition; the operator is in the file of this name below operators.
class CCommInit(OpDef, type="c_comm_init"):
    """Opens a ring among the ranks that name the same addresses; every rank of the world has to open one."""

    X = Input("What c_gen_nccl_id or another op of its kind made.")
    nranks = Attr(REQUIRED, "Number of ranks of the ring.", type=AttrType.INT)
    rank = Attr(REQUIRED, "This rank in the ring.", type=AttrType.INT)
    device_id = Attr(-1, "Paddle: the device of this rank.")
    ring_id = RING_ID
    endpoints = Attr("", "Addresses of the ranks, with commas; by default what X names.")

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


# c_comm_init_all: its definition; the operator is in the file of this name below operators.
class CCommInitAll(OpDef, type="c_comm_init_all"):
    """Opens a ring of all ranks. In Paddle one process has all devices; here each rank is a process."""

    devices = Attr([], "Paddle: the devices of the process.", type=AttrType.INTS)
    ring_id = RING_ID

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


# c_comm_init_multitrainer: its definition; the operator is in the file of this name below operators.
class CCommInitMultitrainer(OpDef, type="c_comm_init_multitrainer"):
    """Opens a ring of all trainers, each of which is a rank here."""

    X = Input("What c_gen_nccl_id or another op of its kind made.")
    ntrainers = Attr(REQUIRED, "Number of trainers.", type=AttrType.INT)
    trainer_id = Attr(REQUIRED, "This trainer.", type=AttrType.INT)
    devices = Attr([], "Paddle: the devices of the process.", type=AttrType.INTS)
    ring_id = RING_ID

    def infer_shape(ctx: InferShapeContext) -> None:
        """There is no output."""


# c_gen_bkcl_id: its definition; the operator is in the file of this name below operators.
class CGenBkclId(GenId, type="c_gen_bkcl_id"):
    """Out names the ranks of a ring by their addresses. In Paddle it is an id of BKCL."""


# c_gen_nccl_id: its definition; the operator is in the file of this name below operators.
class CGenNcclId(GenId, type="c_gen_nccl_id"):
    """Out names the ranks of a ring by their addresses. In Paddle it is an id of NCCL."""


# c_gen_xccl_id: its definition; the operator is in the file of this name below operators.
class CGenXcclId(GenId, type="c_gen_xccl_id"):
    """Out names the ranks of a ring by their addresses. In Paddle it is an id of a device's library."""


class CSyncCalcStream(Like, type="c_sync_calc_stream"):
    r"""$$Out = X$$. In Paddle the host waits for the stream of computation; here ops end before the next one starts."""


class CSyncCommStream(Many, type="c_sync_comm_stream"):
    r"""$$Out_i = X_i$$. In Paddle the host waits for communication; here ops end before the next one starts."""

    ring_id = RING_ID


class CWaitComm(Many, type="c_wait_comm"):
    r"""$$Out_i = X_i$$. In Paddle computation waits for communication; here ops end before the next one starts."""

    ring_id = RING_ID


class CWaitCompute(Many, type="c_wait_compute"):
    r"""$$Out_i = X_i$$. In Paddle communication waits for computation; here ops end before the next one starts."""

    ring_id = RING_ID


class Depend(Like, type="depend"):
    r"""$$Out = X$$, once every Dep was computed."""

    Dep = Input("Tensors that have to be there before.", duplicable=True)
    no_need_buffer_vars = ("Dep",)
