"""The HTTP routes of `weir serve` as an OpenAPI document, for tools that make requests from one."""

NAME = {"type": "string", "minLength": 1}
PARAMETERS = {"type": "object", "additionalProperties": {"anyOf": [{"type": kind} for kind in ("boolean", "integer", "number", "string")]}}
DATATYPES = ["BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "BYTES"]
TENSOR = {
    "type": "object", "required": ["name", "shape", "datatype", "data"],
    "properties": {
        "name": {"anyOf": [{"enum": ["INPUT0", "INPUT1"]}, {"type": "string"}]},
        "shape": {"type": "array", "items": {"type": "integer"}},
        "datatype": {"enum": DATATYPES},
        "parameters": PARAMETERS,
        "data": {"type": "array", "items": {"anyOf": [{"type": kind} for kind in ("boolean", "integer", "number", "string", "array")]}},
    },
}
INFERENCE = {
    "type": "object", "required": ["inputs"],
    "properties": {
        "id": {"type": "string"},
        "parameters": PARAMETERS,
        "inputs": {"type": "array", "items": TENSOR},
        "outputs": {"type": "array", "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}, "parameters": PARAMETERS}}},
    },
}
REGION = {"type": "object", "required": ["key", "byte_size"],
          "properties": {"key": {"type": "string"}, "offset": {"type": "integer"}, "byte_size": {"type": "integer"}}}
CUDA = {"type": "object", "required": ["raw_handle", "device_id", "byte_size"],
        "properties": {"raw_handle": {"type": "object", "properties": {"b64": {"type": "string"}}}, "device_id": {"type": "integer"},
                       "byte_size": {"type": "integer"}}}
LOAD = {"type": "object", "properties": {"parameters": PARAMETERS}}


def route(method, body=None, **names):
    operation = {"responses": {"default": {"description": "JSON"}}}
    operation["parameters"] = [{"name": name, "in": "path", "required": True, "schema": schema} for name, schema in names.items()]
    if body:
        operation["requestBody"] = {"required": False, "content": {"application/json": {"schema": body}}}
    return {method: operation}


def document(models):
    model = {"anyOf": [{"enum": models}, NAME]}
    version = {"anyOf": [{"enum": ["1"]}, NAME]}
    paths = {"/v2": route("get"), "/v2/health/live": route("get"), "/v2/health/ready": route("get"), "/v2/models/stats": route("get"),
             "/v2/repository/index": route("post", {"type": "object", "properties": {"ready": {"type": "boolean"}}})}
    for prefix, names in (("/v2/models/{model}", {"model": model}), ("/v2/models/{model}/versions/{version}", {"model": model, "version": version})):
        for end in ("", "/ready", "/config", "/stats"):
            paths[prefix + end] = route("get", **names)
        paths[prefix + "/infer"] = route("post", INFERENCE, **names)
    for act in ("load", "unload"):  # of names that no model has, so that the models stay
        paths["/v2/repository/models/{model}/" + act] = route("post", LOAD, model={"type": "string", "pattern": "^no_[a-z]+$"})
    for kind, body in (("system", REGION), ("cuda", CUDA)):
        paths[f"/v2/{kind}sharedmemory/status"] = route("get")
        paths[f"/v2/{kind}sharedmemory/unregister"] = route("post")
        for act, method, content in (("status", "get", None), ("register", "post", body), ("unregister", "post", None)):
            paths[f"/v2/{kind}sharedmemory/region/{{region}}/{act}"] = route(method, content, region=NAME)
    return {"openapi": "3.0.3", "info": {"title": "weir serve", "version": "1"}, "paths": paths}
