"""What the operator decides: where models are, how requests are joined, and what bounds them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from oprack.python.threads import cpus

from oprack_serve.protocol import Limits


@dataclass(frozen=True)
class Settings:
    """Settings of one server; the command's options set them.

    model, name: a single model and its name. models: a folder of models. health_port: another port for health and
    metrics, 0 for any free one, None for none. grpc_port: where gRPC is served as well, None for nowhere. workers: how
    many batches run at once. threads: of kernel libraries in each worker. max_batch, max_delay: entries of a joined
    batch, and seconds that a request waits for others though a worker is free. max_queue: requests that wait for one
    model. timeout: seconds from a request's arrival to its results. read_timeout: seconds for a client to send a
    request or take its answer. max_inflight: bytes of all bodies and answers at once. memory_limit: bytes that one op's
    outputs may take, 0 for no limit. worker_memory: bytes that a worker may take for itself before another takes its
    place, 0 for no limit. drain_delay: seconds in which a server that is stopped is not ready and takes requests all
    the same. grace: seconds that it then waits for what it has. poll: seconds between looks for changed models.
    allow_pipelines: whether folders of models may bring Python code. log: "all" requests, or only those that "failed".
    cache: where rewritten models are kept (Config.set_optim_cache_dir), None for nowhere. int8, bf16: whether ops may
    compute in these (Config.enable_mkldnn_int8, enable_mkldnn_bfloat16) where serve.toml of a model sets no precision.
    fronts: processes that take requests, this one among them. shared_memory: whether clients may register POSIX shared
    memory. tls_cert, tls_key: files in PEM, None for no TLS. token_file: tokens, one of which each request brings.
    otlp: URL of an OpenTelemetry collector that gets traces, None for none.
    """

    model: Path | None = None
    name: str = ""
    models: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    health_port: int | None = None
    grpc_port: int | None = None
    workers: int = 1
    threads: int = 0
    max_batch: int = 32
    max_delay: float = 0.0
    max_queue: int = 256
    max_body: int = 64 << 20
    max_inflight: int = 512 << 20
    max_connections: int = 1024
    timeout: float = 30.0
    read_timeout: float = 20.0
    load_timeout: float = 300.0
    memory_limit: int = 2 << 30
    worker_memory: int = 2 << 30
    drain_delay: float = 0.0
    grace: float = 30.0
    poll: float = 2.0
    tls_cert: Path | None = None
    tls_key: Path | None = None
    token_file: Path | None = None
    otlp: str | None = None
    allow_trace: bool = False
    allow_pipelines: bool = False
    shared_memory: bool = False
    log: str = "all"
    cache: Path | None = None
    fronts: int = 1
    int8: bool = False
    bf16: bool = False
    limits: Limits = field(default_factory=Limits)

    def to_json(self) -> dict[str, Any]:
        """For another process."""
        return {name: str(value) if isinstance(value, Path) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Settings:
        """What `to_json` wrote."""
        paths = {each.name for each in fields(cls) if "Path" in str(each.type)}
        found: dict[str, Any] = {n: Path(v) if n in paths and v is not None else v for n, v in data.items()}
        return cls(**found | {"limits": Limits(**data["limits"])})

    def precisions(self) -> tuple[str, ...]:
        """Dtypes that ops may compute in besides their own, by the names that serve.toml has for them."""
        return ("bfloat16",) * self.bf16 + ("int8",) * self.int8

    def threads_of_a_worker(self) -> int:
        """The CPUs shared among the workers, unless the operator says otherwise."""
        return self.threads or max(1, cpus() // self.workers)
