"""An OpenAPI document of what is served over HTTP, for tools that make clients and pages of it."""

from __future__ import annotations

from typing import Any

from oprack_serve.datatypes import DTYPES
from oprack_serve.models import Models
from oprack_serve.settings import Settings

_ERROR = "what was passed, and what was expected"


def openapi(settings: Settings, models: Models, version: str) -> dict[str, Any]:
    """The document, version 3.1; names of models are those that are served now."""
    names = sorted({name for name, _ in models.serving})
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {
            "title": "oprack serve",
            "version": version,
            "description": "Models by the open inference protocol, version 2.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": _server_paths() | _model_paths(names) | _memory_paths(),
        "components": {"schemas": _schemas()},
    }
    if settings.health_port is not None:  # they are at that port alone
        del document["paths"]["/metrics"]
    if settings.token_file is not None:
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        for path in ("/v2/health/live", "/v2/health/ready"):
            document["paths"][path]["get"]["security"] = []
    return document


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


STRING, NUMBER, TRUTH, ANY = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"type": "object"}


def _answer(description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _operation(summary: str, schema: dict[str, Any], *errors: int, **more: Any) -> dict[str, Any]:
    responses = {"200": _answer(summary, schema)}
    responses |= {str(status): _answer(_ERROR, _ref("Error")) for status in errors}
    return {"summary": summary, "responses": responses} | more


def _server_paths() -> dict[str, Any]:
    ready = _operation("Whether every model was loaded, or reported.", _object("ready", ready=TRUTH))
    ready["responses"]["503"] = _answer("It is not.", _object("ready", ready=TRUTH))
    metrics = {"description": "Prometheus' text format.", "content": {"text/plain": {"schema": STRING}}}
    statistics = _operation("Counts and times of all models.", _ref("Statistics"))
    return {
        "/v2": {"get": _operation("What this server is.", _ref("ServerMetadata"))},
        "/v2/health/live": {"get": _operation("Whether the server answers.", _object("live", live=TRUTH))},
        "/v2/health/ready": {"get": ready},
        "/v2/repository/index": {"post": _operation("Every model with its state.", _list(_ref("IndexRow")))},
        "/v2/models/stats": {"get": statistics},
        "/metrics": {"get": {"summary": "Metrics.", "responses": {"200": metrics}}},
        "/openapi.json": {"get": _operation("This document.", ANY)},
    }


def _model_paths(names: list[str]) -> dict[str, Any]:
    name = {"name": "name", "in": "path", "required": True, "schema": STRING | ({"enum": names} if names else {})}
    version = {"name": "version", "in": "path", "required": True, "schema": STRING | {"pattern": "^[1-9][0-9]*$"}}
    json = {"application/json": {"schema": _ref("InferRequest")}}
    binary = {"application/octet-stream": {"schema": STRING | {"format": "binary"}}}
    length = {
        "name": "Inference-Header-Content-Length",
        "in": "header",
        "description": "Bytes of JSON in front of binary tensors.",
        "schema": NUMBER,
    }
    infer = _operation(
        "Inference.",
        _ref("InferResponse"),
        *(400, 404, 408, 413, 415, 500, 503, 504),
        requestBody={"required": True, "content": json | binary},
        parameters=[length],
    )
    ready = _operation("Whether the model is ready.", _object("name ready", name=STRING, ready=TRUTH), 404)
    ready["responses"]["503"] = _answer("It is not.", ANY)
    paths: dict[str, Any] = {}
    for base, parameters in (
        ("/v2/models/{name}", [name]),
        ("/v2/models/{name}/versions/{version}", [name, version]),
    ):
        of_base = {
            "": {"get": _operation("Inputs, outputs and versions.", _ref("ModelMetadata"), 404, 503)},
            "/ready": {"get": ready},
            "/config": {"get": _operation("The configuration, as Triton has it.", ANY, 404, 503)},
            "/stats": {"get": _operation("Counts and times.", _ref("Statistics"), 404, 503)},
            "/infer": {"post": infer},
        }
        paths |= {base + path: {"parameters": parameters} | found for path, found in of_base.items()}
    return paths


def _memory_paths() -> dict[str, Any]:
    region = {"name": "region", "in": "path", "required": True, "schema": STRING}
    asked = _object("key byte_size", key=STRING, offset=NUMBER, byte_size=NUMBER)
    body = {"required": True, "content": {"application/json": {"schema": asked}}}
    row = _list(_object("name key offset byte_size", name=STRING, key=STRING, offset=NUMBER, byte_size=NUMBER))
    paths = {}
    for base, more in (
        ("/v2/systemsharedmemory", {}),
        ("/v2/systemsharedmemory/region/{region}", {"parameters": [region]}),
    ):
        paths[f"{base}/status"] = more | {"get": _operation("Regions that are registered.", row, 400)}
        paths[f"{base}/unregister"] = more | {"post": _operation("Forget regions.", ANY, 400)}
    register = _operation("Register a part of a POSIX shared memory object.", ANY, 400, 503, requestBody=body)
    paths["/v2/systemsharedmemory/region/{region}/register"] = {"parameters": [region], "post": register}
    forget = _operation("Forget regions of GPUs, of which there are none.", ANY, 400)
    return paths | {"/v2/cudasharedmemory/unregister": {"post": forget}}


def _schemas() -> dict[str, Any]:
    datatype = {"type": "string", "enum": list(DTYPES)}
    tensor = {"name": STRING, "datatype": datatype, "shape": _list(NUMBER), "parameters": ANY}
    data = {"type": "array", "description": "Elements, flat or nested as the shape is; not where they are binary."}
    declared = _list(_object("name datatype shape", name=STRING, datatype=STRING, shape=_list(NUMBER)))
    return {
        "Error": _object("error", error=STRING),
        "ServerMetadata": _object("name version extensions", name=STRING, version=STRING, extensions=_list(STRING)),
        "ModelMetadata": _object(
            "name versions platform inputs outputs",
            **{"name": STRING, "versions": _list(STRING), "platform": STRING, "inputs": declared, "outputs": declared},
            parameters=ANY,
        ),
        "IndexRow": _object("name version state reason", name=STRING, version=STRING, state=STRING, reason=STRING),
        "Statistics": _object("model_stats", model_stats=_list(ANY)),
        "InferRequest": _object(
            "inputs",
            id=STRING,
            parameters=ANY,
            inputs=_list(_object("name datatype shape", **tensor, data=data)),
            outputs=_list(_object("name", name=STRING, parameters=ANY)),
        ),
        "InferResponse": _object(
            "model_name model_version outputs",
            model_name=STRING,
            model_version=STRING,
            id=STRING,
            parameters=ANY,
            outputs=_list(_object("name datatype shape", **tensor, data=data)),
        ),
    }
