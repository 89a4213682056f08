"""Small ONNX files, written by hand: the protobuf wire format, as much of it as they need."""
import numpy as np

TYPES = {"FP32": 1, "UINT8": 2, "INT8": 3, "UINT16": 4, "INT16": 5, "INT32": 6, "INT64": 7, "BYTES": 8, "BOOL": 9, "FP16": 10, "FP64": 11,
         "UINT32": 12, "UINT64": 13, "BF16": 16, "INT4": 22}


def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    """A field of a message: a whole number, a text, or the bytes of another message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value % 2 ** 64)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def value(name, dtype="FP32", shape=None):
    """An input or output. None in a shape is a free dimension; no shape at all is one that the file does not tell."""
    tensor = field(1, TYPES[dtype])
    if shape is not None:
        dims = [field(1, field(2, f"{name}{i}") if dim is None else field(1, dim)) for i, dim in enumerate(shape)]
        tensor += field(2, b"".join(dims))
    return field(1, name) + field(2, field(1, tensor))


def sequence(name):
    return field(1, name) + field(2, field(4, field(1, field(1, field(1, TYPES["FP32"])))))


def node(kind, inputs, outputs, *attributes, domain=""):
    return (b"".join(field(1, name) for name in inputs) + b"".join(field(2, name) for name in outputs) + field(4, kind) +
            b"".join(field(5, attribute) for attribute in attributes) + (field(7, domain) if domain else b""))


def integer(name, number):
    return field(1, name) + field(3, number) + field(20, 2)


def subgraph(name, body):
    return field(1, name) + field(6, body) + field(20, 5)


def constant(name, array, dtype=None, external=None):
    names = {np.dtype(np.float32): "FP32", np.dtype(np.int64): "INT64", np.dtype(np.bool_): "BOOL"}
    array = np.asarray(array)
    out = b"".join(field(1, dim) for dim in array.shape) + field(2, TYPES[dtype or names[array.dtype]]) + field(8, name)
    if external:
        return out + field(13, field(1, "location") + field(2, external)) + field(14, 1)
    return out + field(9, array.tobytes())


def graph(nodes, inputs, outputs, constants=()):
    return (b"".join(field(1, n) for n in nodes) + field(2, "g") + b"".join(field(5, c) for c in constants) +
            b"".join(field(11, i) for i in inputs) + b"".join(field(12, o) for o in outputs))


def model(nodes, inputs, outputs, constants=(), opset=13, ir=8, domains=()):
    imports = field(8, field(2, opset)) + b"".join(field(8, field(1, name) + field(2, version)) for name, version in domains)
    return field(1, ir) + field(7, graph(nodes, inputs, outputs, constants)) + imports
