"""What Triton's example clients call, with its public Python clients: simple_*_infer, async, aio, strings, contents, reuse."""
import asyncio
import queue

import grpc
import numpy as np
import pytest
import tritonclient.grpc as grpcclient
import tritonclient.grpc.aio as grpcaio
import tritonclient.http.aio as httpaio
import tritonclient.utils as utils
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException

FIRST = np.arange(16, dtype=np.int32).reshape(1, 16)
SECOND = np.ones((1, 16), dtype=np.int32)


def texts(numbers):
    return np.array([str(number).encode() for number in numbers.flatten()], dtype=object).reshape(numbers.shape)


def simple_inputs(client, first=FIRST, second=SECOND, binary=(True, True)):
    return [client.input("INPUT0", first, "INT32", binary[0]), client.input("INPUT1", second, "INT32", binary[1])]


def is_right(result, first=FIRST, second=SECOND):
    assert np.array_equal(result.as_numpy("OUTPUT0"), first + second)
    assert np.array_equal(result.as_numpy("OUTPUT1"), first - second)


@pytest.mark.parametrize("binary", [(True, True), (False, True), (False, False)])
def test_sums_with_and_without_wanted_outputs(client, binary):
    outputs = [client.output("OUTPUT0", binary[0]), client.output("OUTPUT1", binary[1])]
    is_right(client.triton.infer("simple", simple_inputs(client, binary=binary), outputs=outputs, headers={"test": "1"}))
    is_right(client.triton.infer("simple", simple_inputs(client, binary=binary), outputs=None, request_id="7"))
    statistics = client.plain(client.triton.get_inference_statistics(model_name="simple"))
    assert len(statistics["model_stats"]) == 1


def test_http_takes_query_parameters(server):
    import rig
    http = rig.Client("http", server)
    is_right(http.triton.infer("simple", simple_inputs(http), query_params={"test_1": 1, "test_2": 2}))


def test_asynchronous_calls(client):
    answered = queue.Queue()
    if client.protocol == "http":
        with client.open(concurrency=4) as triton:
            for handle in [triton.async_infer("simple", simple_inputs(client)) for _ in range(8)]:
                is_right(handle.get_result())
        return
    for _ in range(8):
        client.triton.async_infer("simple", simple_inputs(client), lambda result, error: answered.put((result, error)))
    for _ in range(8):
        result, error = answered.get(timeout=30)
        assert error is None
        is_right(result)


def test_streamed_calls(server):
    import rig
    client = rig.Client("grpc", server)
    answered = queue.Queue()
    client.triton.start_stream(lambda result, error: answered.put((result, error)))
    for number in range(8):
        client.triton.async_stream_infer("simple", simple_inputs(client, first=FIRST + number), request_id=str(number))
    for _ in range(8):
        result, error = answered.get(timeout=30)
        assert error is None
        is_right(result, first=FIRST + int(result.get_response().id))
    client.triton.stop_stream()


@pytest.mark.parametrize("aio, protocol", [(httpaio, "http"), (grpcaio, "grpc")])
def test_asyncio_clients(server, aio, protocol):
    async def talk():
        async with aio.InferenceServerClient(url=getattr(server, protocol)) as triton:
            assert await triton.is_server_live() and await triton.is_server_ready() and await triton.is_model_ready("simple")
            inputs = [aio.InferInput("INPUT0", [1, 16], "INT32"), aio.InferInput("INPUT1", [1, 16], "INT32")]
            inputs[0].set_data_from_numpy(FIRST)
            inputs[1].set_data_from_numpy(SECOND)
            for result in await asyncio.gather(*[triton.infer("simple", inputs) for _ in range(4)]):
                is_right(result)
            with pytest.raises(InferenceServerException, match="^(\\[.*\\] )?Request for unknown model"):
                await triton.infer("wrong_model_name", inputs)

    asyncio.run(talk())


def test_channel_arguments_and_keepalive(server):
    arguments = [("grpc.max_send_message_length", 1 << 20), ("grpc.max_receive_message_length", 1 << 20), ("grpc.keepalive_timeout_ms", 20000),
                 ("grpc.http2.max_pings_without_data", 2), ("grpc.dns_enable_srv_queries", 1)]
    keepalive = grpcclient.KeepAliveOptions(keepalive_time_ms=2**31 - 1, keepalive_timeout_ms=20000, keepalive_permit_without_calls=False,
                                            http2_max_pings_without_data=2)
    import rig
    for options in ({"channel_args": arguments}, {"keepalive_options": keepalive}):
        client = rig.Client("grpc", server)
        with client.open(**options) as triton:
            is_right(triton.infer("simple", simple_inputs(client)))


