"""weir: a training feed that is fast, exact and resumable.

    import weir
    feed = weir.Feed("set", batch=256, seed=1)
    for epoch in range(90):
        for batch in feed:
            train(batch["image"], batch["label"])

`image` is an array of shape [batch, height, width, 3] (uint8) or, with layout="NCHW", [batch, 3, height, width].
Also: weir.prepare makes prepared sets, weir.Model runs an ONNX model on pictures, weir.load gives results as rows.
Every value depends on the set, the options and the seed alone: not on threads, and not on where a run was interrupted.
"""
import json
import os

from weir._feed import Batch, Feed
from weir._model import Model
from weir._results import load
from weir._weir import augment as _augment
from weir._weir import draws as _draws
from weir._weir import prepare as _prepare

__all__ = ["Batch", "Feed", "Model", "augment", "draws", "load", "prepare"]


def draws(width, height, first=0, count=1, *, seed=0, epoch=0, **options):
    """Returns the chances of samples [first, first + count) for pictures of width x height pixels.

    A dictionary of arrays: `box` [count, 4] (x, y, width, height), `flips` [count, 3] (horizontal, vertical, grey),
    `angle` [count] in degrees, `factors` [count, 4] (brightness, contrast, saturation, hue), `order` [count, 4].
    """
    return _draws(dict(options), width, height, seed, epoch, first, count)


def augment(encoded, *, seed=0, epoch=0, sample=0, **options):
    """Returns one encoded picture (bytes) as a feed with these options makes it: [height, width, 3] or [3, height, width].

    Raises ValueError with the reason for a picture that cannot be used.
    """
    return _augment(bytes(encoded), dict(options), seed, epoch, sample)


def prepare(sources, folder, *, format="files", recipe=None, labels=None, workers=0, shard_bytes=None, quality=None, replicate=0, no_duplicates=False, sample=0, seed=1):
    """Makes a prepared set in `folder` of pictures, as `weir prepare` does, and returns its summary.

    A call that was broken off goes on where it stood. Ctrl-C breaks it off.

    Options:
        sources: one path or URL, or a list: files, folders, prepared sets, tar archives (WebDataset).
        format: "files", "tar", "tfrecord" or "raw". recipe: file with the geometry to prepare for.
        labels: "folders", or a CSV file of name,label. workers: threads; 0: one a core.
        shard_bytes: of a shard, at most. quality: of JPEGs that are encoded, 1 to 100. replicate: copies up to so
        many pictures. no_duplicates: leave out pictures whose bytes came before. sample: so many by chance of `seed`.

    The summary has the keys of `weir prepare --json`: `images`, `rejected` by reason, `bytes_out`, `wall_s` and more.
    """
    if isinstance(sources, (str, os.PathLike)):
        sources = [sources]
    options = {"format": format, "recipe": recipe, "labels": labels, "workers": workers, "shard_bytes": shard_bytes, "quality": quality,
               "replicate": replicate, "no_duplicates": no_duplicates, "sample": sample, "seed": seed}
    given = {key: os.fspath(value) if isinstance(value, os.PathLike) else value for key, value in options.items() if value is not None}
    return json.loads(_prepare([os.fspath(source) for source in sources], os.fspath(folder), given))
