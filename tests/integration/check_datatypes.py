"""Every datatype of the protocol there and back over both public clients, binary and JSON."""
import numpy as np
import pytest
import tritonclient.utils as utils
from tritonclient.utils import InferenceServerException

import models


def values_of(datatype):
    if datatype == "BYTES":
        return np.array([[b"", b"text", "é€".encode(), b"0"], [b"x" * 300, b"", b"\x01", b'"\\']], dtype=object)
    dtype = np.dtype(utils.triton_to_np_dtype(datatype))
    if datatype == "BOOL":
        return np.array([[True, False, True, True], [False, False, True, False]])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return np.array([[info.min, info.max, 0, 1], [2, 3, info.max - 1, info.min + 1]], dtype=dtype)
    if datatype == "BF16":
        return np.array([[0, -1.5, 3e38, 1e-38], [0.5, 256, -0.0, 7]], dtype=np.float32).astype(dtype)
    largest = np.finfo(dtype).max
    return np.array([[-0.0, -1.5, largest, np.finfo(dtype).tiny], [0.1, -largest, 1 / 3, 7]], dtype=dtype)


@pytest.mark.parametrize("datatype", models.DATATYPES)
@pytest.mark.parametrize("binary_in, binary_out", [(True, True), (True, False), (False, True), (False, False)])
def test_comes_back_as_it_was_sent(client, datatype, binary_in, binary_out):
    json = not (binary_in and binary_out)
    if client.protocol == "grpc" and json:
        pytest.skip("gRPC has one form")
    model = f"identity_{datatype.lower()}"
    given = values_of(datatype)
    if datatype == "BF16" and not binary_in:
        with pytest.raises(InferenceServerException, match="must be sent as binary data"):  # the client's own rule
            client.input("INPUT0", given, datatype, binary_in)
        return
    result = client.triton.infer(model, [client.input("INPUT0", given, datatype, binary_in)], outputs=[client.output("OUTPUT0", binary_out)])
    found = result.as_numpy("OUTPUT0")
    if datatype == "BYTES":
        found = [[text.encode() if isinstance(text, str) else text for text in row] for row in found.tolist()]
        assert found == given.tolist()
    else:
        assert found.dtype == given.dtype and found.tobytes() == given.tobytes()


@pytest.mark.parametrize("datatype", models.DATATYPES)
def test_empty_rows_come_back(client, datatype):
    given = np.empty((2, 0), dtype=object if datatype == "BYTES" else utils.triton_to_np_dtype(datatype))
    result = client.triton.infer(f"identity_{datatype.lower()}", [client.input("INPUT0", given, datatype)], outputs=[client.output("OUTPUT0")])
    assert list(client.plain(result.get_output("OUTPUT0"))["shape"]) in ([2, 0], ["2", "0"])


def test_strings_of_callers_side_by_side_are_not_mixed(server):
    """Batches of many ragged calls: each gets its own strings."""
    import concurrent.futures

    import rig

    def ask(number):
        client = rig.Client("grpc", server)
        with client.triton as triton:
            for turn in range(20):
                given = np.array([[b"%d:%d" % (number, turn), b"y" * (number * 37 + turn)]], dtype=object)
                result = triton.infer("identity_bytes", [client.input("INPUT0", given, "BYTES")])
                assert result.as_numpy("OUTPUT0").tolist() == given.tolist()
        return True

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(8)))
