"""Makes the models that Triton's example clients ask for, as model folders with ONNX files.

Run as a program it writes them into a folder: python models.py FOLDER
"""
import pathlib
import sys

import onnx
from onnx import TensorProto, helper

DATATYPES = {
    "BOOL": TensorProto.BOOL, "UINT8": TensorProto.UINT8, "UINT16": TensorProto.UINT16, "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64, "INT8": TensorProto.INT8, "INT16": TensorProto.INT16, "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64, "FP16": TensorProto.FLOAT16, "BF16": TensorProto.BFLOAT16, "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE, "BYTES": TensorProto.STRING,
}


def tensors(names, dtype, dims):
    return [helper.make_tensor_value_info(name, dtype, dims) for name in names]


def save(repository, name, nodes, inputs, outputs, config):
    folder = pathlib.Path(repository) / name
    (folder / "1").mkdir(parents=True, exist_ok=True)
    graph = helper.make_graph(nodes, name, inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, folder / "1" / "model.onnx")
    (folder / "config.pbtxt").write_text(f'name: "{name}"\nbackend: "onnxruntime"\n{config}\n')
    return folder


def sum_and_difference(repository, name, datatype):
    """OUTPUT0 = INPUT0 + INPUT1, OUTPUT1 = INPUT0 - INPUT1. Strings are read and written as decimal numbers."""
    dtype = DATATYPES[datatype]
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])]
    # ONNX Runtime adds no 8-bit numbers, and strings are no numbers.
    within = dtype if datatype == "INT32" else TensorProto.INT32
    for outer, inner in (("INPUT0", "a"), ("INPUT1", "b")):
        nodes.insert(0, helper.make_node("Cast", [outer], [inner], to=within))
    for inner, outer in (("sum", "OUTPUT0"), ("difference", "OUTPUT1")):
        nodes.append(helper.make_node("Cast", [inner], [outer], to=dtype))
    dims = ["batch", 16]
    save(repository, name, nodes, tensors(["INPUT0", "INPUT1"], dtype, dims), tensors(["OUTPUT0", "OUTPUT1"], dtype, dims), "max_batch_size: 8")


def identity(repository, name, datatype, batch=8):
    """OUTPUT0 = INPUT0, any number of elements in a row."""
    dtype = DATATYPES[datatype]
    node = helper.make_node("Identity", ["INPUT0"], ["OUTPUT0"])
    dims = ["batch", "elements"]
    save(repository, name, [node], tensors(["INPUT0"], dtype, dims), tensors(["OUTPUT0"], dtype, dims), f"max_batch_size: {batch}\ndynamic_batching {{ }}")


def classifier(repository, name):
    """The tensors of Triton's densenet_onnx: a picture without a batch in, scores of 1,000 classes out."""
    picture = helper.make_tensor_value_info("data_0", TensorProto.FLOAT, [1, 3, 224, 224])
    scores = helper.make_tensor_value_info("fc6_1", TensorProto.FLOAT, [1, 1000, 1, 1])
    repeats = helper.make_node("Constant", [], ["repeats"], value=helper.make_tensor("r", TensorProto.INT64, [4], [1, 1000, 1, 1]))
    axes = helper.make_node("Constant", [], ["axes"], value=helper.make_tensor("a", TensorProto.INT64, [1], [1]))
    nodes = [repeats, axes, helper.make_node("GlobalAveragePool", ["data_0"], ["means"]),
             helper.make_node("ReduceSum", ["means", "axes"], ["whole"], keepdims=1), helper.make_node("Tile", ["whole", "repeats"], ["fc6_1"])]
    config = """max_batch_size: 0
input { name: "data_0" data_type: TYPE_FP32 format: FORMAT_NCHW dims: [ 3, 224, 224 ] reshape { shape: [ 1, 3, 224, 224 ] } }
output { name: "fc6_1" data_type: TYPE_FP32 dims: [ 1000 ] reshape { shape: [ 1, 1000, 1, 1 ] } }"""
    save(repository, name, nodes, [picture], [scores], config)


def make(repository):
    """The models of Triton's example repository that need no backend of their own."""
    sum_and_difference(repository, "simple", "INT32")
    sum_and_difference(repository, "simple_int8", "INT8")
    sum_and_difference(repository, "simple_string", "BYTES")
    identity(repository, "simple_identity", "BYTES")
    identity(repository, "custom_identity_int32", "INT32")
    classifier(repository, "densenet_onnx")


def make_identities(repository):
    for datatype in DATATYPES:
        identity(repository, f"identity_{datatype.lower()}", datatype)


if __name__ == "__main__":
    make(sys.argv[1])
    make_identities(sys.argv[1])
