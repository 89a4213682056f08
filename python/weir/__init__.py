"""weir: a training feed that is fast, exact and resumable.

    import weir
    feed = weir.Feed("set", batch=256, seed=1)
    for epoch in range(90):
        for batch in feed:
            train(batch["image"], batch["label"])

`image` is an array of shape [batch, height, width, 3] (uint8) or, with layout="NCHW", [batch, 3, height, width].
Every value depends on the set, the options and the seed alone: not on threads, and not on where a run was interrupted.
"""
import json
import os

from weir._feed import Feed
from weir._weir import augment as _augment
from weir._weir import draws as _draws

__all__ = ["Feed", "augment", "draws", "load_result"]


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


def load_result(path):
    """Returns the levels of a `weir load --json` result as a list of flat dictionaries: rows for pandas.DataFrame.

    Keys of nested objects are joined with dots: "response_ms.p99".
    """
    with open(os.fspath(path), encoding="utf-8") as file:
        result = json.load(file)
    if not isinstance(result, dict) or not isinstance(result.get("levels"), list):
        raise ValueError(f"{path}: not a result of weir load")

    def flat(value, front=""):
        row = {}
        for key, inner in value.items():
            if isinstance(inner, dict):
                row.update(flat(inner, f"{front}{key}."))
            else:
                row[front + key] = inner
        return row

    return [flat(level) for level in result["levels"]]
