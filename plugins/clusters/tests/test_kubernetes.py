"""Manifests agree with the schemas of JobSet and MPIJob, and say what the engines tcp and mpi read.

The schemas are names and types of fields of the custom resource definitions in kubernetes-sigs/jobset and
kubeflow/mpi-operator (both Apache-2.0), without descriptions; parts that no manifest of ours has are any object.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from oprack.cli.main import main
from oprack.errors import InvalidArgumentError
from oprack_clusters.kubernetes import jobset, mpijob
from oprack_parallel.tcp.launchers import started

SCHEMAS = json.loads((Path(__file__).parent / "data" / "job_schemas.json").read_text("utf-8"))
OPTIONS = {"restarts": 2, "cpus": 4, "memory": "8Gi", "gpus": 1, "claim": "shared=/checkpoints"}


def errors(manifest: dict[str, Any]) -> list[str]:
    schema = SCHEMAS[f"{manifest['apiVersion']} {manifest['kind']}"]
    return [f"{e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(manifest)]


@pytest.mark.parametrize("make", [jobset, mpijob])
@pytest.mark.parametrize("options", [{}, OPTIONS], ids=["plain", "all"])
def test_manifests_agree_with_their_schemas(make, options):
    assert errors(make("digits", "registry/image:1", 4, ["train.py", "--fast"], **options)) == []


def test_the_schema_finds_what_is_wrong():
    manifest = jobset("digits", "image", 2, ["train.py"])
    wrong = copy.deepcopy(manifest)
    job = wrong["spec"]["replicatedJobs"][0]["template"]["spec"]
    job["paralellism"] = job.pop("parallelism")
    job["template"]["spec"]["containers"][0]["image"] = 3
    del wrong["spec"]["replicatedJobs"][0]["name"]
    assert len(errors(wrong)) == 3


def test_pods_of_a_jobset_meet_as_ranks():
    manifest = jobset("digits", "image", 3, ["train.py", "a"], restarts=5)
    spec = manifest["spec"]
    job = spec["replicatedJobs"][0]["template"]["spec"]
    assert (job["completions"], job["parallelism"], job["completionMode"]) == (3, 3, "Indexed")
    assert spec["failurePolicy"] == {"maxRestarts": 5} and job["backoffLimit"] == 0
    (container,) = job["template"]["spec"]["containers"]
    variables = {v["name"]: v.get("value", "2") for v in container["env"]}
    found = started(variables)
    assert (found.rank, found.size, found.host, found.ports[0]) == (2, 3, "digits-ranks-0-0.digits", 29_400)
    assert spec["network"]["subdomain"] == "digits"
    assert container["command"] == ["python", "-m", "oprack_parallel.launch.program", "train.py", "a"]


def test_the_command_prints_a_manifest(capsys):
    options = ["--name", "digits", "--image", "i", "-n", "2", "--claim", "shared=/c", "train.py", "--epochs", "3"]
    assert main(["kubernetes", "mpijob", "--mpi", "openmpi", *options]) == 0
    manifest = json.loads(capsys.readouterr().out)
    assert errors(manifest) == []
    assert manifest["spec"]["mpiImplementation"] == "OpenMPI"
    launcher = manifest["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert launcher["command"][:3] == ["mpiexec", "-n", "2"] and launcher["command"][-2:] == ["--epochs", "3"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "Digits"}, "name 'Digits'; expected at most 40 small letters"),
        ({"ranks": 0}, "expected at least one rank"),
        ({"claim": "shared"}, "claim 'shared'; expected NAME=/path"),
    ],
)
def test_what_can_not_be_is_refused(change, message):
    given = {"name": "digits", "image": "i", "ranks": 2, "program": ["t.py"], **change}
    with pytest.raises(InvalidArgumentError, match=message):
        jobset(**given)
