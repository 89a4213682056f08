"""weir.Model: an ONNX model over pictures, in this process."""
import os
import pathlib

from weir import _weir


class Model:
    """An ONNX model with its recipe, run by the package onnxruntime.

        model = weir.Model("models/resnet50")
        model.classify(["cat.jpg"])      # [[("tabby", 0.71), ("tiger cat", 0.2), ...]]
        model(["cat.jpg", "dog.jpg"])    # scores, float32 [2, 1000]

    `path` is NAME.onnx with NAME.recipe.yaml beside it, or a model folder (recipe.yaml, N/model.onnx: the highest N).
    Pictures become the model's input as `weir run` makes it, to the bit: decoded, turned, resized, cut, scaled.

    Options:
        recipe: file to use instead. threads: of onnxruntime; 0: as it likes.
        providers: of onnxruntime, such as ["CUDAExecutionProvider", "CPUExecutionProvider"].
    """

    def __init__(self, path, *, recipe=None, threads=0, providers=None):
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError("weir.Model runs models by the package onnxruntime: pip install onnxruntime") from error
        path = pathlib.Path(os.fspath(path))
        file, own_recipe = _find(path)
        recipe = pathlib.Path(os.fspath(recipe)) if recipe is not None else own_recipe
        if not recipe.is_file():
            raise FileNotFoundError(f"{recipe}: no recipe: it says how a picture becomes the model's input (docs/reference/recipe.md)")
        self._recipe = _weir.Recipe(str(recipe))
        facts = self._recipe.facts()
        options = onnxruntime.SessionOptions()
        if threads:
            options.intra_op_num_threads = threads
        self._session = onnxruntime.InferenceSession(str(file), options, providers=providers or ["CPUExecutionProvider"])
        self._input = _named(facts["input"], [value.name for value in self._session.get_inputs()], "input", path)
        self._output = _named(facts["output"], [value.name for value in self._session.get_outputs()], "output", path)
        self._softmax, self._first_class = facts["softmax"], facts["first_class"]
        self.labels = facts["labels"]
        """Names of the classes; empty if the recipe names none."""

    def prepare(self, pictures):
        """Returns the model's input for pictures: an array of float32 or uint8 [n, ...] in the recipe's layout.

        A picture is a path, or bytes of an encoded picture. Raises ValueError for one that cannot be used.
        """
        return self._recipe.prepare([_encoded(picture) for picture in pictures])

    def __call__(self, pictures):
        """Returns the scores of pictures: an array [n, ...]; probabilities if the recipe asks for softmax."""
        import numpy as np
        scores = self._session.run([self._output], {self._input: self.prepare(pictures)})[0]
        if self._softmax:
            scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
            scores /= scores.sum(axis=-1, keepdims=True)
        return scores

    def classify(self, pictures, top=5):
        """Returns for each picture its best classes: a list of (label or number, score), the best first."""
        rows = self(pictures)
        rows = rows.reshape(len(rows), -1)[:, self._first_class:]
        best = (-rows).argsort(axis=1, kind="stable")[:, :top]
        return [[(self.labels[k] if self.labels else int(k), float(row[k])) for k in order] for row, order in zip(rows, best)]


def _find(path):
    """Returns the model's file and where its recipe would be."""
    if path.is_file():
        return path, path.with_name(path.stem + ".recipe.yaml")
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no model is there")
    versions = sorted((int(folder.name) for folder in path.iterdir() if folder.name.isdigit() and (folder / "model.onnx").is_file()), reverse=True)
    if not versions:
        raise FileNotFoundError(f"{path}: no N/model.onnx is there")
    return path / str(versions[0]) / "model.onnx", path / "recipe.yaml"


def _named(name, names, what, path):
    if name and name not in names:
        raise ValueError(f"{path}: has no {what} {name!r}: it has {', '.join(names)}")
    if not name and len(names) != 1:
        raise ValueError(f"{path}: has {len(names)} {what}s: name one in the recipe: {', '.join(names)}")
    return name or names[0]


def _encoded(picture):
    if isinstance(picture, (bytes, bytearray, memoryview)):
        return bytes(picture)
    return pathlib.Path(os.fspath(picture)).read_bytes()
