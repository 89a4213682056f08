"""Every datatype that kserve's client has, there and back over REST (JSON and binary) and gRPC.

Its messages have the names of tritonclient's, so both cannot be in one process: python kserve_client.py HTTP GRPC
"""
import asyncio
import sys

import numpy as np
from kserve import InferenceGRPCClient, InferenceRESTClient, InferInput, InferRequest, RESTConfig

NUMBERS = {"BOOL": np.bool_, "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64, "INT8": np.int8, "INT16": np.int16,
           "INT32": np.int32, "INT64": np.int64, "FP16": np.float16, "FP32": np.float32, "FP64": np.float64}


def values_of(datatype):
    if datatype == "BYTES":
        return np.array([[b"", b"text", "é€".encode()]], dtype=object)
    return np.array([[0, 1, 7]], dtype=NUMBERS[datatype])


def same(response, given, datatype):
    found = response.outputs[0].as_numpy()
    assert list(found.shape) == list(given.shape), (datatype, found.shape)
    if datatype == "BYTES":
        found = np.array([[text.encode() if isinstance(text, str) else text for text in row] for row in found.tolist()], dtype=object)
    assert found.tolist() == given.tolist(), (datatype, found, given)


def request(datatype, given, binary=None):
    tensor = InferInput("INPUT0", list(given.shape), datatype)
    tensor.set_data_from_numpy(given, **({} if binary is None else {"binary_data": binary}))
    return InferRequest(model_name=f"identity_{datatype.lower()}", infer_inputs=[tensor], request_id="7")


async def talk(http, grpc):
    rest = InferenceRESTClient(RESTConfig(protocol="v2", retries=0))
    assert await rest.is_server_live(f"http://{http}") and await rest.is_server_ready(f"http://{http}")
    assert await rest.is_model_ready(f"http://{http}", "identity_fp32")
    client = InferenceGRPCClient(url=grpc, retries=0)
    assert await client.is_server_live() and await client.is_server_ready() and await client.is_model_ready("identity_fp32")
    passed = 0
    for datatype in [*NUMBERS, "BYTES"]:
        given = values_of(datatype)
        for binary in (True, False):
            if datatype == "FP16" and not binary:  # the client refuses it
                continue
            data = request(datatype, given, binary)
            same(await rest.infer(f"http://{http}", data, model_name=data.model_name), given, datatype)
            passed += 1
        same(await client.infer(request(datatype, given)), given, datatype)
        passed += 1
    await rest.close()
    await client.close()
    return passed


print("passed", asyncio.run(talk(*sys.argv[1:])))
