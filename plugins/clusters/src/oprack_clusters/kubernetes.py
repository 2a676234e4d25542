"""oprack kubernetes jobset|mpijob: manifests of jobs whose pods are ranks, for `kubectl apply -f -`.

A JobSet's ranks meet by TCP at the name of its first pod; it starts all of them again when one fails. An MPIJob has a
pod that runs mpiexec, and needs sshd in its image. JSON is YAML, so no library is needed to write either.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from typing import Any

from oprack.errors import InvalidArgumentError

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?")
"""A part of the pods' host names, which have at most 63 characters."""
_PORT = 29_400
_RANKS = "ranks"
"""The name of the replicated job."""
_MPIS = {"mpich": "MPICH", "openmpi": "OpenMPI", "impi": "Intel"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("kind", choices=("jobset", "mpijob"), help="what the cluster has a controller of")
    parser.add_argument("--name", required=True, help="of the job, in small letters, digits and -")
    parser.add_argument("--image", required=True, help="with oprack and the program in it")
    parser.add_argument("-n", "--ranks", type=int, required=True, help="how many pods, each of which is a rank")
    parser.add_argument(
        "--restarts", type=int, default=3, help="start again so many times when a rank fails (default: 3)"
    )
    parser.add_argument("--cpus", type=int, default=1, help="of a rank (default: 1)")
    parser.add_argument("--memory", default="", metavar="SIZE", help="of a rank, such as 4Gi (default: no limit)")
    parser.add_argument("--gpus", type=int, default=0, help="of NVIDIA of a rank, for the engine nccl (default: 0)")
    parser.add_argument(
        "--claim", default="", metavar="NAME=PATH", help="a volume that all ranks see, for checkpoints, and where"
    )
    parser.add_argument("--mpi", choices=tuple(_MPIS), default="mpich", help="of an mpijob's image (default: mpich)")
    parser.add_argument("program", help="a Python file in the image")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the manifest."""
    make = jobset if args.kind == "jobset" else mpijob
    manifest = make(
        args.name,
        args.image,
        args.ranks,
        [args.program, *args.arguments],
        restarts=args.restarts,
        cpus=args.cpus,
        memory=args.memory,
        gpus=args.gpus,
        claim=args.claim,
        **({"mpi": args.mpi} if args.kind == "mpijob" else {}),
    )
    print(json.dumps(manifest, indent=2))
    return 0


def jobset(
    name: str,
    image: str,
    ranks: int,
    program: Sequence[str],
    *,
    restarts: int = 3,
    cpus: int = 1,
    memory: str = "",
    gpus: int = 0,
    claim: str = "",
) -> dict[str, Any]:
    """The manifest of a JobSet (https://jobset.sigs.k8s.io), whose ranks meet by the engine tcp.

    Args:
        name: Of the job.
        image: Has oprack and the program.
        ranks: Number of pods.
        program: A Python file in the image, and its arguments.
        restarts: How often all ranks are started again when one fails.
        cpus: Of a rank.
        memory: Of a rank, as Kubernetes writes it; "": no limit.
        gpus: Of a rank.
        claim: "name=path": a PersistentVolumeClaim, and where ranks see it.

    Returns:
        The manifest.

    Raises:
        InvalidArgumentError: An argument can't be.
    """
    _check(name, ranks, restarts, cpus, gpus)
    variables = [
        {"name": "RANK", "valueFrom": _field("annotations['batch.kubernetes.io/job-completion-index']")},
        {"name": "WORLD_SIZE", "value": str(ranks)},
        {"name": "MASTER_ADDR", "value": f"{name}-{_RANKS}-0-0.{name}"},
        {"name": "MASTER_PORT", "value": str(_PORT)},
        # No secret of ours: who may read the pods of this namespace knows it. It changes with each job and each restart
        {"name": "JOBSET", "valueFrom": _field("labels['jobset.sigs.k8s.io/jobset-uid']")},
        {"name": "ATTEMPT", "valueFrom": _field("labels['jobset.sigs.k8s.io/restart-attempt']")},
        {"name": "OPRACK_JOB_TOKEN", "value": "$(JOBSET)-$(ATTEMPT)"},
        {"name": "OPRACK_ENGINE", "value": "nccl" if gpus else "tcp"},
        {"name": "OMP_NUM_THREADS", "value": str(cpus)},
    ]
    container = _container(image, cpus, memory, gpus) | {"command": _command(program), "env": variables}
    container["ports"] = [{"containerPort": _PORT, "name": "meeting"}]
    pod = _pod(container, claim)
    job = {"completionMode": "Indexed", "completions": ranks, "parallelism": ranks, "backoffLimit": 0}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {
            "network": {"enableDNSHostnames": True, "subdomain": name},
            "failurePolicy": {"maxRestarts": restarts},
            "replicatedJobs": [
                {"name": _RANKS, "replicas": 1, "template": {"spec": job | {"template": {"spec": pod}}}}
            ],
        },
    }


def mpijob(
    name: str,
    image: str,
    ranks: int,
    program: Sequence[str],
    *,
    restarts: int = 3,
    cpus: int = 1,
    memory: str = "",
    gpus: int = 0,
    claim: str = "",
    mpi: str = "mpich",
) -> dict[str, Any]:
    """The manifest of an MPIJob (https://github.com/kubeflow/mpi-operator), whose ranks meet by MPI.

    Args:
        name: As of `jobset`.
        image: Has oprack with oprack-mpi, the program, and sshd.
        ranks: As of `jobset`.
        program: As of `jobset`.
        restarts: How often mpiexec is started again when a rank fails.
        cpus: As of `jobset`.
        memory: As of `jobset`.
        gpus: As of `jobset`.
        claim: As of `jobset`.
        mpi: The MPI of the image: mpich, openmpi or impi.

    Returns:
        The manifest.

    Raises:
        InvalidArgumentError: An argument can't be.
    """
    _check(name, ranks, restarts, cpus, gpus)
    if mpi not in _MPIS:
        raise InvalidArgumentError(f"oprack kubernetes: mpi {mpi!r}; expected one of {', '.join(_MPIS)}")
    starts: dict[str, Any] = {
        "name": "mpiexec",
        "image": image,
        "command": ["mpiexec", "-n", str(ranks), *_command(program)],
    }
    if gpus:
        starts["env"] = [{"name": "OPRACK_ENGINE", "value": "nccl"}]
    worker = _container(image, cpus, memory, gpus) | {"command": ["/usr/sbin/sshd", "-De"]}
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {
            "slotsPerWorker": 1,
            "mpiImplementation": _MPIS[mpi],
            "runPolicy": {"cleanPodPolicy": "Running", "backoffLimit": restarts},
            "mpiReplicaSpecs": {
                "Launcher": {"replicas": 1, "template": {"spec": _pod(starts, "")}},
                "Worker": {"replicas": ranks, "template": {"spec": _pod(worker, claim)}},
            },
        },
    }


def _check(name: str, ranks: int, restarts: int, cpus: int, gpus: int) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidArgumentError(
            f"oprack kubernetes: name {name!r}; expected at most 40 small letters, digits and -, with neither end a -"
        )
    if ranks < 1 or restarts < 0 or cpus < 1 or gpus < 0:
        raise InvalidArgumentError(
            f"oprack kubernetes: ranks {ranks}, restarts {restarts}, cpus {cpus}, gpus {gpus}; expected at least one "
            "rank and CPU, and no negative number"
        )


def _command(program: Sequence[str]) -> list[str]:
    # As of `oprack launch`: sys.exit of one rank ends all
    return ["python", "-m", "oprack_parallel.launch.program", *program]


def _field(path: str) -> dict[str, Any]:
    return {"fieldRef": {"fieldPath": f"metadata.{path}"}}


def _container(image: str, cpus: int, memory: str, gpus: int) -> dict[str, Any]:
    limits = (
        {"cpu": str(cpus)} | ({"memory": memory} if memory else {}) | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    )
    return {"name": "rank", "image": image, "resources": {"requests": limits, "limits": limits}}


def _pod(container: dict[str, Any], claim: str) -> dict[str, Any]:
    pod: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if not claim:
        return pod
    name, _, path = claim.partition("=")
    if not name or not path.startswith("/"):
        raise InvalidArgumentError(f"oprack kubernetes: claim {claim!r}; expected NAME=/path")
    pod["volumes"] = [{"name": "checkpoints", "persistentVolumeClaim": {"claimName": name}}]
    container["volumeMounts"] = [{"name": "checkpoints", "mountPath": path}]
    return pod
