"""The feed, as training programs use it."""
import atexit
import json
import os
import typing
import weakref

import numpy as np

from weir import _weir

_open = weakref.WeakSet()


@atexit.register
def _close_all():
    # Threads that decode while the process ends would use memory that is gone.
    for feed in list(_open):
        feed.close()


class Batch(typing.TypedDict, total=False):
    """The arrays of one batch, as Feed describes them."""

    image: np.ndarray
    data: np.ndarray
    mask: np.ndarray
    label: np.ndarray
    index: np.ndarray
    count: int


class Feed:
    """Batches of a set in a new order each epoch, made by threads ahead of the training.

    Iterating gives one epoch, from where the feed stands: dictionaries with

    - `image`: array [batch, height, width, 3], or [batch, 3, height, width] with layout="NCHW"; of a set of
      arrays instead `data` [batch, ...] in their type
    - `mask`: uint8 array [batch, height, width], with masks=
    - `label`: int64 array [batch]; -1 for a row without a label
    - `index`: int64 array [batch], the samples' numbers in the set; -1 for a row without a sample
    - `count`: rows that hold a sample; the first ones. The others are zeros (ends="pad", bad="skip").

    The arrays are memory of the feed, without a copy. They may be written to, and are reused when the last
    reference is gone. A second `iter` takes over from the first, which then raises RuntimeError.

    Options:
        set: path or URL (s3, http, https) of a prepared set; a folder, or s3 prefix, with a folder of pictures for
            each class; FILE.npy or a folder of them, one record for each step of the first dimension.
        masks: folder or s3 prefix with a mask for each picture (same path, any ending); they take its crop, flips
            and rotation, by the nearest pixel. mask_fill: their number outside of the picture.
        batch: samples in a batch of this rank. seed: of the order and of all chances. rank, world: of this process.
        threads: that read and decode; 0: one a core. prefetch: batches made ahead.
        ends: "drop", "pad" or "wrap" an epoch that is no whole number of batches.
        sampler: "global", "sequential", "blocks" (block, window), "weighted" (weights) or "balanced".
        subset: numbers of the samples to use.
        bad: "replace", "skip" or "stop" for a picture that cannot be used. tolerate_damage: use a damaged picture as
            far as its decoder can show it. max_pixels: a larger picture cannot be used.
        size: (width, height). crop: "random" (area, aspect), "centre" (short_side) or "none".
        flip, vertical_flip, grayscale: probabilities. rotation: degrees. brightness, contrast, saturation, hue: ranges.
        dtype: "uint8", "float16" or "float32", the last two as (value / 255 - mean) / std. layout: "NHWC" or "NCHW".
        orientation: "exif" or "ignore". verify: compare samples with the hashes of their set.
        index: file that keeps the list of a folder's files.
        reads: samples read ahead of the threads at a time; 0: each thread reads its own; -1: as the set wants.
        cache_bytes: of samples that are kept once read. cache_folder: keep them there, also for later runs, and not
            in memory. cache_decoded: keep pixels, and not encoded bytes.
        pin_memory: True, or "cuda:N" for another GPU than the first: batches lie in memory that this GPU reads by
            itself. Keep a batch until its copy to the GPU has ended: its memory is reused after that.
        process: make the batches in a process of its own, which ends with this one. Its threads then take nothing
            from this interpreter; each batch is copied once.
    """

    def __init__(self, set, *, process=False, **options):
        self._set = os.fspath(set)
        self._options = dict(options) | {"process": process}
        given = dict(options)
        given["pin_memory"] = _gpu_of(given.get("pin_memory"))
        if process and given["pin_memory"] is not None:
            raise ValueError("pin_memory: a feed in a process of its own has no pinned memory: leave out one of the two")
        for key in ("weights", "subset"):
            if given.get(key) is not None:
                given[key] = [value.item() if hasattr(value, "item") else value for value in given[key]]
        for key in ("index", "masks", "cache_folder"):
            if given.get(key) is not None:
                given[key] = os.fspath(given[key])
        if process:
            from weir._process import ProcessFeed
            self._feed = ProcessFeed(self._set, given)
        else:
            self._feed = _weir.Feed(self._set, given)
        self._turn = 0  # of the iterator that may take batches
        self._name, self._type, self._shape, _ = self._feed.form()
        _open.add(self)

    def __iter__(self):
        self._turn += 1
        return self._batches(self._turn)

    def _batches(self, turn):
        while True:
            if turn != self._turn:
                raise RuntimeError("another iteration of this feed began: it takes the batches now")
            got = self._feed.next()
            if got is None:
                return
            rows, label, index, count, epoch, position, bad, mask = got
            if self._name == "data":
                rows = rows.reshape(-1).view(self._type).reshape((-1, *self._shape))
            batch = {self._name: rows, "label": label, "index": index, "count": count}
            if mask is not None:
                batch["mask"] = mask
            yield batch

    def __len__(self):
        """Returns the batches that are left of the epoch."""
        return self._feed.batches_left()

    @property
    def batches_per_epoch(self):
        return self._feed.batches_per_epoch()

    @property
    def images(self):
        """Samples of the set."""
        return self._feed.images()

    @property
    def classes(self):
        """Names of the classes, by label."""
        return self._feed.classes()

    @property
    def epoch(self):
        """The epoch that the next iteration continues or begins."""
        return json.loads(self._feed.state())["epoch"]

    def name(self, index):
        """Returns the path of a sample; of a record its shard's path, '#' and its number."""
        return os.fsdecode(self._feed.name(index))

    def set_epoch(self, epoch):
        """Goes to the beginning of an epoch; does nothing if the feed stands there."""
        self._feed.set_epoch(epoch)

    def state_dict(self):
        """Returns where the feed stands, after the batches that it has given: less than a kilobyte as JSON."""
        return json.loads(self._feed.state())

    def load_state_dict(self, state):
        """Goes on from a state. Another number of threads, ranks or batch size may take over.

        Raises ValueError for a state of another set, seed, sampler or augmentation.
        """
        self._turn += 1
        self._feed.set_state(json.dumps(state))

    def stats(self):
        """Returns what the threads did: counts, seconds of each step, and samples that could not be used by reason."""
        return self._feed.counters()

    def close(self):
        """Ends the threads. Batches that were given stay valid."""
        self._feed.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce__(self):
        # Another process gets a feed of its own that stands where this one does.
        return _restore, (self._set, self._options, self.state_dict())


def _gpu_of(pin_memory):
    """Returns the number of the GPU that reads the batches; None for none."""
    if pin_memory is None or isinstance(pin_memory, bool):
        return 0 if pin_memory else None
    number = str(pin_memory).removeprefix("cuda:")
    if not number.isdecimal():
        raise ValueError(f"pin_memory is {pin_memory!r}: give True, False or cuda:N")
    return int(number)


def _restore(set, options, state):
    feed = Feed(set, **options)
    feed.load_state_dict(state)
    return feed
