"""Classification of real pictures as image_client.py and grpc_image_client.py do it: layout from the configuration, classes with labels."""
import numpy as np
import pytest
import tritonclient.grpc.model_config_pb2 as model_config
from PIL import Image

import conftest


@pytest.fixture(scope="module")
def pictures():
    folder = conftest.SHARED / "data/images"
    if not folder.is_dir():
        pytest.skip(f"the pictures are not at {folder}: set WEIR_SHARED")
    return {name: next(folder.glob(f"*_{name}.JPEG")) for name in ("tiger_shark", "goldfinch", "jay")}


def layout_of(client):
    """(format, shape of a picture) as the configuration and the metadata say."""
    config = client.triton.get_model_config("mobilenet")
    if client.protocol == "grpc":
        return config.config.input[0].format, list(config.config.input[0].dims), config.config.output[0].label_filename
    return model_config.ModelInput.Format.Value(config["input"][0]["format"]), config["input"][0]["dims"], config["output"][0]["label_filename"]


@pytest.mark.parametrize("batch", [1, 3])
def test_pictures_are_classified_with_labels(client, pictures, batch):
    form, (channels, height, width), labels = layout_of(client)
    assert form == model_config.ModelInput.FORMAT_NCHW and channels == 3
    assert labels == "imagenet_labels_1001.txt"
    names = list(pictures)[:batch]
    rows = [np.asarray(Image.open(pictures[name]).convert("RGB").resize((width, height), Image.BILINEAR), dtype=np.float32) / 127.5 - 1 for name in names]
    given = np.stack([row.transpose(2, 0, 1) for row in rows])
    result = client.triton.infer("mobilenet", [client.input("input", given, "FP32")], outputs=[client.output("probabilities", class_count=3)])
    answer = result.as_numpy("probabilities")
    assert answer.shape == (batch, 3)
    for name, row in zip(names, answer):
        best = [(text if isinstance(text, str) else text.decode()).split(":") for text in row]
        assert all(len(parts) == 3 and float(parts[0]) >= 0 for parts in best)
        assert [float(parts[0]) for parts in best] == sorted((float(parts[0]) for parts in best), reverse=True)
        assert best[0][2].replace(" ", "_").startswith(name)
