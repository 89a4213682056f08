"""Shared memory with Triton's public Python clients: simple_*_shm, simple_*_shm_string, reuse_infer_objects, and the memory of GPUs."""
import numpy as np
import pytest
import tritonclient.utils as utils
import tritonclient.utils.shared_memory as shm
from tritonclient.utils import InferenceServerException

FIRST = np.arange(16, dtype=np.int32)
SECOND = np.ones(16, dtype=np.int32)


def texts(numbers):
    return np.array([str(number).encode() for number in numbers], dtype=object)


@pytest.fixture
def regions(client):
    """Registers regions; takes all of them away in the end."""
    made = {}

    def make(name, size):
        key = f"/weir_check_{client.protocol}_{name}"
        made[name] = shm.create_shared_memory_region(name, key, size)
        client.triton.register_system_shared_memory(name, key, size)
        return made[name]

    client.triton.unregister_system_shared_memory()
    client.triton.unregister_cuda_shared_memory()
    yield make
    client.triton.unregister_system_shared_memory()
    for handle in made.values():
        shm.destroy_shared_memory_region(handle)


def described(client, output):
    output = client.plain(output)
    return utils.triton_to_np_dtype(output["datatype"]), [int(size) for size in output["shape"]]


def test_numbers_there_and_back_with_objects_used_again(client, regions):
    size = FIRST.nbytes
    for name, values in (("input0", FIRST), ("input1", SECOND)):
        shm.set_shared_memory_region(regions(name, size), [values])
    handles = [regions("output0", size), regions("output1", size)]
    status = client.plain(client.triton.get_system_shared_memory_status())
    assert len(status["regions"] if isinstance(status, dict) else status) == 4
    inputs = [client.module.InferInput(f"INPUT{i}", [1, 16], "INT32") for i in (0, 1)]
    outputs = [client.output("OUTPUT0"), client.output("OUTPUT1")]
    for shared in (True, False, True):
        for i in (0, 1):
            if shared:
                inputs[i].set_shared_memory(f"input{i}", size)
                outputs[i].set_shared_memory(f"output{i}", size)
            else:
                inputs[i].set_data_from_numpy((FIRST, SECOND * 2)[i].reshape(1, 16))
                outputs[i].unset_shared_memory()
        result = client.triton.infer("simple", inputs, outputs=outputs)
        second = SECOND if shared else SECOND * 2
        for i, expected in enumerate((FIRST + second, FIRST - second)):
            found = shm.get_contents_as_numpy(handles[i], *described(client, result.get_output(f"OUTPUT{i}"))) if shared else result.as_numpy(f"OUTPUT{i}")
            assert np.array_equal(found[0], expected)


def test_strings_there_and_back(client, regions):
    given = [utils.serialize_byte_tensor(texts(values)) for values in (FIRST, SECOND)]
    expected = [texts(FIRST + SECOND), texts(FIRST - SECOND)]
    inputs, outputs, handles = [], [], []
    for i in (0, 1):
        size = utils.serialized_byte_size(given[i])
        shm.set_shared_memory_region(regions(f"input{i}", size), [given[i]])
        inputs.append(client.module.InferInput(f"INPUT{i}", [1, 16], "BYTES"))
        inputs[i].set_shared_memory(f"input{i}", size)
        size = utils.serialized_byte_size(utils.serialize_byte_tensor(expected[i]))
        handles.append(regions(f"output{i}", size))
        outputs.append(client.output(f"OUTPUT{i}"))
        outputs[i].set_shared_memory(f"output{i}", size)
    result = client.triton.infer("simple_string", inputs, outputs=outputs)
    for i in (0, 1):
        found = shm.get_contents_as_numpy(handles[i], *described(client, result.get_output(f"OUTPUT{i}")))
        assert found[0].tolist() == expected[i].tolist()


def test_regions_that_are_not_there(client, regions):
    client.triton.unregister_system_shared_memory("none")
    inputs = [client.module.InferInput(f"INPUT{i}", [1, 16], "INT32") for i in (0, 1)]
    for tensor in inputs:
        tensor.set_shared_memory("none", 64)
    with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'none'"):
        client.triton.infer("simple", inputs)
    with pytest.raises(InferenceServerException, match="Unable to find system shared memory region: 'none'"):
        client.triton.get_system_shared_memory_status("none")
    regions("twice", 64)
    with pytest.raises(InferenceServerException, match="shared memory region 'twice' already in manager"):
        client.triton.register_system_shared_memory("twice", "/none", 64)


def test_memory_of_gpus_is_answered_without_a_gpu(client):
    status = client.plain(client.triton.get_cuda_shared_memory_status())
    assert not (status.get("regions") if isinstance(status, dict) else status)
    client.triton.unregister_cuda_shared_memory()
    client.triton.unregister_cuda_shared_memory("none")
    with pytest.raises(InferenceServerException, match="failed to register CUDA shared memory region: 'r', GPUs not supported"):
        client.triton.register_cuda_shared_memory("r", b"AAAA", 0, 64)
