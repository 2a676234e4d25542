"""Programs that Paddle 2.6.2's fleet writes for several trainers: adds to tests/data/programs_distributed.

`fused`: two trainers, all-reduces fused by twos, beside `one_fused`, one trainer. `tensor`: four trainers, tensor
parallelism over two and data parallelism over two, beside `one_tensor`. One trainer's process writes one program, so
the script calls itself. A wheel without a communication library writes no ops that open rings; those of a device of a
plugin are written in their place.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data" / "programs_distributed"
TRAINERS = {"one_fused": 1, "fused": 2, "sharding": 2, "one_tensor": 1, "tensor": 4}
CLASSES, WIDTH, HIDDEN = 12, 8, 8


def strategy(name: str) -> Any:
    from paddle.distributed import fleet

    chosen = fleet.DistributedStrategy()
    if name == "fused":
        chosen.without_graph_optimization = True
        chosen.fuse_all_reduce_ops = True
        chosen.fuse_grad_size_in_num = 2
    if name == "sharding":
        chosen.sharding = True
        chosen.sharding_configs = {
            "sharding_segment_strategy": "segment_broadcast_MB",
            "segment_broadcast_MB": 0.0005,
            "sharding_degree": 2,
        }
    if name == "tensor":
        chosen.tensor_parallel = True
        chosen.tensor_parallel_configs = {"tensor_parallel_degree": 2}
    return chosen


def small_net() -> Any:
    import paddle
    from paddle import static

    x = static.data("x", [-1, WIDTH], "float32")
    y = static.data("y", [-1, 1], "int64")
    hidden = static.nn.fc(x, 16, activation="relu", name="a")
    hidden = static.nn.fc(hidden, 16, activation="tanh", name="b")
    scores = static.nn.fc(hidden, 4, name="c")
    return paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(scores, y))


def tensor_net(rank: int, ranks: int) -> Any:
    """A table of words, two layers and scores of words, with all of them split; whole where there is one rank."""
    import paddle
    from paddle import static
    from paddle.distributed.fleet.layers.mpu import mp_ops
    from paddle.nn import functional as F

    x = static.data("x", [-1, 3], "int64")
    y = static.data("y", [-1, 1], "int64")

    def named(name: str) -> Any:
        return paddle.ParamAttr(name=name)

    def linear(x: Any, rows: int, columns: int, axis: int, name: str, gather: bool = False) -> Any:
        rows, columns = (rows // ranks, columns) if axis == 0 else (rows, columns // ranks)
        if ranks == 1:
            layer = paddle.nn.Linear(rows, columns, named(f"{name}.w"), named(f"{name}.b"))
            return layer(x)
        return mp_ops._parallel_linear(
            x, rows, columns, axis, named(f"{name}.w"), named(f"{name}.b"), gather, rank, ranks, False, name
        )

    if ranks == 1:
        table = paddle.create_parameter([CLASSES, WIDTH], "float32", attr=named("table"))
        words = F.embedding(x, table)
    else:
        words = mp_ops._parallel_embedding(x, CLASSES // ranks, [CLASSES, WIDTH], named("table"), rank, ranks, None)
    rows = paddle.sum(words, axis=1)
    hidden = F.relu(linear(rows, WIDTH, HIDDEN, 1, "up"))
    hidden = linear(hidden, HIDDEN, WIDTH, 0, "down", gather=True)
    scores = linear(hidden, WIDTH, CLASSES, 1, "head")
    if ranks == 1:
        return paddle.mean(F.softmax_with_cross_entropy(scores, y))
    from types import SimpleNamespace

    group = SimpleNamespace(id=0, nranks=ranks, is_member=lambda: True, get_group_rank=lambda _: rank)
    return paddle.mean(mp_ops._c_softmax_with_cross_entropy(scores, y, group=group))


def open_ring(
    self: Any, program: Any, endpoint: str, endpoints: list[str], rank: int, ring: int, *rest: Any, **more: Any
) -> None:
    """Stands for CollectiveHelper._init_communicator, which knows two libraries and refuses the CPU."""
    import paddle
    from paddle.distributed.fleet.meta_optimizers.common import OP_ROLE_KEY, OpRole
    from paddle.utils import unique_name

    paddle.base.framework.Operator.OP_WITHOUT_KERNEL_SET.add("c_gen_xccl_id")  # it infers no shape
    block = program.global_block()
    name = unique_name.generate("comm_id")
    var = block.create_var(name=name, persistable=True, type=paddle.framework.core.VarDesc.VarType.RAW)
    forward = {OP_ROLE_KEY: OpRole.Forward}
    others = [e for e in endpoints if e != endpoint]
    made = {"rank": rank, "endpoint": endpoint, "other_endpoints": others, "ring_id": ring}
    block.append_op(type="c_gen_xccl_id", outputs={"Out": var}, attrs={**made, **forward})
    opened = {"nranks": len(endpoints), "rank": rank, "ring_id": ring, "endpoints": ",".join(endpoints)}
    block.append_op(type="c_comm_init", inputs={"X": var}, attrs={**opened, **forward})


def write(name: str, rank: int) -> None:
    import paddle
    from google.protobuf.descriptor import FieldDescriptor
    from paddle import static
    from paddle.distributed import fleet
    from paddle.distributed.fleet.meta_optimizers import common, sharding_optimizer
    from paddle.distributed.fleet.meta_optimizers.common import CollectiveHelper

    if not hasattr(FieldDescriptor, "label"):  # newer versions of protobuf than Paddle was written for
        FieldDescriptor.label = property(lambda field: field._label)
    paddle.enable_static()
    CollectiveHelper._init_communicator = open_ring
    for module in (common, sharding_optimizer):
        module.wait_server_ready = lambda endpoints: None  # nobody else runs
    get_flags = paddle.get_flags
    unified = "FLAGS_dynamic_static_unified_comm"  # a flag of wheels for GPUs, where it is false
    paddle.get_flags = lambda flags: {unified: False} if flags == unified else get_flags(flags)
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup), paddle.utils.unique_name.guard():
        if TRAINERS[name] > 1:
            fleet.init(is_collective=True, strategy=strategy(name))
        loss = tensor_net(rank % 2, 2 if name == "tensor" else 1) if "tensor" in name else small_net()
        optimizer = paddle.optimizer.Momentum(0.1)
        if TRAINERS[name] > 1:
            optimizer = fleet.distributed_optimizer(optimizer, strategy(name))
        optimizer.minimize(loss, startup)
    for kind, program in (("main", main), ("startup", startup)):
        for block in program.blocks:
            for op in block.ops:
                op._remove_attr("op_callstack")
        (FOLDER / f"{name}.{rank}.{kind}").write_bytes(program.desc.serialize_to_string())
    (FOLDER / f"{name}.{rank}.loss").write_text(loss.name)


def main() -> None:
    if len(sys.argv) == 3:
        write(sys.argv[1], int(sys.argv[2]))
        return
    for name, count in TRAINERS.items():
        ports = [f"127.0.0.1:{6170 + k}" for k in range(count)]
        for rank in range(count):
            given = {
                "PADDLE_TRAINER_ID": str(rank),
                "PADDLE_TRAINERS_NUM": str(count),
                "PADDLE_TRAINER_ENDPOINTS": ",".join(ports),
                "PADDLE_CURRENT_ENDPOINT": ports[rank],
                "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
            }
            subprocess.run([sys.executable, __file__, name, str(rank)], env={**os.environ, **given}, check=True)


if __name__ == "__main__":
    main()