@pytest.mark.parametrize("binary", [True, False])
def test_strings_are_summed(client, binary):
    first, second = texts(FIRST), texts(SECOND)
    inputs = [client.input("INPUT0", first, "BYTES", binary), client.input("INPUT1", second, "BYTES", binary)]
    result = client.triton.infer("simple_string", inputs, outputs=[client.output("OUTPUT0", binary), client.output("OUTPUT1", binary)])
    for name, numbers in (("OUTPUT0", FIRST + SECOND), ("OUTPUT1", FIRST - SECOND)):
        found = [int(text) for text in result.as_numpy(name).flatten()]
        assert found == numbers.flatten().tolist()


def test_strings_of_any_bytes_and_lengths_come_back(client):
    cases = [[b""], [b"", b"a", b"\0b\0", "é".encode()], [b"\xff\xfe"], [b"x" * 100_000, b""]]
    for elements in cases:
        given = np.array(elements, dtype=object).reshape(1, -1)
        result = client.triton.infer("simple_identity", [client.input("INPUT0", given, "BYTES")], outputs=[client.output("OUTPUT0")])
        assert result.as_numpy("OUTPUT0").tolist() == [elements]


def test_strings_that_are_no_numbers_fail_alone(client):
    words = np.array([[b"word"] * 16], dtype=object)
    with pytest.raises(InferenceServerException):
        client.triton.infer("simple_string", [client.input("INPUT0", words, "BYTES"), client.input("INPUT1", words, "BYTES")])
    test_strings_are_summed(client, True)


def explicit(server, model, datatype, field, first, second):
    request = service_pb2.ModelInferRequest(model_name=model)
    for name, values in (("INPUT0", first), ("INPUT1", second)):
        tensor = request.inputs.add(name=name, datatype=datatype, shape=[1, 16])
        getattr(tensor.contents, field).extend(values)
    for name in ("OUTPUT0", "OUTPUT1"):
        request.outputs.add(name=name)
    return request, service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))


def test_explicit_integers_and_both_forms_at_once(server):
    request, stub = explicit(server, "simple", "INT32", "int_contents", range(16), [1] * 16)
    response = stub.ModelInfer(request)
    assert np.frombuffer(response.raw_output_contents[0], np.int32).tolist() == list(range(1, 17))
    request.raw_input_contents.append(bytes(32))
    request.inputs[0].contents.int_contents[:] = range(8)
    with pytest.raises(grpc.RpcError) as refused:
        stub.ModelInfer(request)
    assert "contents field must not be specified when using raw_input_contents for 'INPUT0' for model 'simple'" in refused.value.details()


def test_explicit_bytes_and_small_integers(server):
    request, stub = explicit(server, "simple_int8", "INT8", "int_contents", range(16), [1] * 16)
    response = stub.ModelInfer(request)
    assert np.frombuffer(response.raw_output_contents[1], np.int8).tolist() == list(range(-1, 15))
    request.model_version = "wrong_specification"
    with pytest.raises(grpc.RpcError) as refused:
        stub.ModelInfer(request)
    assert "failed to get model version from specified version string 'wrong_specification'" in refused.value.details()

    request, stub = explicit(server, "simple_string", "BYTES", "bytes_contents", [b"%d" % i for i in range(16)], [b"1"] * 16)
    response = stub.ModelInfer(request)
    assert [int(text) for text in utils.deserialize_bytes_tensor(response.raw_output_contents[0])] == list(range(1, 17))


def test_a_model_without_a_batch_over_the_bare_service(server):
    stub = service_pb2_grpc.GRPCInferenceServiceStub(grpc.insecure_channel(server.grpc))
    assert stub.ServerLive(service_pb2.ServerLiveRequest()).live
    assert stub.ModelReady(service_pb2.ModelReadyRequest(name="densenet_onnx")).ready
    config = stub.ModelConfig(service_pb2.ModelConfigRequest(name="densenet_onnx")).config
    assert config.name == "densenet_onnx" and config.input[0].dims == [3, 224, 224]
    request = service_pb2.ModelInferRequest(model_name="densenet_onnx", id="my request id")
    request.inputs.add(name="data_0", datatype="FP32", shape=[3, 224, 224])
    request.outputs.add(name="fc6_1")
    request.raw_input_contents.append(b"a" * 602112)
    response = stub.ModelInfer(request)
    assert response.id == "my request id" and response.outputs[0].shape == [1000]


def test_many_clients_one_after_the_other(client):
    for _ in range(50):
        with client.open() as triton:
            result = triton.infer("custom_identity_int32", [client.input("INPUT0", FIRST, "INT32")], outputs=[client.output("OUTPUT0")])
        assert np.array_equal(result.as_numpy("OUTPUT0"), FIRST)
